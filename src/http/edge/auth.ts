/**
 * Admits requests, whichever interface they come by: authenticates the caller and checks where the key may be used from (spec, Authentication), with the client's address
 * behind the proxies that the operator trusts, counts its requests, and delays refusals for a client that causes many.
 * Requests made inside the process bring their caller.
 */
import ipaddr from "ipaddr.js";
import {
  type Account,
  assertActive,
  assertSubscribed,
  type Caller,
  domainAllowed,
  ipAllowed,
} from "../../account/account.ts";
import type { Callers } from "../../account/callers.ts";
import { keyUnknown } from "../../account/api_key.ts";
import type { AccountKeys } from "../../account/keys.ts";
import { isInNetworks, parseNetwork, subscriberOf } from "../../base/addresses.ts";
import { Problem } from "../../errors.ts";
import type { Clock } from "../../runtime.ts";
import type { ApiContext } from "../api/route.ts";
import { makeHoldRefusal, makeLimitRate } from "./rate_limit.ts";

/**
 * `bearer`: also `Authorization: Bearer`, which of the API only the PDF endpoint accepts (spec, Authentication 3);
 * `query`: also the parameter `access_token`.
 */
type KeyForm = "header" | "bearer" | "query";

interface AuthDeps {
  callers: Pick<Callers, "authenticate" | "recall">;
  keys: AccountKeys;
  clock: Clock;
  clientAddress: ClientAddress;
}

/**
 * Both methods throw Problem api_key_missing, api_key_invalid, account_deactivated, ip_not_allowed, domain_not_allowed,
 * subscription_expired.
 */
function makeAuth({ callers, keys, clock, clientAddress }: AuthDeps) {
  const checkPlace = makeCheckPlace(clientAddress);

  async function read(c: ApiContext, key: string): Promise<Caller> {
    return allowed(c, await callers.authenticate(key) ?? await keys.authenticate(key));
  }

  function allowed(c: ApiContext, caller: Caller | null): Caller {
    if (caller === null) throw keyUnknown();
    const { account } = caller;
    assertActive(account);
    checkPlace(c, caller.key ?? account);
    assertSubscribed(account, clock.now());
    return caller;
  }

  return {
    /** Resolves to the caller, by a key that is valid now. */
    async authenticate(c: ApiContext, form: KeyForm): Promise<Caller> {
      const admitted = c.env?.admitted;
      return admitted ? await admitted.caller() : await read(c, readKey(c, form));
    },
    /**
     * Returns the caller, possibly by a key that was valid a moment ago: the commit that serves it must check `keyRow`.
     */
    recognise(c: ApiContext, form: KeyForm): Caller | Promise<Caller> {
      const admitted = c.env?.admitted;
      if (admitted) return admitted.caller();
      const key = readKey(c, form);
      const recalled = callers.recall(key);
      return recalled ? allowed(c, recalled) : read(c, key);
    },
  };
}

/** Throws Problem ip_not_allowed or domain_not_allowed if the request comes from elsewhere. */
type CheckPlace = (c: ApiContext, restrictions: Pick<Account, "allowedIps" | "allowedDomains">) => void;

function makeCheckPlace(clientAddress: ClientAddress): CheckPlace {
  return (c, { allowedIps, allowedDomains }) => {
    if (allowedIps.length > 0) {
      const address = clientAddress(c);
      if (!ipAllowed(allowedIps, address)) {
        throw new Problem("ip_not_allowed", `The key may not be used from ${address || "an unknown address"}.`);
      }
    }
    if (allowedDomains.length > 0 && !domainAllowed(allowedDomains, pageHost(c))) {
      throw new Problem("domain_not_allowed", "The key may be used only from pages of its allowed domains.");
    }
  };
}

/** Returns the request's key. Throws Problem api_key_missing. */
function readKey(c: ApiContext, form: KeyForm): string {
  const key = c.req.header("x-api-key")?.trim();
  if (key) return key;
  const bearer = /^Bearer +(\S+)\s*$/i.exec(c.req.header("authorization") ?? "")?.[1];
  if (bearer && form !== "header") return bearer;
  const token = form === "query" ? c.req.query("access_token") : undefined;
  if (token) return token;
  throw new Problem(
    "api_key_missing",
    bearer
      ? "Send the key in the header x-api-key; only /v1/message/send/pdf accepts Authorization: Bearer."
      : "Send the key in the header x-api-key.",
  );
}

/** Returns the host of the page that makes the request, from Origin or else Referer; null if neither names one. */
function pageHost(c: ApiContext): string | null {
  const page = c.req.header("origin") ?? c.req.header("referer");
  if (page === undefined || !URL.canParse(page)) return null;
  return new URL(page).hostname || null;
}

/** The parts of a request that tell its address; a request made inside the process has no connection. */
interface Arrived {
  env?: { incoming?: { socket: { remoteAddress?: string | undefined } } };
  req: { header(name: "x-forwarded-for"): string | undefined };
}

/** Returns the address of the client, which may be behind proxies. */
type ClientAddress = (request: Arrived) => string;

/** Returns the address of the connection's peer: the client, or a proxy; empty without a connection. */
export function peerOf({ env }: Arrived): string {
  return env?.incoming?.socket.remoteAddress ?? "";
}

/**
 * Reads X-Forwarded-For from the right, because each proxy appends the peer it saw. The first address that is not a
 * trusted proxy is the client's; anything to the left of it may be forged.
 */
export function makeClientAddress(trustedProxies: readonly string[]): ClientAddress {
  const networks = trustedProxies.map(parseNetwork);
  return (request) => {
    let client = peerOf(request);
    const hops = request.req.header("x-forwarded-for")?.split(",").reverse() ?? [];
    for (const hop of hops) {
      if (!isInNetworks(networks, client)) break;
      const address = withoutPort(hop.trim());
      if (!ipaddr.isValid(address)) break;
      client = address;
    }
    return ipaddr.isValid(client) ? ipaddr.process(client).toString() : client;
  };
}

/** Removes a port, as in `192.0.2.1:4711` and `[2001:db8::1]:4711`, which some proxies append. */
function withoutPort(hop: string): string {
  return /^\[(.+)\](?::\d+)?$/.exec(hop)?.[1] ?? /^([\d.]+):\d+$/.exec(hop)?.[1] ?? hop;
}

type Identify = (c: ApiContext, form: KeyForm) => Caller | Promise<Caller>;

/** Makes `authenticate` and `recognise`, which are those of `makeAuth`, and `count`. */
export function makeAdmission(deps: AuthDeps) {
  const { clock, clientAddress } = deps;
  const auth = makeAuth(deps);
  const limitRate = makeLimitRate(clock);
  const holdRefusal = makeHoldRefusal(clock);

  const identified = (identify: Identify) => async (c: ApiContext, form: KeyForm) => {
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
    /** Counts the request and sets the headers of the rate limit. Throws Problem rate_limited. */
    async count(c: ApiContext, caller: Caller): Promise<void> {
      try {
        limitRate(c, caller);
      } catch (error) {
        await holdRefusal(caller.account.id);
        throw error;
      }
    },
  };
}
