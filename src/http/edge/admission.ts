/**
 * Admits requests, whichever interface they come by: finds the caller, counts its requests, and delays refusals for a
 * client that causes many.
 */
import type { Caller } from "../../account/account.ts";
import { subscriberOf } from "../../base/addresses.ts";
import type { ApiContext } from "../api/route.ts";
import { type Auth, type AuthDeps, type KeyForm, makeAuth } from "./auth.ts";
import { makeHoldRefusal, makeLimitRate } from "./limits.ts";

interface Admission {
  /** Resolves to the caller, by a key that is valid now. Throws what `Auth` throws. */
  authenticate(c: ApiContext, form: KeyForm): Promise<Caller>;
  /** As `Auth.recognise`. */
  recognise(c: ApiContext, form: KeyForm): Promise<Caller>;
  /** Counts the request and sets the headers of the rate limit. Throws Problem rate_limited. */
  count(c: ApiContext, caller: Caller): Promise<void>;
}

export function makeAdmission(deps: AuthDeps): Admission {
  const { clock, clientAddress } = deps;
  const auth = makeAuth(deps);
  const limitRate = makeLimitRate(clock);
  const holdRefusal = makeHoldRefusal(clock);

  const identified = (identify: Auth["authenticate"] | Auth["recognise"]) => async (c: ApiContext, form: KeyForm) => {
    try {
      return await identify(c, form);
    } catch (error) {
      await holdRefusal(subscriberOf(clientAddress(c)));
      throw error;
    }
  };

  return {
    authenticate: identified(auth.authenticate),
    recognise: identified(auth.recognise),
    async count(c, caller) {
      try {
        limitRate(c, caller);
      } catch (error) {
        await holdRefusal(caller.account.id);
        throw error;
      }
    },
  };
}
