/** Requests a minute for one key (plan), reported in the headers of the IETF's rate limit draft, new and old names. */
import type { Caller } from "../../account/account.ts";
import { Problem } from "../../errors.ts";
import type { Clock } from "../../runtime.ts";
import type { ApiContext } from "../api/context.ts";

const WINDOW_MS = 60_000;
/** Expired windows are removed when there are this many. */
const MAX_WINDOWS = 10_000;

/** Counts the request and sets the headers. Throws Problem rate_limited, with `Retry-After`. */
type LimitRate = (c: ApiContext, caller: Caller) => void;

/** Windows of one minute from a key's first request on, kept in this process only: a restart forgives. */
export function makeLimitRate(clock: Clock): LimitRate {
  const windows = new Map<string, { endsAt: number; used: number }>();
  return (c, { account, plan }) => {
    const limit = plan.requestsPerMinute;
    if (limit === null || c.env?.person) return;
    const now = clock.now();
    let window = windows.get(account.id);
    // A window that ends too late began before the clock was set back.
    if (!window || now >= window.endsAt || now < window.endsAt - WINDOW_MS) {
      if (windows.size >= MAX_WINDOWS) {
        for (const [id, { endsAt }] of windows) if (now >= endsAt) windows.delete(id);
      }
      windows.set(account.id, window = { endsAt: now + WINDOW_MS, used: 0 });
    }
    window.used++;
    const remaining = Math.max(0, limit - window.used);
    const reset = Math.max(1, Math.ceil((window.endsAt - now) / 1000));
    Object.assign(c.get("headers"), {
      "ratelimit-policy": `"minute";q=${limit};w=${WINDOW_MS / 1000}`,
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
