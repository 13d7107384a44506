/** Verifications of an account: a customer proves that a number is theirs by sending a code from it. */
import type { Plan } from "../account/plan.ts";
import { notFound, Problem } from "../errors.ts";
import type { Runtime } from "../runtime.ts";
import { Change, type Kv, retryOnConflict } from "../store/kv.ts";
import { makeCode } from "./code.ts";
import { type Verification, verificationKeys } from "./rows.ts";

interface VerificationsDeps {
  kv: Kv;
  runtime: Pick<Runtime, "clock" | "confirmed" | "ids" | "random">;
}

type NewVerification =
  & Pick<Verification, "sessionId" | "phone" | "purpose" | "asked">
  & { /** How long it stays open. */ ttlMs: number };

export function makeVerifications({ kv, runtime: { clock, confirmed, ids, random } }: VerificationsDeps) {
  /** Opens a verification. Throws Problem limit_reached if too many of the account are open. */
  async function open(
    { account: { id: accountId }, plan }: { account: { id: string }; plan: Pick<Plan, "verifications"> },
    { ttlMs, ...of }: NewVerification,
  ): Promise<Verification> {
    return await retryOnConflict(kv, async () => {
      const open = await kv.get(verificationKeys.open(accountId));
      if ((open.value ?? 0n) >= plan.verifications) {
        throw new Problem("limit_reached", `The plan allows ${plan.verifications} open verifications.`);
      }
      const createdAt = clock.now();
      const id = ids.next("ver");
      const code = makeCode(random);
      const times = { createdAt, expiresAt: createdAt + ttlMs };
      const result: Verification = {
        id,
        accountId,
        ...of,
        code,
        status: "pending",
        reason: null,
        from: null,
        ...times,
      };
      const byCode = verificationKeys.code(of.sessionId, code);
      const change = new Change().check(open).add(open.key, 1).checkAbsent(byCode).set(byCode, { accountId, id })
        .set(verificationKeys.verification(accountId, id), result)
        .set(verificationKeys.due(result.expiresAt, id), { accountId });
      return { change, result };
    });
  }

  /** Returns the verification as it is now. Throws Problem not_found, also for another account's. */
  async function get(accountId: string, id: string): Promise<Verification> {
    const { value } = await kv.get(verificationKeys.verification(accountId, id));
    if (value === null) throw notFound("verification");
    // The sweep, which reports the end, comes a little later.
    return isOver(value, confirmed.now()) ? { ...value, status: "expired", reason: EXPIRED } : value;
  }

  return { open, get };
}

/** The reason of a verification whose time is over. */
export const EXPIRED = "expired";

/** Returns whether nobody passes it any more, although that is not recorded yet. */
export function isOver({ status, expiresAt }: Verification, now: number): boolean {
  return status === "pending" && expiresAt <= now;
}
