/** What a connection says to a question about one message: silence and an exception are answers too (promise 4). */
import { type Runtime, sleep } from "../runtime.ts";
import type { SendOutcome } from "../whatsapp/connection.ts";

export type Unanswered = Extract<SendOutcome, { kind: "unknown" }>;

export interface Question {
  messageId: string;
  /** How long the connection may take, milliseconds. */
  limitMs: number;
  /** Nobody waits for the answer any more once it is aborted. */
  signal?: AbortSignal;
}

/** The connection's answer to `ask`, or `unknown` when there is none within the limit. Never rejects. */
export async function answerOf<Answer>(
  ask: () => Promise<Answer>,
  { messageId, limitMs, signal }: Question,
  { clock, log }: Pick<Runtime, "clock" | "log">,
): Promise<Answer | Unanswered> {
  const over = new AbortController();
  const waiting = AbortSignal.any(signal ? [signal, over.signal] : [over.signal]);
  const silence = sleep(clock, limitMs, waiting)
    .then((): Unanswered => ({ kind: "unknown", detail: "the connection did not answer" }));
  try {
    return await Promise.race([ask(), silence]);
  } catch (error) {
    log.error({ messageId, error: String(error) }, "a connection threw over a message");
    return { kind: "unknown", detail: "the connection failed" };
  } finally {
    over.abort();
  }
}
