/**
 * IP addresses, v4 and v6: how URLs write them, and lists of addresses and CIDRs that operators and owners allow or
 * trust.
 */
import ipaddr from "ipaddr.js";
import { unlessMalformed } from "./retry.ts";

/** A network: address and prefix length. A single address is a network of one. */
export type IpNetwork = readonly [ipaddr.IPv4 | ipaddr.IPv6, number];

/** Returns the host as written in a URL: an IPv6 address goes in brackets. */
export function urlHost(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}

/** Returns the host of a URL, without the brackets of an IPv6 address. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, "");
}

/** Returns the URL's port, or the default port of its scheme. */
export function portOf({ port, protocol }: URL): number {
  return Number(port) || (/^(https|wss):$/.test(protocol) ? 443 : 80);
}

/** Decodes percent encoding; text with malformed encoding is returned as it is. */
export function percentDecoded(text: string): string {
  return unlessMalformed(() => decodeURIComponent(text), text);
}

/** Whether the text is a complete address, v4 or v6. */
export function isAddress(text: string): boolean {
  return ipaddr.IPv4.isValidFourPartDecimal(text) || ipaddr.IPv6.isValid(text);
}

/** Whether the text is an address or a CIDR. */
export function isNetwork(text: string): boolean {
  return ipaddr.isValid(text) || ipaddr.isValidCIDR(text);
}

/** Splits `10.0.0.0/8:443`, `[fd00::7]:443` or `n8n.local:5678` into the host or network and the port, if any. */
export function splitPort(text: string): { place: string; port: number | null } {
  const named = isNetwork(text) ? null : /^([^:]+|\[.+\]|.+\/\d+):(\d{1,5})$/.exec(text);
  const place = (named ? named[1]! : text).replace(/^\[(.*)\]$/, "$1");
  return { place, port: named ? Number(named[2]) : null };
}

/** Parses an address or a CIDR. Throws if the text is neither. */
export function parseNetwork(text: string): IpNetwork {
  if (ipaddr.isValidCIDR(text)) return ipaddr.parseCIDR(text);
  const address = ipaddr.process(text);
  return [address, address.kind() === "ipv4" ? 32 : 128];
}

/**
 * Whether the text is an address in one of the networks. An IPv4-mapped IPv6 address counts as IPv4, because the system
 * connects to the same host.
 */
export function isInNetworks(networks: readonly IpNetwork[], address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  return networks.some(([network, bits]) => network.kind() === parsed.kind() && parsed.match(network, bits));
}

/** An IPv6 subscriber has at least a /64 and can use any address in it (RFC 6177). */
const SUBSCRIBER_BITS = 64;
/** Local networks, in which each address is a machine of its own. */
const LOCAL_RANGES = ["loopback", "linkLocal", "uniqueLocal"];

/**
 * Returns the subscriber to whom requests from the address are attributed: for a public IPv6 address its /64 network
 * (`2001:db8:1:2::/64`), so that one subscriber does not count as many. Any other text is returned as it is.
 */
export function subscriberOf(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  if (parsed.kind() === "ipv4" || LOCAL_RANGES.includes(parsed.range())) return parsed.toString();
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${parsed}/${SUBSCRIBER_BITS}`)}/${SUBSCRIBER_BITS}`;
}
