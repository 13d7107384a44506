/**
 * Accounts: who may use the gateway, on which plan, and from where: addresses and CIDRs, and hosts of calling pages
 * (spec, Authentication 4).
 */
import ipaddr from "ipaddr.js";
import { isInNetworks, parseNetwork } from "../base/addresses.ts";
import { type FieldError, Problem } from "../errors.ts";
import type { Row } from "../store/kv.ts";
import type { Plan } from "./plan.ts";

export interface Account {
  id: string;
  name: string;
  plan: string;
  active: boolean;
  /** When the subscription ends, Unix ms; null: never. */
  expiresAt: number | null;
  /** Addresses and CIDRs that may use the key; empty: any. */
  allowedIps: string[];
  /** Host names (subdomains included) whose pages may use the key; empty: any. */
  allowedDomains: string[];
  /** A person who sends one of these words to a line has opted out. */
  optOutWords: string[];
  /** ISO 3166; completes national numbers. Null: they are refused. */
  country: string | null;
  createdAt: number;
  /** Whether contents are sealed at rest (`callers.ts`); absent: no. */
  sealed?: boolean;
}

/** What a key may do: send messages, read, manage everything else, or propose messages, which a person approves. */
export const SCOPES = ["send", "read", "manage", "propose"] as const;
export type Scope = (typeof SCOPES)[number];

/** An account with its plan: what a request needs to know about its caller. */
export interface Caller {
  account: Account;
  plan: Plan;
  /** The key used, unless it is the account's own, which has every scope. */
  key?: { id: string; name: string; scopes: readonly Scope[]; allowedIps: string[]; allowedDomains: string[] };
  /** The key's row, if it came from memory: the commit that serves the caller must check it. */
  keyRow?: Row<string>;
}

/** A change of an account; omitted fields stay as they are. */
export type AccountChange = Partial<
  Pick<
    Account,
    "plan" | "active" | "expiresAt" | "allowedIps" | "allowedDomains" | "optOutWords" | "country" | "name" | "sealed"
  >
>;

/** Throws Problem account_deactivated. */
export function assertActive({ active }: Account): void {
  if (!active) throw new Problem("account_deactivated", "The operator has deactivated this account.");
}

/** Throws Problem subscription_expired. */
export function assertSubscribed({ expiresAt }: Account, now: number): void {
  if (expiresAt === null || now < expiresAt) return;
  throw new Problem("subscription_expired", `It ended on ${new Date(expiresAt).toISOString()}.`);
}

/**
 * Returns the entries in canonical form. Throws Problem validation_failed with every bad entry as `allowedIps.index`.
 */
export function parseAllowedIps(entries: readonly string[]): string[] {
  return parseEach(entries, "allowedIps", parseAddressOrCidr, "is neither an IP address nor a CIDR");
}

/** Returns the host names in lower case, international ones in ASCII. Throws as `parseAllowedIps` does. */
export function parseAllowedDomains(entries: readonly string[]): string[] {
  return parseEach(entries, "allowedDomains", parseHost, "is not a host name (without scheme, port, path or *)");
}

/** Whether the address may use the key; an IPv4-mapped IPv6 address counts as IPv4. */
export function ipAllowed(allowedIps: readonly string[], address: string): boolean {
  return allowedIps.length === 0 || isInNetworks(allowedIps.map(parseNetwork), address);
}

/** Whether a page on `host` may use the key: the host is one of the domains or below one. */
export function domainAllowed(allowedDomains: readonly string[], host: string | null): boolean {
  if (allowedDomains.length === 0) return true;
  const caller = host === null ? null : parseHost(host);
  return caller !== null && allowedDomains.some((domain) => caller === domain || caller.endsWith(`.${domain}`));
}

function parseEach(
  entries: readonly string[],
  path: string,
  parse: (text: string) => string | null,
  complaint: string,
): string[] {
  const errors: FieldError[] = [];
  const parsed = entries.map((entry, index) => {
    const value = parse(entry.trim());
    if (value === null) errors.push({ path: `${path}.${index}`, message: `"${entry}" ${complaint}` });
    return value ?? "";
  });
  if (errors.length) {
    throw new Problem("validation_failed", errors.map((error) => error.message).join("; "), { errors });
  }
  return [...new Set(parsed)];
}

function parseAddressOrCidr(text: string): string | null {
  const [address = "", bits, ...rest] = text.split("/");
  // ipaddr.js also accepts "127.1" and "0x7f.1"; in a list that protects a key, these are typing errors.
  if (rest.length > 0 || !(ipaddr.IPv4.isValidFourPartDecimal(address) || ipaddr.IPv6.isValid(address))) return null;
  if (address.includes("%")) return null;
  if (bits === undefined) return ipaddr.process(address).toString();
  if (!/^\d{1,3}$/.test(bits) || !ipaddr.isValidCIDR(text)) return null;
  const [network, length] = ipaddr.parseCIDR(text);
  if (network instanceof ipaddr.IPv6 && network.isIPv4MappedAddress()) {
    return length < 96 ? null : `${network.toIPv4Address().toString()}/${length - 96}`;
  }
  return `${network.toString()}/${length}`;
}

function parseHost(text: string): string | null {
  if (text === "" || /[\s/:@?#*\\]/.test(text) || !URL.canParse(`http://${text}`)) return null;
  const host = new URL(`http://${text}`).hostname.replace(/\.$/, "");
  return host === "" ? null : host;
}
