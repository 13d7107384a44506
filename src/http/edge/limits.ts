/**
 * How fast callers may go: requests a minute of an account (plan), reported in the headers of the IETF's rate limit
 * draft, new and old names; and refusals, which wait where one party has had many.
 */
import type { Caller } from "../../account/account.ts";
import { Problem } from "../../errors.ts";
import { type Clock, sleep } from "../../runtime.ts";
import type { ApiContext } from "../api/context.ts";

const MINUTE_MS = 60_000;
/** Callers that are remembered before windows that are over are removed. */
const MAX_WINDOWS = 10_000;
/** Of one party: these go out at once. */
const FREE_REFUSALS_A_SECOND = 50;
const REFUSAL_WAIT_MS = 500;
const SECOND_MS = 1_000;

/** Counts the request and sets the headers. Throws Problem rate_limited, with `Retry-After`. */
type LimitRate = (c: ApiContext, caller: Caller) => void;

/** Windows of one minute from an account's first request on, kept in this process only: a restart forgives. */
export function makeLimitRate(clock: Clock): LimitRate {
  const windows = new Map<string, { endsAt: number; used: number }>();
  return (c, { account, plan }) => {
    const limit = plan.requestsPerMinute;
    if (limit === null || c.env?.person) return;
    const now = clock.now();
    let window = windows.get(account.id);
    // A window that ends too late began before the clock was set back.
    if (!window || now >= window.endsAt || now < window.endsAt - MINUTE_MS) {
      if (windows.size >= MAX_WINDOWS) {
        for (const [id, { endsAt }] of windows) if (now >= endsAt) windows.delete(id);
      }
      windows.set(account.id, window = { endsAt: now + MINUTE_MS, used: 0 });
    }
    window.used++;
    const remaining = Math.max(0, limit - window.used);
    const reset = Math.max(1, Math.ceil((window.endsAt - now) / 1000));
    Object.assign(c.get("headers"), {
      "ratelimit-policy": `"minute";q=${limit};w=${MINUTE_MS / 1000}`,
      "ratelimit": `"minute";r=${remaining};t=${reset}`,
      "ratelimit-limit": String(limit),
      "ratelimit-remaining": String(remaining),
      "ratelimit-reset": String(reset),
    });
    if (window.used > limit) {
      throw new Problem("rate_limited", `The plan allows ${limit} requests a minute.`, { retryAfterSeconds: reset });
    }
  };
}

/** Resolves when a refusal of the party may go out. */
type HoldRefusal = (party: string) => Promise<void>;

/**
 * A refusal costs the caller nothing and the gateway some work: past so many a second each waits before it goes out, so
 * that a caller who retries at once is slowed down.
 */
export function makeHoldRefusal(clock: Clock): HoldRefusal {
  const windows = new Map<string, { begun: number; count: number }>();
  return async (party) => {
    const now = clock.now();
    let window = windows.get(party);
    if (!window || Math.abs(now - window.begun) >= SECOND_MS) {
      if (windows.size >= MAX_WINDOWS) windows.clear();
      windows.set(party, window = { begun: now, count: 0 });
    }
    if (++window.count > FREE_REFUSALS_A_SECOND) await sleep(clock, REFUSAL_WAIT_MS);
  };
}
