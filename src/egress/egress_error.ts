/** Reasons why a request to a user-given address failed. */
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

/** A failed request. The message is one sentence fit for users. */
export class EgressError extends Error {
  override name = "EgressError";

  constructor(readonly code: EgressErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
  }
}

/** Returns the message of a foreign error, shortened for display. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message.slice(0, 200) : "unknown";
}
