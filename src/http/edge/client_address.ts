/** Finds the client's address behind the proxies that the operator trusts. */
import ipaddr from "ipaddr.js";
import { isInNetworks, parseNetwork } from "../../base/addresses.ts";

/** The parts of a request that tell its address; a request made inside the process has no connection. */
interface Arrived {
  env?: { incoming?: { socket: { remoteAddress?: string | undefined } } };
  req: { header(name: "x-forwarded-for"): string | undefined };
}

/** Returns the address of the client, which may be behind proxies. */
export type ClientAddress = (request: Arrived) => string;

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
