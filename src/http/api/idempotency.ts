/** `Idempotency-Key` on every POST: what makes two requests the same, and where the first answer comes from. */
import { createHash } from "node:crypto";
import type { Idempotency, Keep, RepeatableRequest } from "../../account/idempotency.ts";
import { invalid } from "../../errors.ts";
import type { ApiContext } from "./context.ts";
import type { Answer } from "./route.ts";

/** What a key looks like. */
export const KEY = /^[\x21-\x7e]{1,255}$/;

/** The key of a POST, or null without one. Throws Problem validation_failed. */
export function idempotencyKey(c: ApiContext): string | null {
  if (c.req.method !== "POST") return null;
  const key = c.req.header("idempotency-key");
  if (key === undefined) return null;
  if (!KEY.test(key)) throw invalid("idempotency-key", "must have 1 to 255 visible ASCII characters");
  return key;
}

/**
 * The request as one that may be repeated, or null without a key. `parts` stand for the body: its bytes, or for an
 * upload its fields and the hash of its file, because boundaries differ from one try to the next.
 */
export function repeatable(
  c: ApiContext,
  { accountId, parts }: { accountId: string; parts: readonly (string | Uint8Array)[] },
): RepeatableRequest | null {
  const key = idempotencyKey(c);
  if (key === null) return null;
  const hash = createHash("sha256").update(`${c.req.method}\n${c.req.path}\n`);
  for (const part of parts) hash.update(`${part.length}\n`).update(part);
  return { accountId, key, fingerprint: hash.digest("hex") };
}

interface MadeOnceOptions<T> {
  idempotency: Pick<Idempotency, "onceInCommit">;
  /** Null: without a key, nothing is kept. */
  repeat: RepeatableRequest | null;
  answerTo: (made: T) => Answer;
}

/**
 * The answer to what `make` makes; to a repetition the first one. `make` calls `keep` for the change that makes it, so
 * that the client never has to fear that its repetition makes a second. Throws Problem idempotency_key_reused, and as
 * `make`.
 */
export async function madeOnce<T>(
  { idempotency, repeat, answerTo }: MadeOnceOptions<T>,
  make: (keep: Keep<T>) => Promise<T>,
): Promise<Answer> {
  if (repeat === null) return answerTo(await make(() => {}));
  return await idempotency.onceInCommit<Answer>(
    repeat,
    async (keep) => answerTo(await make((change, made) => keep(change, answerTo(made)))),
  );
}
