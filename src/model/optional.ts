import { refusalText } from './http-faults.ts';

/**
 * Sends a request with everything that this program would like in it, and again without what the provider refuses by name:
 * servers speak more or less of a protocol, and say so with a 400 or 404. What was refused is left out from then on.
 */
export class Optional<Feature extends string> {
  readonly #words: Readonly<Record<Feature, RegExp>>;
  readonly #refused = new Set<Feature>();

  /** For each feature, how its refusal reads. */
  constructor(words: Readonly<Record<Feature, RegExp>>) {
    this.#words = words;
  }

  /** `build` is told what to leave out, and answers what the request then has. Throws what `send` throws at last. */
  async send<Body, Answer>(
    build: (without: ReadonlySet<Feature>) => { readonly body: Body; readonly has: ReadonlySet<Feature> },
    send: (body: Body) => Promise<Answer>,
  ): Promise<Answer> {
    for (;;) {
      const { body, has } = build(this.#refused);
      try {
        return await send(body);
      } catch (error) {
        const refused = this.#refusedOf(error, has);
        if (refused === undefined) throw error;
        this.#refused.add(refused);
      }
    }
  }

  #refusedOf(error: unknown, has: ReadonlySet<Feature>): Feature | undefined {
    const text = refusalText(error);
    if (text === undefined || ![400, 404, 422].includes(text.status)) return undefined;
    const said = `${text.names} ${text.message}`;
    return (Object.keys(this.#words) as Feature[]).find((each) => has.has(each) && this.#words[each].test(said));
  }
}
