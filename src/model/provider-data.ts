import type { Content, Part } from '@google/genai';

/**
 * What a provider put on its turn that has no place in a Gemini part. It is stored on the part, or on a part of its own,
 * where readers that do not know it pass it over, and goes back to the same kind of provider only.
 */
export type ProviderData =
  | {
      readonly provider: 'openai';
      /** Further fields of a tool call, or of the message where the part is a thought. */
      readonly fields?: Readonly<Record<string, unknown>>;
      /** The field that thoughts came in, where it is not `reasoning_content`. */
      readonly thoughtField?: 'reasoning';
    }
  | {
      readonly provider: 'anthropic';
      /** Further fields of a `tool_use` block. */
      readonly fields?: Readonly<Record<string, unknown>>;
      /** A whole block that has no Gemini form, such as `redacted_thinking`. */
      readonly block?: Readonly<Record<string, unknown>>;
    };

type Of<P extends ProviderData['provider']> = Extract<ProviderData, { provider: P }>;

/** A Gemini part with the provider's own data. */
export type ProviderPart = Part & { providerData?: ProviderData };

/** The data that this kind of provider left on a part. */
export function providerDataOf<P extends ProviderData['provider']>(part: Part, provider: P): Of<P> | undefined {
  const data = (part as ProviderPart).providerData;
  return data?.provider === provider ? (data as Of<P>) : undefined;
}

/** Whether a part holds nothing else. Not even an empty text: the reference would send that to a provider, which refuses it. */
export function isDataOnly(part: Part): boolean {
  return 'providerData' in part && Object.keys(part).length === 1;
}

/** Whether another kind of provider made this part, as far as that can be told. */
export function isForeign(part: Part, provider: ProviderData['provider']): boolean {
  const data = (part as ProviderPart).providerData;
  return data !== undefined && data.provider !== provider;
}

/**
 * A conversation as Gemini takes it: without the thoughts and the fields of other providers, which it refuses. Answers
 * `contents` itself where there are none.
 */
export function withoutProviderData(contents: readonly Content[]): readonly Content[] {
  const marked = (part: Part): boolean => 'providerData' in part;
  if (!contents.some(({ parts }) => parts?.some(marked))) return contents;
  return contents.flatMap((content) => {
    const parts = (content.parts ?? []).flatMap((part) => {
      if (!marked(part)) return [part];
      const { providerData: _, ...rest } = part as ProviderPart;
      return part.thought || isDataOnly(part) ? [] : [rest];
    });
    return parts.length > 0 ? [{ ...content, parts }] : [];
  });
}
