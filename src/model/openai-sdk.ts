// A module of its own, so that it becomes a chunk that only the first request loads.
export { OpenAI } from 'openai';
