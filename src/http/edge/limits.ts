/**
 * How fast callers may go: requests a minute of a key (plan), reported in the headers of the IETF's rate limit
 * draft, new and old names; and refusals, which wait where one party has had many.
 */
import type { Caller } from "../../account/account.ts";
import { Windows } from "../../base/windows.ts";
import { Problem } from "../../errors.ts";
import { type Clock, sleep } from "../../runtime.ts";
import type { ApiContext } from "../api/context.ts";

const MINUTE_MS = 60_000;
/** Of one party: these go out at once. */
const FREE_REFUSALS_A_SECOND = 50;
const REFUSAL_WAIT_MS = 500;
const SECOND_MS = 1_000;

/** Counts the request and sets the headers. Throws Problem rate_limited, with `Retry-After`. */
type LimitRate = (c: ApiContext, caller: Caller) => void;

/** Windows of one minute from a key's first request on; the account's own key goes by the account. */
export function makeLimitRate(clock: Clock): LimitRate {
  const windows = new Windows(clock, MINUTE_MS);
  return (c, { account, plan, key }) => {
    const limit = plan.requestsPerMinute;
    if (limit === null || c.env?.person) return;
    const party = key?.id ?? account.id;
    const { count } = windows.add(party);
    const remaining = Math.max(0, limit - count);
    const reset = windows.secondsLeft(party);
    Object.assign(c.get("headers"), {
      "ratelimit-policy": `"minute";q=${limit};w=${MINUTE_MS / 1000}`,
      "ratelimit": `"minute";r=${remaining};t=${reset}`,
      "ratelimit-limit": String(limit),
      "ratelimit-remaining": String(remaining),
      "ratelimit-reset": String(reset),
    });
    if (count > limit) {
      throw new Problem("rate_limited", `The plan allows ${limit} requests a minute with each key.`, {
        retryAfterSeconds: reset,
      });
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
  const windows = new Windows(clock, SECOND_MS);
  return async (party) => {
    if (windows.add(party).count > FREE_REFUSALS_A_SECOND) await sleep(clock, REFUSAL_WAIT_MS);
  };
}
