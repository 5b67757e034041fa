// A module of its own, so that it becomes a chunk that only the first request loads.
export { Anthropic } from '@anthropic-ai/sdk';
