/**
 * What a session refuses, and why. The ACP half turns each kind into its JSON-RPC error in one place;
 * the message is for the person and names what was wrong and what to do.
 */
export type SessionFaultKind =
  | 'unknown_session'
  | 'invalid_params'
  | 'transcript_changed'
  | 'transcript_busy'
  | 'auth_required'
  | 'storage'
  | 'provider';

export class SessionFault extends Error {
  readonly kind: SessionFaultKind;

  // By name: each bundle of dist/ has a copy of this class, and a fault of one must be known in another.
  static override [Symbol.hasInstance](value: unknown): boolean {
    return isErrorNamed(value, 'SessionFault');
  }

  constructor(kind: SessionFaultKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'SessionFault';
    this.kind = kind;
  }
}

/** What went wrong at the model's provider. */
export type ProviderFaultKind =
  | 'auth'
  | 'rate_limit'
  | 'server'
  | 'bad_request'
  | 'context_overflow'
  | 'broken_stream'
  | 'empty_reply';

export class ProviderFault extends Error {
  static override [Symbol.hasInstance](value: unknown): boolean {
    return isErrorNamed(value, 'ProviderFault');
  }

  readonly kind: ProviderFaultKind;
  /** HTTP status, where there was one. */
  readonly status: number | undefined;
  /** What the provider asked us to wait, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(
    kind: ProviderFaultKind,
    message: string,
    details: { readonly status?: number; readonly retryAfterMs?: number; readonly cause?: unknown } = {},
  ) {
    super(message, { cause: details.cause });
    this.name = 'ProviderFault';
    this.kind = kind;
    this.status = details.status;
    this.retryAfterMs = details.retryAfterMs;
  }
}

function isErrorNamed(value: unknown, name: string): boolean {
  return value instanceof Error && value.name === name;
}

/** Why a tool refused or failed, in the words of the reference's `errorType`. */
export type ToolFaultType =
  | 'invalid_tool_params'
  | 'path_not_in_workspace'
  | 'file_not_found'
  | 'target_is_directory'
  | 'path_is_not_a_directory'
  | 'attempt_to_create_existing_file'
  | 'file_too_large'
  | 'binary_file'
  | 'permission_denied'
  | 'edit_no_occurrence_found'
  | 'edit_expected_occurrence_mismatch'
  | 'edit_no_change'
  | 'file_changed'
  | 'shell_execute_error'
  | 'mcp_tool_error'
  | 'execution_timeout'
  | 'execution_failed';

/** A call that a tool refused or that failed; the text is for the model and the person alike. */
export class ToolFault extends Error {
  static override [Symbol.hasInstance](value: unknown): boolean {
    return isErrorNamed(value, 'ToolFault');
  }

  readonly type: ToolFaultType;

  constructor(type: ToolFaultType, message: string) {
    super(message);
    this.name = 'ToolFault';
    this.type = type;
  }
}
