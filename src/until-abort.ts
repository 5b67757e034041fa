/**
 * What `work` comes to, unless the signal is first: then its reason is thrown, and `work`, which knows nothing of the signal,
 * goes on unheard.
 */
export async function untilAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let stop = () => {};
  const stopped = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason);
  });
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  try {
    // The race hears both to their ends, so that neither is a rejection that nobody handles.
    return await Promise.race([stopped, work]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
