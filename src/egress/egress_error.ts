/** Why a request to an address that a user named did not work. */
const EGRESS_ERRORS = [
  "forbidden_url",
  "forbidden_address",
  "unresolved",
  "unreachable",
  "tls_failed",
  "timeout",
  "aborted",
  "too_large",
  "too_many_redirects",
  "bad_response",
] as const;

/** Why a request did not work; the message is one sentence that users may read. */
export class EgressError extends Error {
  readonly code: (typeof EGRESS_ERRORS)[number];

  constructor(code: EgressError["code"], message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "EgressError";
    this.code = code;
  }
}
