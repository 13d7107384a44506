/** What goes wrong, by whose fault: the gateway refused, it could not be reached, events are gone, a webhook is forged. */
import type { Problem } from "./api.ts";

/** `unknown` if a proxy answered in the gateway's place. */
export type PalomaErrorCode = Problem["code"] | "unknown";

/** The gateway refused: a problem document (RFC 9457). */
export class PalomaError extends Error {
  override readonly name = "PalomaError";
  readonly status: number;
  readonly code: PalomaErrorCode;
  /** The whole document; empty if a proxy answered in the gateway's place. */
  readonly problem: Partial<Problem>;
  /** From `Retry-After`; null if there was none. */
  readonly retryAfterMs: number | null;

  constructor(
    status: number,
    problem: Partial<Problem>,
    retryAfterMs: number | null = null,
  ) {
    const code = problem.code ?? "unknown";
    super(
      `${status} ${code}: ${problem.detail ?? problem.title ?? "no details"}`,
    );
    this.status = status;
    this.code = code;
    this.problem = problem;
    this.retryAfterMs = retryAfterMs;
  }
}

/** No answer came, in all tries. Whether the request was carried out is unknown. `cause` is the last try's error. */
export class PalomaConnectionError extends Error {
  override readonly name = "PalomaConnectionError";
}

/** Events after the cursor are no longer kept, so some were missed. */
export class EventGapError extends Error {
  override readonly name = "EventGapError";
  readonly cursor: string;

  constructor(cursor: string) {
    super(`events after ${cursor} are no longer kept`);
    this.cursor = cursor;
  }
}

/** The request was not signed with any of the secrets, or too long ago. */
export class WebhookVerificationError extends Error {
  override readonly name = "WebhookVerificationError";
}
