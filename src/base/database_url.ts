/** URLs of PostgreSQL as libpq takes them, which may name several hosts: `postgres://user:password@db1:5432,db2/paloma`. */

/** Each needs a server that takes writes, and so does Paloma. */
const TARGETS = new Set([null, "any", "primary", "read-write"]);
/** What the driver knows of encryption; it overlooks the rest. */
const TLS = new Set(["ssl", "sslcert", "sslkey", "sslmode", "sslnegotiation", "sslrootcert"]);

/** A URL for each host, in their order; whatever else the URL says, each of them says too. */
export function urlsOfHosts(url: string): string[] {
  const [, before, hosts, after] = /^(.*?:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s.exec(url) ?? [];
  return hosts?.includes(",") ? hosts.split(",").map((host) => before + host + after) : [url];
}

/** Why the URL is none of PostgreSQL, or not one for Paloma; null when it is. Tells nothing of its login. */
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
