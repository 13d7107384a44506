/**
 * The catalogue of errors that a client may receive, each with its HTTP status and title.
 * Code below `http/` throws `Problem`; only `http/server.ts` renders it, as RFC 9457 problem+json.
 */
export const CATALOGUE = {
  malformed_json: { status: 400, title: "The body is not valid JSON" },
  validation_failed: { status: 400, title: "The request does not match the schema" },
  api_key_missing: { status: 401, title: "No API key was sent" },
  api_key_invalid: { status: 401, title: "The API key is not valid" },
  account_deactivated: { status: 401, title: "The account is deactivated" },
  ip_not_allowed: { status: 403, title: "The API key may not be used from this address" },
  domain_not_allowed: { status: 403, title: "The API key may not be used from this domain" },
  subscription_expired: { status: 403, title: "The subscription has expired" },
  scope_missing: { status: 403, title: "The API key lacks the required scope" },
  recipient_opted_out: { status: 403, title: "The recipient has opted out" },
  network_forbidden: { status: 403, title: "The messaging network does not allow the session to do this" },
  limit_reached: { status: 403, title: "The plan's limit is reached" },
  session_limit_reached: { status: 403, title: "The plan's session limit is reached" },
  not_found: { status: 404, title: "The resource does not exist" },
  method_not_allowed: { status: 405, title: "The path does not support this method" },
  session_not_connected: { status: 409, title: "The session is not connected" },
  no_connected_session: { status: 409, title: "The account has no connected session" },
  username_key_required: { status: 409, title: "The username can only be looked up with its key" },
  network_conflict: { status: 409, title: "The request conflicts with the state of the messaging network" },
  passkey_not_requested: { status: 409, title: "The passkey step is not requested at the moment" },
  not_editable: { status: 409, title: "The message cannot be changed" },
  not_revocable: { status: 409, title: "The message cannot be deleted for everyone" },
  template_exists: { status: 409, title: "A template with this name and language exists" },
  not_waiting_for_approval: { status: 409, title: "The message does not wait for approval" },
  not_cancellable: { status: 409, title: "The message can no longer be cancelled" },
  payload_too_large: { status: 413, title: "The payload is too large" },
  unsupported_media_type: { status: 415, title: "The content type is not supported" },
  range_not_satisfiable: { status: 416, title: "The range is outside the file" },
  idempotency_key_reused: { status: 422, title: "The idempotency key was used for a different request" },
  passkey_refused: { status: 422, title: "The passkey's signature was refused" },
  rate_limited: { status: 429, title: "Too many requests" },
  too_much_at_once: { status: 429, title: "The account uses too many resources at once" },
  quota_exceeded: { status: 429, title: "The plan's quota is used up" },
  internal_error: { status: 500, title: "The gateway failed unexpectedly" },
  network_error: { status: 502, title: "The messaging network returned an error" },
  storage_unavailable: { status: 503, title: "The storage is unavailable" },
  busy: { status: 503, title: "The gateway is at capacity" },
  network_timeout: { status: 504, title: "The messaging network did not answer in time" },
} as const satisfies Record<string, { status: number; title: string }>;

export type ProblemCode = keyof typeof CATALOGUE;

/** A fault at one place of the request; `path` looks like `messages.2.to`. */
export interface FieldError {
  path: string;
  message: string;
}

interface ProblemExtras {
  /** Field errors, for `validation_failed`. */
  errors?: FieldError[];
  /** Seconds after which a retry makes sense; rendered as the `Retry-After` header. */
  retryAfterSeconds?: number;
  /** Further response headers. */
  headers?: Readonly<Record<string, string>>;
  /** Further members of the problem document, such as `remaining`. */
  members?: Record<string, unknown>;
  cause?: unknown;
}

/** An error from the catalogue. `detail` is one sentence for the client's developer. */
export class Problem extends Error {
  override name = "Problem";

  constructor(readonly code: ProblemCode, detail: string, readonly extras: ProblemExtras = {}) {
    super(detail, { cause: extras.cause });
  }

  get status(): number {
    return CATALOGUE[this.code].status;
  }
}

/** A problem that the operator can fix. The message says in a sentence what is wrong and what to do about it. */
export class OperatorError extends Error {
  override name = "OperatorError";

  /** `code`: for scripts, like that of a problem: `already_running`. */
  constructor(readonly code: string, message: string, options?: ErrorOptions) {
    super(message, options);
  }
}

/** Returns the 404 that also answers for another account's ids, so that ids cannot be probed. */
export function notFound(what: string): Problem {
  return new Problem("not_found", `There is no such ${what}.`);
}

/** Returns a validation problem at one path. */
export function invalid(path: string, message: string): Problem {
  return new Problem("validation_failed", `${path}: ${message}`, { errors: [{ path, message }] });
}
