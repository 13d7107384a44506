/** What kept a request to an address that a user named from working. */
type EgressErrorCode =
  | "forbidden_url"
  | "forbidden_address"
  | "unresolved"
  | "unreachable"
  | "tls_failed"
  | "timeout"
  | "aborted"
  | "too_large"
  | "too_many_redirects"
  | "bad_response";

/** Why a request did not work; the message is one sentence that users may read. */
export class EgressError extends Error {
  readonly code: EgressErrorCode;

  constructor(code: EgressErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "EgressError";
    this.code = code;
  }
}

/** What somebody else's error says, short enough to be passed on. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message.slice(0, 200) : "unknown";
}
