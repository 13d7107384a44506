/** Addresses, v4 and v6: how URLs write them, and lists of them and of CIDRs, which operators and owners allow and trust. */
import ipaddr from "ipaddr.js";

/** A network: its address and prefix length; a single address is a network of its own. */
export type IpNetwork = readonly [ipaddr.IPv4 | ipaddr.IPv6, number];

/** The host as it stands in a URL: an IPv6 address in brackets. */
export function urlHost(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}

/** The host of a URL without the brackets of an IPv6 address. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, "");
}

/** The port that the URL names or its scheme means. */
export function portOf({ port, protocol }: URL): number {
  return Number(port) || (/^(https|wss):$/.test(protocol) ? 443 : 80);
}

/** Whether the text is a complete address, v4 or v6. */
export function isAddress(text: string): boolean {
  return ipaddr.IPv4.isValidFourPartDecimal(text) || ipaddr.IPv6.isValid(text);
}

/** Whether the text is an address or a CIDR. */
export function isNetwork(text: string): boolean {
  return ipaddr.isValid(text) || ipaddr.isValidCIDR(text);
}

/** `10.0.0.0/8:443`, `[fd00::7]:443`, `n8n.local:5678`: the host or network, and the port if there is one. */
export function splitPort(text: string): { place: string; port: number | null } {
  const named = isNetwork(text) ? null : /^([^:]+|\[.+\]|.+\/\d+):(\d{1,5})$/.exec(text);
  const place = (named ? named[1]! : text).replace(/^\[(.*)\]$/, "$1");
  return { place, port: named ? Number(named[2]) : null };
}

/** Throws when the text is neither an address nor a CIDR. */
export function parseNetwork(text: string): IpNetwork {
  if (ipaddr.isValidCIDR(text)) return ipaddr.parseCIDR(text);
  const address = ipaddr.process(text);
  return [address, address.kind() === "ipv4" ? 32 : 128];
}

/**
 * Whether the address lies in one of the networks; false for anything else. An IPv4 address mapped into IPv6 counts
 * as IPv4: the system connects to the same place.
 */
export function isInNetworks(networks: readonly IpNetwork[], address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  return networks.some(([network, bits]) => network.kind() === parsed.kind() && parsed.match(network, bits));
}

/** A subscriber to IPv6 has at least so many addresses, and takes a new one at will (RFC 6177). */
const SUBSCRIBER_BITS = 64;
/** Networks of many machines, none of which comes from far. */
const LOCAL_RANGES = ["loopback", "linkLocal", "uniqueLocal"];

/**
 * Whom to count for an address: its network where it is a public one of IPv6, `2001:db8:1:2::/64`, so that nobody counts
 * as many. Any other text stands for itself.
 */
export function subscriberOf(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  if (parsed.kind() === "ipv4" || LOCAL_RANGES.includes(parsed.range())) return parsed.toString();
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${parsed}/${SUBSCRIBER_BITS}`)}/${SUBSCRIBER_BITS}`;
}
