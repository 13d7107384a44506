/**
 * Rate limits: requests per minute and key, set by the plan and reported in the headers of the IETF rate limit draft
 * (new and old names); and refusals, which are delayed for a tenant that causes many.
 */
import type { Caller } from "../../account/account.ts";
import { Windows } from "../../base/windows.ts";
import { Problem } from "../../errors.ts";
import { type Clock, sleep } from "../../runtime.ts";
import type { ApiContext } from "../api/route.ts";

const MINUTE_MS = 60_000;
/** Refusals per tenant that are sent at once. */
const FREE_REFUSALS_A_SECOND = 50;
const REFUSAL_WAIT_MS = 500;
const SECOND_MS = 1_000;

/** Counts the request and sets the headers. Throws Problem rate_limited, with `Retry-After`. */
type LimitRate = (c: ApiContext, caller: Caller) => void;

/**
 * Counts in windows of one minute that start with a key's first request; the account's own key counts by account id.
 */
export function makeLimitRate(clock: Clock): LimitRate {
  const windows = new Windows(clock, MINUTE_MS);
  return (c, { account, plan, key }) => {
    const limit = plan.requestsPerMinute;
    if (limit === null || c.env?.admitted) return;
    const tenant = key?.id ?? account.id;
    const { count } = windows.add(tenant);
    const remaining = Math.max(0, limit - count);
    const reset = windows.secondsLeft(tenant);
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

/** Resolves when a refusal may be sent to the tenant. */
type HoldRefusal = (tenant: string) => Promise<void>;

/**
 * Delays each refusal beyond a number per second, so that a caller that retries at once is slowed down: refusals cost
 * the caller nothing and the gateway some work.
 */
export function makeHoldRefusal(clock: Clock): HoldRefusal {
  const windows = new Windows(clock, SECOND_MS);
  return async (tenant) => {
    if (windows.add(tenant).count > FREE_REFUSALS_A_SECOND) await sleep(clock, REFUSAL_WAIT_MS);
  };
}
