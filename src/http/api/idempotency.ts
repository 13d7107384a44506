/** `Idempotency-Key` on every POST: what makes two requests the same, and how a repeated request is answered. */
import { createHash } from "node:crypto";
import type { Idempotency, Keep, RepeatableRequest } from "../../account/idempotency.ts";
import { invalid } from "../../errors.ts";
import type { Answer, ApiContext } from "./route.ts";

/** The form of a key. */
export const KEY = /^[\x21-\x7e]{1,255}$/;

/** Returns the key of a POST, or null without one. Throws Problem validation_failed. */
export function idempotencyKey(c: ApiContext): string | null {
  if (c.req.method !== "POST") return null;
  const key = c.req.header("idempotency-key");
  if (key === undefined) return null;
  if (!KEY.test(key)) throw invalid("idempotency-key", "must have 1 to 255 visible ASCII characters");
  return key;
}

/**
 * Returns the request's identity, or null without a key. `parts` represent the body: its bytes, or for an upload its
 * fields and the hash of its file, because multipart boundaries differ between attempts.
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
  /** Null: there is no key, and no answer is kept. */
  repeat: RepeatableRequest | null;
  answerTo: (made: T) => Answer;
}

/**
 * Answers with what `make` creates, and a repeated request with the first answer. `make` must call `keep` on the change
 * that creates it, so that a repeated request never creates a second one. Throws Problem idempotency_key_reused, and
 * what `make` throws.
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
