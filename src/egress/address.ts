/** Which addresses users may make the gateway call: public ones, and what the operator allows (PALOMA_OUTBOUND_ALLOW). */
import ipaddr from "ipaddr.js";
import { type IpNetwork, isInNetworks, isNetwork, parseNetwork, splitPort } from "../base/addresses.ts";

/** Azure's platform service: a public number that only answers from inside. */
const INTERNAL_ANYWAY = new Set(["168.63.129.16"]);
/** All of the public IPv6 internet lies here. */
const GLOBAL_UNICAST = ipaddr.parseCIDR("2000::/3");

/**
 * Whether the address is on the public internet. Private, loopback, link-local, carrier-grade NAT, metadata, multicast,
 * documentation and reserved ones are not; neither are IPv6 forms that carry an IPv4 address inside (mapped, compatible,
 * 6to4, NAT64, Teredo), since a translator on the way would turn them into any of these.
 */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address) || address.includes("%")) return false;
  const parsed = ipaddr.parse(address);
  if (parsed.range() !== "unicast") return false;
  if (parsed.kind() === "ipv4") return !INTERNAL_ANYWAY.has(parsed.toString());
  return parsed.match(GLOBAL_UNICAST);
}

/** What the operator allows beyond the public internet. */
export interface AllowList {
  /** The name as it stands in the URL, whatever it resolves to. */
  allowsHost(hostname: string, port: number): boolean;
  allowsAddress(address: string, port: number): boolean;
}

/** What an entry without a port opens: the web's, and those that no system service has to itself. */
const FIRST_FREE_PORT = 1_024;
const isWeb = (port: number) => port === 80 || port === 443 || port >= FIRST_FREE_PORT;

/**
 * Reads entries: an address (`10.0.0.7`, `fd00::7`), a CIDR (`10.0.0.0/8`), a host name (`erp.internal`), or a host name
 * with everything below it (`*.internal`), each with or without a port (`10.0.0.0/8:443`, `n8n.local:5678`).
 */
export function readAllowList(entries: readonly string[]): AllowList {
  const networks: { network: IpNetwork; opens: Opens }[] = [];
  const names: { fits(name: string): boolean; opens: Opens }[] = [];
  for (const entry of entries.map((text) => text.trim().toLowerCase()).filter(Boolean)) {
    const { place, port } = splitPort(entry);
    const opens: Opens = port === null ? isWeb : (asked) => asked === port;
    if (isNetwork(place)) networks.push({ network: parseNetwork(place), opens });
    else if (place.startsWith("*.")) names.push({ fits: (name) => name.endsWith(place.slice(1)), opens });
    else names.push({ fits: (name) => name === place, opens });
  }
  return {
    allowsHost(hostname, port) {
      const name = hostname.toLowerCase().replace(/\.$/, "");
      return names.some(({ fits, opens }) => opens(port) && fits(name));
    },
    allowsAddress: (address, port) =>
      networks.some(({ network, opens }) => opens(port) && isInNetworks([network], address)),
  };
}

type Opens = (port: number) => boolean;
