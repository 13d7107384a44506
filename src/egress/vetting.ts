/**
 * Decides which addresses users may reach: the public internet, and what the operator allows (PALOMA_OUTBOUND_ALLOW).
 * Names are resolved here, every address is vetted, and the connection goes to exactly the vetted address, so a later
 * change of the DNS answer (DNS rebinding) has no effect. Odd spellings of a host (decimal, octal, hex, full-width) are
 * normalised by the URL parser before vetting.
 */
import ipaddr from "ipaddr.js";
import { hostOf, type IpNetwork, isInNetworks, isNetwork, parseNetwork, portOf, splitPort } from "../base/addresses.ts";
import { EgressError } from "./egress_error.ts";
import type { Resolve } from "./resolve.ts";

export type Scheme = "http:" | "https:";

const MAX_URL_LENGTH = 2_048;

/** Ports of other protocols that a request could be abused to attack (the Fetch standard's list). */
// deno-fmt-ignore
const BAD_PORTS = new Set([
  1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110, 111,
  113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548,
  554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665,
  6666, 6667, 6668, 6669, 6679, 6697, 10080,
]);

/** Ports of this machine that are for everybody. */
const WEB_PORTS = new Set([80, 443]);

/** Parses a URL given by a user, or a redirect relative to `base`. Throws EgressError. */
export function readUrl(text: string, base?: URL): URL {
  if (text.length > MAX_URL_LENGTH) throw new EgressError("forbidden_url", `the URL is longer than ${MAX_URL_LENGTH}`);
  if (!URL.canParse(text, base)) throw new EgressError("forbidden_url", "the URL is not valid");
  const url = new URL(text, base);
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    throw new EgressError("forbidden_url", "the URL must begin with https:// or http://");
  }
  if (url.username || url.password) throw new EgressError("forbidden_url", "the URL must not carry credentials");
  if (url.port === "0") throw new EgressError("forbidden_url", "port 0 may not be called");
  return url;
}

interface VettingOptions {
  allow: AllowList;
  resolve: Resolve;
  /** This machine's addresses; by default, asks the system. */
  ownAddresses?: (() => string[]) | undefined;
}

export function makeVetting({ allow, resolve, ownAddresses = addressesOfInterfaces }: VettingOptions) {
  /** Resolves to the addresses to which this URL may connect. Throws EgressError. */
  async function addressesOf(url: URL, schemes: readonly Scheme[]): Promise<string[]> {
    const host = hostOf(url);
    const port = portOf(url);
    const addresses = ipaddr.isValid(host) ? [host] : await resolved(host);
    const isAllowed = (address: string) => allow.allowsAddress(address, port);
    if (allow.allowsHost(host, port) || addresses.every(isAllowed)) return addresses;
    if (!addresses.every((address) => isAllowed(address) || isOpen(address, port))) {
      throw new EgressError(
        "forbidden_address",
        `the host is not on the public internet, or it is this machine; only the operator can allow it, with PALOMA_OUTBOUND_ALLOW=${
          entryOf(url)
        }`,
      );
    }
    checkUrl(url, schemes);
    return addresses;
  }

  /**
   * For a name that does not resolve at the moment: throws EgressError if none of its possible addresses is allowed.
   */
  function checkUnresolved(url: URL, schemes: readonly Scheme[]): void {
    if (allow.allowsHost(hostOf(url), portOf(url))) return;
    // The names of containers and of a local network often resolve for the operator's other machines alone.
    if (!schemes.some((scheme) => scheme === url.protocol)) {
      throw new EgressError(
        "forbidden_url",
        `the URL must begin with ${
          prefixesOf(schemes)
        }, unless the operator allows its host, with PALOMA_OUTBOUND_ALLOW=${entryOf(url)}`,
      );
    }
    checkUrl(url, schemes);
  }

  /** Whether anybody may connect to the port of the address. A connection from inside passes no firewall of this machine. */
  function isOpen(address: string, port: number): boolean {
    if (!isPublicAddress(address)) return false;
    return WEB_PORTS.has(port) || !ownAddresses().some((own) => isInNetworks([parseNetwork(own)], address));
  }

  async function resolved(host: string): Promise<string[]> {
    const addresses = await resolve(host).catch((cause) => {
      throw new EgressError("unresolved", "the host name does not resolve", { cause });
    });
    if (addresses.length === 0) throw new EgressError("unresolved", "the host name does not resolve");
    return addresses;
  }

  return { addressesOf, checkUnresolved };
}

function addressesOfInterfaces(): string[] {
  try {
    return Deno.networkInterfaces().map(({ address }) => address);
  } catch {
    // A host that runs processes for others may not tell.
    return [];
  }
}

/** Throws EgressError if the URL needs the operator's permission. */
function checkUrl(url: URL, schemes: readonly Scheme[]): void {
  if (!schemes.some((scheme) => scheme === url.protocol)) {
    throw new EgressError("forbidden_url", `the URL must begin with ${prefixesOf(schemes)}`);
  }
  if (BAD_PORTS.has(Number(url.port))) throw new EgressError("forbidden_url", `port ${url.port} may not be called`);
}

function prefixesOf(schemes: readonly Scheme[]): string {
  return schemes.map((scheme) => scheme + "//").join(" or ");
}

/** Returns the entry of the operator's list that allows this target, and no more. */
function entryOf(url: URL): string {
  return `${url.hostname}:${portOf(url)}`;
}

/** Azure's platform service: a public address that is reachable only from inside. */
const INTERNAL_ANYWAY = new Set(["168.63.129.16"]);
/** The entire public IPv6 internet. */
const GLOBAL_UNICAST = ipaddr.parseCIDR("2000::/3");
/** The IPv4 internet behind a translator: networks without IPv4 resolve its names to these (DNS64, RFC 6052). */
const TRANSLATED = ipaddr.parseCIDR("64:ff9b::/96");

/**
 * Whether the address is on the public internet. Private, loopback, link-local, carrier-grade NAT, metadata, multicast,
 * documentation and reserved addresses are not. Neither are IPv6 addresses that embed an IPv4 address (mapped,
 * compatible, 6to4, Teredo), because something on the way could turn them into any of these; where a translator
 * certainly does (NAT64), the embedded address counts.
 */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address) || address.includes("%")) return false;
  const parsed = ipaddr.parse(address);
  if (parsed.kind() === "ipv6" && parsed.match(TRANSLATED)) {
    return isPublicAddress(ipaddr.fromByteArray(parsed.toByteArray().slice(-4)).toString());
  }
  if (parsed.range() !== "unicast") return false;
  if (parsed.kind() === "ipv4") return !INTERNAL_ANYWAY.has(parsed.toString());
  return parsed.match(GLOBAL_UNICAST);
}

/** The targets that the operator allows beyond the public internet. */
export interface AllowList {
  /** Whether the URL's host is allowed by name, whatever it resolves to. */
  allowsHost(hostname: string, port: number): boolean;
  allowsAddress(address: string, port: number): boolean;
}

/** Ports opened by an entry without a port: those of the web, and all above the system's. */
const FIRST_FREE_PORT = 1_024;
const isWeb = (port: number) => port === 80 || port === 443 || port >= FIRST_FREE_PORT;

/**
 * Parses entries: an address (`10.0.0.7`, `fd00::7`), a CIDR (`10.0.0.0/8`), a host name (`erp.internal`) or all names
 * below one (`*.internal`), each with an optional port (`10.0.0.0/8:443`, `n8n.local:5678`).
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
