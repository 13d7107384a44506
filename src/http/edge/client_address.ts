/** Where a request comes from, looking through the proxies that the operator trusts. */
import ipaddr from "ipaddr.js";
import { isInNetworks, parseNetwork } from "../../base/addresses.ts";

/** What the address of a request is read from; a request within the process has no connection. */
interface Arrived {
  env?: { incoming?: { socket: { remoteAddress?: string | undefined } } };
  req: { header(name: "x-forwarded-for"): string | undefined };
}

/** The address of the client behind the other end of the connection. */
export type ClientAddress = (request: Arrived) => string;

/** The other end of the connection: the client, or a proxy. */
export function peerOf({ env }: Arrived): string {
  return env?.incoming?.socket.remoteAddress ?? "";
}

/**
 * X-Forwarded-For is read from the right, because each proxy appends whom it saw: the first address that is not a
 * trusted proxy is the client, and whatever stands left of it may be invented.
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

/** `192.0.2.1:4711` and `[2001:db8::1]:4711`, as some proxies write. */
function withoutPort(hop: string): string {
  return /^\[(.+)\](?::\d+)?$/.exec(hop)?.[1] ?? /^([\d.]+):\d+$/.exec(hop)?.[1] ?? hop;
}
