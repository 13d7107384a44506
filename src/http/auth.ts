/** Who calls, and whether from here (spec, Authentication). */
import type { Accounts, Caller } from "../account/account.ts";
import { domainAllowed, ipAllowed } from "../account/restrictions.ts";
import { Problem } from "../errors.ts";
import type { Clock } from "../runtime.ts";
import type { ClientAddress } from "./client_address.ts";
import type { ApiContext } from "./context.ts";

/** `bearer`: the PDF endpoint alone also takes `Authorization: Bearer` (spec, Authentication 3). */
export type KeyForm = "header" | "bearer";

/**
 * The caller. Throws Problem api_key_missing, api_key_invalid, account_deactivated, ip_not_allowed, domain_not_allowed,
 * subscription_expired.
 */
export type Authenticate = (c: ApiContext, form: KeyForm) => Promise<Caller>;

export function makeAuthenticate(
  { accounts, clock, clientAddress }: { accounts: Accounts; clock: Clock; clientAddress: ClientAddress },
): Authenticate {
  return async (c, form) => {
    const caller = await accounts.authenticate(readKey(c, form));
    if (caller === null) throw new Problem("api_key_invalid", "The key is unknown; it may have been regenerated.");
    const { account } = caller;
    if (!account.active) throw new Problem("account_deactivated", "The operator has deactivated this account.");
    if (account.allowedIps.length > 0) {
      const peer = c.env?.incoming?.socket.remoteAddress ?? "";
      const address = clientAddress(peer, c.req.header("x-forwarded-for") ?? null);
      if (!ipAllowed(account.allowedIps, address)) {
        throw new Problem("ip_not_allowed", `The key may not be used from ${address || "an unknown address"}.`);
      }
    }
    if (!domainAllowed(account.allowedDomains, pageHost(c))) {
      throw new Problem("domain_not_allowed", "The key may be used from pages of its allowed domains only.");
    }
    if (account.expiresAt !== null && clock.now() >= account.expiresAt) {
      throw new Problem("subscription_expired", `It ended on ${new Date(account.expiresAt).toISOString()}.`);
    }
    return caller;
  };
}

function readKey(c: ApiContext, form: KeyForm): string {
  const key = c.req.header("x-api-key")?.trim();
  if (key) return key;
  const bearer = /^Bearer +(\S+)\s*$/i.exec(c.req.header("authorization") ?? "")?.[1];
  if (bearer && form === "bearer") return bearer;
  throw new Problem(
    "api_key_missing",
    bearer
      ? "Send the key in the header x-api-key; the Bearer form works on /v1/message/send/pdf alone."
      : "Send the key in the header x-api-key.",
  );
}

/** Host of the page that calls: of Origin, else of Referer. */
function pageHost(c: ApiContext): string | null {
  const page = c.req.header("origin") ?? c.req.header("referer");
  if (page === undefined || !URL.canParse(page)) return null;
  return new URL(page).hostname || null;
}
