import { homedir } from 'node:os';
import type { ServeOptions } from '../daemon/ports.ts';
import { isLoopbackName } from '../daemon/security.ts';
import { serve } from '../daemon/serve.ts';
import { errorCode } from '../error-code.ts';
import { logLevelFrom } from '../log.ts';
import { readPolicySettings } from '../settings.ts';
import type { ChildOptions } from './options.ts';
import { PERMISSION_STRATEGIES, type ServeArguments } from './serve-options.ts';

/** Holds the token where no process list shows it. */
const TOKEN_VARIABLE = 'QWEN_SERVER_TOKEN';
const LOG_VARIABLE = 'QWEN_ACP_LOG';

/** Runs the daemon until it is told to stop; what keeps it from starting goes to stderr, with exit code 1. */
export async function runServe(args: ServeArguments, version: string): Promise<void> {
  try {
    const options = serveOptionsOf(args);
    await serve(options, { version, logLevel: logLevelFrom(args.child.logLevel, process.env[LOG_VARIABLE]) });
  } catch (error) {
    process.stderr.write(`qwen-acp serve: ${startFailure(error, args)}\n`);
    process.exitCode = 1;
  }
}

function serveOptionsOf(args: ServeArguments): ServeOptions {
  const token = args.token ?? process.env[TOKEN_VARIABLE]?.trim();
  // The agent process inherits the environment and must not know it.
  delete process.env[TOKEN_VARIABLE];
  // Not as an argument: the reference's agent knows no such option and would not start.
  if (args.child.logLevel !== undefined) process.env[LOG_VARIABLE] = args.child.logLevel;
  const options: ServeOptions = {
    port: args.port ?? 4170,
    hostname: args.hostname ?? '127.0.0.1',
    restoreAskUserQuestion: args.restoreAskUserQuestion,
    experimentalLsp: args.experimentalLsp,
    ...policyOf(args),
    permissionResponseTimeoutMs: args.permissionResponseTimeoutMs ?? 0,
    initializeTimeoutMs: args.initializeTimeoutMs ?? 10_000,
    token: token || undefined,
    requireAuth: args.requireAuth,
    allowOrigins: args.allowOrigins,
    maxSessions: args.maxSessions ?? 32,
    maxConnections: args.maxConnections ?? 256,
    childArgs: childArguments(args.child),
    cwd: process.cwd(),
  };
  const fault = securityFault(options);
  if (fault !== undefined) throw new StartError(fault);
  return options;
}

/** A start that cannot be; the message says why in whole sentences. */
class StartError extends Error {}

function policyOf(args: ServeArguments): Pick<ServeOptions, 'permissionStrategy' | 'consensusQuorum'> {
  const settings = readPolicySettings({ cwd: process.cwd(), home: homedir(), env: process.env });
  const { permissionStrategy: named, consensusQuorum: count } = settings;
  const strategy = PERMISSION_STRATEGIES.find((known) => known === named?.value);
  if (args.permissionStrategy === undefined && named !== undefined && strategy === undefined) {
    const known = PERMISSION_STRATEGIES.join(', ');
    throw new StartError(`In ${named.file}, policy.permissionStrategy is none of ${known}.`);
  }
  return {
    permissionStrategy: args.permissionStrategy ?? strategy,
    consensusQuorum: args.consensusQuorum ?? count?.value,
  };
}

function securityFault(options: ServeOptions): string | undefined {
  if (options.token !== undefined) return undefined;
  const set = `Set ${TOKEN_VARIABLE} or --token.`;
  if (options.requireAuth) return `--require-auth needs a token. ${set}`;
  if (!isLoopbackName(options.hostname)) {
    return `Listening on ${options.hostname} lets other machines in, which needs a token. ${set}`;
  }
  if (options.allowOrigins.includes('*'))
    return `--allow-origin '*' lets every web page in, which needs a token. ${set}`;
  return undefined;
}

function childArguments(child: ChildOptions): string[] {
  return [
    ...(child.authType === undefined ? [] : ['--auth-type', child.authType]),
    ...(child.model === undefined ? [] : ['--model', child.model]),
    ...(child.script === undefined ? [] : ['--script', child.script]),
  ];
}

function startFailure(error: unknown, args: ServeArguments): string {
  const code = errorCode(error);
  const where = `${args.hostname ?? '127.0.0.1'}:${args.port ?? 4170}`;
  if (code === 'EADDRINUSE') return `${where} is in use already. Choose another --port, or 0 for a free one.`;
  if (code === 'EACCES') return `This user may not listen on ${where}. Choose a --port above 1023.`;
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') return `This machine has no address ${args.hostname}.`;
  return error instanceof Error ? error.message : String(error);
}
