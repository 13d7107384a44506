/**
 * Resolves names. The system's resolver (getaddrinfo) hangs as long as the name server does, and each call occupies one
 * of the process's 32 blocking threads: user-given names could stall all file I/O. So DNS is queried without a thread,
 * and the system's resolver only for names that DNS does not know, a few at a time.
 */
import { lookup } from "node:dns/promises";
import { readFile } from "node:fs/promises";
import PQueue from "p-queue";
import { within } from "../base/within.ts";
import type { Clock } from "../runtime.ts";

/** Resolves to all addresses of a name; rejects if there are none. */
export type Resolve = (hostname: string) => Promise<string[]>;

/** The sources of an answer. */
interface NameSources {
  /** The text of the hosts file. */
  hosts(): Promise<string>;
  /** Rejects with Deno.errors.NotFound if DNS has no record of this type. */
  dns(hostname: string, kind: "A" | "AAAA"): Promise<string[]>;
  system: Resolve;
}

/** How much later than its IPv4 addresses a name's IPv6 addresses may come: some name servers never answer about them. */
const IPV6_AFTER_MS = 1_000;
/** Concurrent calls of the system's resolver, which leaves most threads to file I/O. */
const SYSTEM_AT_ONCE = 4;

const HOSTS_FILE = Deno.build.os === "windows" ? "C:\\Windows\\System32\\drivers\\etc\\hosts" : "/etc/hosts";

const SYSTEM: NameSources = {
  hosts: () => readFile(HOSTS_FILE, "utf8").catch(() => ""),
  dns: (hostname, kind) => Deno.resolveDns(hostname, kind),
  system: async (hostname) => (await lookup(hostname, { all: true })).map(({ address }) => address),
};

export function makeResolve(clock: Clock, sources: NameSources = SYSTEM): Resolve {
  const system = aFewAtATime(sources.system);

  return async (hostname) => {
    const name = hostname.toLowerCase().replace(/\.$/, "");
    const given = addressesIn(await sources.hosts(), name);
    if (given.length > 0) return ipv4First(given);
    // A name without a dot belongs to the local network, and only the system's resolver can find it.
    if (!name.includes(".")) return ipv4First(await system(name));
    const ipv4 = sources.dns(`${name}.`, "A");
    const both = Promise.allSettled([ipv4, sources.dns(`${name}.`, "AAAA")]);
    const [known] = await Promise.allSettled([ipv4]);
    const answers = known.status === "fulfilled" ? await within(clock, IPV6_AFTER_MS, both) : await both;
    if (answers === "late") return await ipv4;
    const addresses = answers.flatMap((answer) => answer.status === "fulfilled" ? answer.value : []);
    if (addresses.length > 0) return addresses;
    const reasons = answers.flatMap((answer) => answer.status === "rejected" ? [answer.reason] : []);
    const failure = reasons.find((reason) => !(reason instanceof Deno.errors.NotFound));
    if (failure) throw failure;
    return ipv4First(await system(name));
  };
}

/** Returns the addresses of a name. A line of a hosts file holds an address and its names; `#` begins a comment. */
function addressesIn(hosts: string, name: string): string[] {
  const text = hosts.toLowerCase();
  // Some hosts files are lists of a hundred thousand blocked names.
  if (!text.includes(name)) return [];
  return text.split("\n").flatMap((line) => {
    const [address, ...names] = line.replace(/#.*/, "").trim().split(/\s+/);
    return names.includes(name) ? [address!] : [];
  });
}

/** Puts IPv4 addresses first, so that a machine without IPv6 needs no second attempt. */
function ipv4First(addresses: readonly string[]): string[] {
  return addresses.toSorted((a, b) => Number(a.includes(":")) - Number(b.includes(":")));
}

/** Limits concurrent look-ups; calls for the same name share one answer. */
function aFewAtATime(resolve: Resolve): Resolve {
  const queue = new PQueue({ concurrency: SYSTEM_AT_ONCE });
  const asked = new Map<string, Promise<string[]>>();

  async function ask(name: string): Promise<string[]> {
    try {
      return await queue.add(() => resolve(name));
    } finally {
      asked.delete(name);
    }
  }

  return (name) => {
    const answer = asked.get(name) ?? ask(name);
    asked.set(name, answer);
    return answer;
  };
}
