import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Content, Part } from '@google/genai';
import { ProviderFault } from '../session/faults.ts';
import type { Model, ModelEvent, ModelRequest } from '../session/ports.ts';
import type { Conditions, Rule, Script, Step } from './script.ts';

/** Plays a script: the first rule that fits the request decides the whole reply. Needs no key and no network. */
export function createScriptedModel(script: Script, name: string = script.model ?? 'scripted'): Model {
  const played = new Map<Rule, number>();
  let calls = 0;
  return {
    name,
    authType: 'scripted',
    ...(script.contextWindow !== undefined && { contextWindow: script.contextWindow }),
    async *stream({ contents, signal }: ModelRequest): AsyncIterable<readonly ModelEvent[]> {
      signal.throwIfAborted();
      calls += 1;
      const scene = readScene(contents, calls);
      const rule = script.rules.find((each) => fits(each.when, scene, played.get(each) ?? 0));
      if (rule === undefined) {
        throw new ProviderFault('bad_request', `The script has no rule for request ${calls}: ${JSON.stringify(scene)}`);
      }
      played.set(rule, (played.get(rule) ?? 0) + 1);
      for await (const event of play(rule.steps, scene, signal)) yield [event];
    },
  };
}

/** What conditions and placeholders see of a request. */
interface Scene {
  readonly call: number;
  readonly turn: number;
  /** The last message's text; text parts joined by newlines. */
  readonly prompt: string;
  /** The last message's function responses; joined by newlines. */
  readonly response: string;
  readonly responders: readonly string[];
}

function readScene(contents: readonly Content[], call: number): Scene {
  const last = contents.at(-1)?.parts ?? [];
  const responses = last.flatMap((part) => part.functionResponse ?? []);
  return {
    call,
    turn: contents.filter(({ role, parts }) => role === 'user' && parts?.some(({ text }) => text)).length,
    prompt: last.flatMap(({ text }) => text ?? []).join('\n'),
    response: responses.map(({ response }) => responseText(response)).join('\n'),
    responders: responses.map((response) => response.name ?? ''),
  };
}

function responseText(response: Record<string, unknown> | undefined): string {
  const value = response?.['output'] ?? response?.['error'] ?? response;
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}

function fits(when: Conditions, scene: Scene, played: number): boolean {
  const { text, pattern, response, responseText, turn, call, times } = when;
  return (
    (text === undefined || scene.prompt.includes(text)) &&
    (pattern === undefined || pattern.test(scene.prompt)) &&
    (response === undefined || respondersFit(response, scene.responders)) &&
    (responseText === undefined || scene.response.includes(responseText)) &&
    (turn === undefined || scene.turn === turn) &&
    (call === undefined || scene.call === call) &&
    (times === undefined || played < times)
  );
}

function respondersFit(wanted: boolean | string, responders: readonly string[]): boolean {
  return typeof wanted === 'string' ? responders.includes(wanted) : responders.length > 0 === wanted;
}

async function* play(steps: readonly Step[], scene: Scene, signal: AbortSignal): AsyncGenerator<ModelEvent> {
  for (const step of steps) {
    signal.throwIfAborted();
    switch (step.kind) {
      case 'text':
        yield* stream(step, scene, signal);
        break;
      case 'call':
        yield { kind: 'part', part: callPart(step) };
        break;
      case 'part':
        // A copy, because what is streamed becomes history, and the rule may play again.
        yield { kind: 'part', part: structuredClone(step.part) };
        break;
      case 'wait':
        await wait(step.milliseconds, signal);
        break;
      case 'fault':
        throw new ProviderFault(step.fault, step.message, step);
      case 'usage':
        yield { kind: 'usage', usage: step.usage };
        break;
      case 'finish':
        yield { kind: 'finish', reason: step.reason };
        return;
    }
  }
  signal.throwIfAborted();
  yield { kind: 'finish', reason: 'stop' };
}

function* stream(step: Extract<Step, { kind: 'text' }>, scene: Scene, signal: AbortSignal): Generator<ModelEvent> {
  const pieces = cut(fill(step.text, scene), step.deltas);
  for (let round = 0; round < step.repeat; round += 1) {
    for (const text of pieces) {
      signal.throwIfAborted();
      yield { kind: 'part', part: step.thought ? { text, thought: true } : { text } };
    }
  }
}

/** Puts `{{prompt}}`, `{{response}}`, `{{turn}}` and `{{call}}` in. */
function fill(template: string, scene: Scene): string {
  return template.replace(/\{\{(prompt|response|turn|call)\}\}/g, (_, key: 'prompt' | 'response' | 'turn' | 'call') =>
    String(scene[key]),
  );
}

/** Cuts between code points, because a lone surrogate does not survive JSON over UTF-8. */
function cut(text: string, pieces: number): string[] {
  const points = [...text];
  const size = Math.max(1, Math.ceil(points.length / pieces));
  return Array.from({ length: Math.max(1, Math.ceil(points.length / size)) }, (_, index) =>
    points.slice(index * size, (index + 1) * size).join(''),
  );
}

function callPart({ name, args, id }: Extract<Step, { kind: 'call' }>): Part {
  const copy = structuredClone(args) as Record<string, unknown>;
  if (id === null) return { functionCall: { name, args: copy } };
  return { functionCall: { id: id ?? `call_${randomUUID()}`, name, args: copy } };
}

async function wait(milliseconds: number | 'abort', signal: AbortSignal): Promise<void> {
  if (milliseconds === 'abort') {
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
  } else {
    await delay(milliseconds, undefined, { signal }).catch(() => {});
  }
  signal.throwIfAborted();
}
