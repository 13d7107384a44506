/**
 * PostgreSQL URLs as libpq accepts them, possibly with several hosts: `postgres://user:password@db1:5432,db2/paloma`.
 */

/** Values that ask for a writable server, which Paloma needs in any case. */
const TARGETS = new Set([null, "any", "primary", "read-write"]);
/** Encryption parameters known to the driver, which silently ignores others. */
const TLS = new Set(["ssl", "sslcert", "sslkey", "sslmode", "sslnegotiation", "sslrootcert"]);

/** Returns one URL per host, in order, otherwise identical. */
export function urlsOfHosts(url: string): string[] {
  const [, before, hosts, after] = /^(.*?:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s.exec(url) ?? [];
  return hosts?.includes(",") ? hosts.split(",").map((host) => before + host + after) : [url];
}

/** Explains why the URL is not one that Paloma can use; null if it is. Reveals no credentials. */
export function faultOfDatabaseUrl(url: string): string | null {
  const urls = urlsOfHosts(url);
  const isUsable = (one: string) => URL.canParse(one) && (urls.length === 1 || new URL(one).hostname !== "");
  const wrong = urls.findIndex((one) => !isUsable(one));
  if (wrong >= 0) {
    return urls.length === 1 ? "is not a URL" : `host ${wrong + 1} of ${urls.length} is not like db1 or db1:5432`;
  }
  const { searchParams } = new URL(urls[0]!);
  if (searchParams.get("host")?.includes(",")) {
    return "names several hosts as a parameter: put them before the database, as in postgres://user@db1,db2/paloma";
  }
  const target = searchParams.get("target_session_attrs");
  if (!TARGETS.has(target)) {
    return `target_session_attrs=${target} is not read-write: Paloma needs a server that takes writes`;
  }
  const overlooked = [...searchParams.keys()].find((name) => /ssl|tls/i.test(name) && !TLS.has(name));
  if (overlooked !== undefined) {
    return `${overlooked} would be overlooked: encryption is asked for by sslmode=verify-full`;
  }
  return null;
}
