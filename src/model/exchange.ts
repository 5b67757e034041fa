import { ProviderFault } from '../session/faults.ts';
import type { ModelEvent, ModelRequest } from '../session/ports.ts';
import { untilAbort } from '../until-abort.ts';
import { readBody, readEventData } from './sse.ts';

/** One streamed reply, as it comes in. */
export interface Reply {
  /** Adds to `heard` what an event's data says; false when it was the last event. Throws for an error in its place. */
  take(data: string, heard: ModelEvent[]): boolean;
  /** What is left to say at the end. Throws `ProviderFault` for a reply that is none. */
  end(): readonly ModelEvent[];
}

/** How one provider is spoken to over HTTP. */
export interface Wire {
  /** Sends a request; the response's body was not touched. */
  open(request: ModelRequest, signal: AbortSignal): Promise<Response>;
  reply(): Reply;
  /** The fault for whatever was thrown; `started` when the provider had begun its reply. */
  fault(error: unknown, started: boolean): ProviderFault;
  /** How long the provider may be silent, before its reply and within it. Milliseconds; 0 for ever. */
  readonly idleMs: number;
}

/** Sends one request and streams the reply, as many events at once as a read brought. The first error ends it. */
export async function* exchange(wire: Wire, request: ModelRequest): AsyncGenerator<readonly ModelEvent[]> {
  const reply = wire.reply();
  // An SDK does not take its listener off the signal that it is given, so it gets one for this request alone.
  const attempt = new AbortController();
  const onAbort = () => attempt.abort(request.signal.reason);
  request.signal.addEventListener('abort', onAbort, { once: true });
  const silence = new Silence(wire.idleMs, (fault) => attempt.abort(fault));
  let started = false;
  try {
    request.signal.throwIfAborted();
    // Loading an SDK, for one, knows nothing of the signal.
    const response = await untilAbort(wire.open(request, attempt.signal), attempt.signal);
    started = true;
    for await (const events of eventsOf(response)) {
      request.signal.throwIfAborted();
      const { heard, last, fault } = takeAll(reply, events);
      silence.pause();
      if (heard.length > 0) yield heard;
      silence.resume();
      if (fault !== undefined) throw fault;
      if (last) break;
    }
    request.signal.throwIfAborted();
    silence.pause();
    yield reply.end();
  } catch (error) {
    request.signal.throwIfAborted();
    throw wire.fault(attempt.signal.aborted ? attempt.signal.reason : error, started);
  } finally {
    silence.end();
    request.signal.removeEventListener('abort', onAbort);
  }
}

/** The data of a response's events. A server that does not stream answers one JSON document, which is given as one. */
async function* eventsOf(response: Response): AsyncGenerator<readonly string[]> {
  if (response.body === null) return;
  if (response.headers.get('content-type')?.includes('application/json')) yield [await readBody(response.body)];
  else yield* readEventData(response.body);
}

/** What a read brought, and the fault behind it: what came before a fault was said. */
function takeAll(reply: Reply, events: readonly string[]): { heard: ModelEvent[]; last: boolean; fault?: unknown } {
  const heard: ModelEvent[] = [];
  try {
    for (const data of events) if (!reply.take(data, heard)) return { heard, last: true };
    return { heard, last: false };
  } catch (fault) {
    return { heard, last: true, fault };
  }
}

/** Watches for a provider that says nothing. One timer for the whole exchange, since there is a read every few microseconds. */
class Silence {
  readonly #timer: NodeJS.Timeout | undefined;
  #paused = false;

  constructor(idleMs: number, tell: (fault: ProviderFault) => void) {
    if (idleMs <= 0) return;
    const onSilence = () => {
      // Whoever reads the reply takes its time; that is no silence.
      if (this.#paused) this.#timer?.refresh();
      else tell(new ProviderFault('broken_stream', `The provider said nothing for ${idleMs / 1000} s.`));
    };
    this.#timer = setTimeout(onSilence, idleMs);
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.#timer?.refresh();
  }

  end(): void {
    clearTimeout(this.#timer);
  }
}
