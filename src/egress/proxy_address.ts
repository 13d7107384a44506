/** The proxy of a line as users write it, and as it may be shown. */
import { EgressError } from "./egress_error.ts";

const PORTS: Readonly<Record<string, string>> = { "http:": "80", "https:": "443", "socks5:": "1080" };
const MAX_URL_LENGTH = 512;

/** A proxy as it was written, read. */
export interface ProxyAddress {
  protocol: "http:" | "https:" | "socks5:";
  /** Without the brackets of an IPv6 address. */
  host: string;
  port: string;
  username: string;
  password: string;
}

/** Reads `socks5://user:password@host:port`, or `http://…`, `https://…`. Throws EgressError. */
export function readProxy(text: string): ProxyAddress {
  const [, protocol = ""] = /^(https?:|socks5:)\/\//.exec(text) ?? [];
  // Only URLs of known schemes have their hosts read: odd spellings of an address are made plain.
  const plain = text.replace(protocol, "http:");
  if (!protocol || text.length > MAX_URL_LENGTH || !URL.canParse(plain)) {
    throw new EgressError("forbidden_url", "the proxy must be socks5://, http:// or https:// with a host and a port");
  }
  const { hostname, port, username, password, pathname, search, hash } = new URL(plain);
  if (pathname !== "/" || search || hash) throw new EgressError("forbidden_url", "the proxy has no path");
  return {
    protocol: protocol as ProxyAddress["protocol"],
    host: hostname.replace(/^\[|\]$/g, ""),
    port: port || PORTS[protocol]!,
    username: decodeURIComponent(username),
    password: decodeURIComponent(password),
  };
}

/** The proxy as it may be shown: without its login. */
export function shownProxy({ protocol, host, port }: ProxyAddress): string {
  return `${protocol}//${urlHost(host)}:${port}`;
}

/** As it stands in an URL. */
export function urlHost(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}
