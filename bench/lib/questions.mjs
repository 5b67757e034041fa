// The person of the bench: submits the same answer to every question, at once.

/** `onRequest` for an AcpClient, and what was asked: `{params, at, answeredAt}` in order. */
export function answerQuestions(answer) {
  const asked = [];
  const onRequest = ({ method, params }, at) => {
    if (method !== 'session/request_permission') return undefined;
    const { optionId } = params.options.find((option) => option.kind.startsWith('allow'));
    asked.push({ params, at, answeredAt: performance.now() });
    return { outcome: { outcome: 'selected', optionId }, answers: { 0: answer } };
  };
  return { asked, onRequest };
}
