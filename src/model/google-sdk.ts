// A module of its own becomes a file of its own in the bundle: the SDK is read with the first request, not with the model.
export { GoogleGenAI } from '@google/genai';
