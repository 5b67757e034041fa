import { bodySchema } from './bodies.ts';
import { ROUTES, type Route } from './routes.ts';

/** Paths that answer with more than one JSON value, or about the daemon itself. */
const OTHERS: Readonly<Record<string, object>> = {
  '/session/{id}/events': {
    get: operation(
      'get',
      '/session/:id/events',
      'The events of the session as server-sent events; without Last-Event-ID first the questions that wait',
      { '200': { description: 'Events', content: { 'text/event-stream': { schema: { type: 'string' } } } } },
      [
        { name: 'Last-Event-ID', in: 'header', schema: { type: 'integer', minimum: 0 } },
        { name: 'snapshot', in: 'query', schema: { type: 'string', enum: ['1'] } },
      ],
    ),
  },
  '/daemon/status': { get: operation('get', '/daemon/status', 'How the daemon does', answered(200)) },
  '/openapi.json': { get: operation('get', '/openapi.json', 'This document', answered(200)) },
};

const CLIENT_ID = {
  name: 'X-Qwen-Client-Id',
  in: 'header',
  description: 'Who calls; the daemon gives a client its id when it creates, loads or resumes a session',
  schema: { type: 'string', pattern: '^[A-Za-z0-9._:-]{1,128}$' },
};

/** The daemon's routes as an OpenAPI 3.1 document, its bodies from the schemas that judge them. */
export function openApiDocument(version: string): Record<string, unknown> {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of ROUTES) {
    const path = route.path.replace(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [route.method]: described(route) };
  }
  return {
    openapi: '3.1.0',
    info: { title: 'qwen-acp serve', version },
    paths: { ...paths, ...OTHERS },
    components: {
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
      schemas: {
        Error: {
          type: 'object',
          required: ['error'],
          properties: { error: { type: 'string' }, code: { type: 'string' } },
          additionalProperties: true,
        },
      },
    },
    security: [{}, { bearer: [] }],
  };
}

function described({ method, path, summary, body, status }: Route): object {
  const requestBody =
    body === undefined ? undefined : { content: { 'application/json': { schema: bodySchema(body) } } };
  const base = operation(method, path, summary, answered(status), path.startsWith('/session') ? [CLIENT_ID] : []);
  return { ...base, ...(requestBody && { requestBody }) };
}

function operation(
  method: string,
  path: string,
  summary: string,
  responses: object,
  parameters: object[] = [],
): object {
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name]) => name);
  const words = path.split('/').filter((word) => word !== '' && !word.startsWith(':'));
  return {
    operationId: [method, ...words].join('_').replace(/[^a-z_]/g, '_'),
    summary,
    parameters: [
      ...names.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } })),
      ...parameters,
    ],
    responses,
  };
}

function answered(status: number): object {
  const error = { description: 'What is wrong', content: json({ $ref: '#/components/schemas/Error' }) };
  const success = status === 204 ? { description: 'Done' } : { description: 'Done', content: json({ type: 'object' }) };
  return { [status]: success, default: error };
}

function json(schema: object): object {
  return { 'application/json': { schema } };
}
