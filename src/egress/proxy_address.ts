/** A line's proxy: parsing what users write, and displaying it without its credentials. */
import { hostOf, percentDecoded, urlHost } from "../base/addresses.ts";
import { isKeyOf } from "../base/typed_keys.ts";
import { EgressError } from "./egress_error.ts";

const PORTS = { "http:": "80", "https:": "443", "socks5:": "1080" };
const MAX_URL_LENGTH = 512;

/** A parsed proxy URL. */
export interface ProxyAddress {
  protocol: keyof typeof PORTS;
  /** Without the brackets of an IPv6 address. */
  host: string;
  port: string;
  username: string;
  password: string;
}

/** Parses `socks5://user:password@host:port`, `http://…` or `https://…`. Throws EgressError. */
export function readProxy(text: string): ProxyAddress {
  const [, protocol = ""] = /^(https?:|socks5:)\/\//.exec(text) ?? [];
  // Parsed as http, which normalises odd spellings of addresses. The port separately: a URL drops its scheme's default.
  const url = URL.parse(text.replace(protocol, "http:"));
  const port = URL.parse(text)?.port;
  if (!isKeyOf(PORTS, protocol) || text.length > MAX_URL_LENGTH || !url || port === undefined || port === "0") {
    throw new EgressError("forbidden_url", "the proxy must be socks5://, http:// or https:// with a host and a port");
  }
  const { username, password, pathname, search, hash } = url;
  if (pathname !== "/" || search || hash) throw new EgressError("forbidden_url", "the proxy has no path");
  return {
    protocol,
    host: hostOf(url),
    port: port || PORTS[protocol],
    username: percentDecoded(username),
    password: percentDecoded(password),
  };
}

/** Formats the proxy for display, without its credentials. */
export function shownProxy({ protocol, host, port }: ProxyAddress): string {
  return `${protocol}//${urlHost(host)}:${port}`;
}
