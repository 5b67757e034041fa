import { parseScript, type Script } from './script.ts';

const NOTICE =
  'This is the scripted demo model: nothing here was thought up by an AI. For a real one start me with ' +
  '`--auth-type gemini` and GEMINI_API_KEY set, or choose a provider in ~/.qwen/settings.json.';

/** What the scripted model plays when it is given no script. */
export const DEMO_SCRIPT: Script = parseScript({
  model: 'scripted-demo',
  rules: [
    {
      when: { response: 'ask_user_question' },
      steps: [{ text: `Your answer reached me:\n\n{{response}}\n\n${NOTICE}` }],
    },
    {
      when: { response: false, pattern: '\\bask', flags: 'i' },
      steps: [
        { text: `${NOTICE}\n\nHere is a question for you.` },
        {
          call: 'ask_user_question',
          args: {
            questions: [
              {
                question: 'Which colour should the demo use?',
                header: 'Colour',
                multiSelect: false,
                options: [
                  { label: 'Green', description: 'Easy on the eyes' },
                  { label: 'Orange', description: 'Hard to overlook' },
                ],
              },
            ],
          },
        },
      ],
    },
    { steps: [{ text: `${NOTICE}\n\nWrite a message with the word "ask" in it and I will ask you a question.` }] },
  ],
});
