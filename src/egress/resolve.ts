/**
 * Addresses of names. The system's resolver (getaddrinfo) hangs for as long as the name server does, each call on one of
 * the process's 32 threads for blocking work: names that users choose would stop every write of a file. So DNS is asked
 * without a thread, and the system only for what DNS does not know, a few names at a time.
 */
import { lookup } from "node:dns/promises";
import { readFile } from "node:fs/promises";
import PQueue from "p-queue";

/** Every address of a name; rejects when there is none. */
export type Resolve = (hostname: string) => Promise<string[]>;

/** What an answer is put together from. */
interface NameSources {
  /** The text of the hosts file: names that the operator of this machine gave addresses. */
  hosts(): Promise<string>;
  /** Rejects with Deno.errors.NotFound when DNS knows none of this kind. */
  dns(hostname: string, kind: "A" | "AAAA"): Promise<string[]>;
  system: Resolve;
}

/** Leaves most threads to files, whatever the names. */
const SYSTEM_AT_ONCE = 4;

const HOSTS_FILE = Deno.build.os === "windows" ? "C:\\Windows\\System32\\drivers\\etc\\hosts" : "/etc/hosts";

const SYSTEM: NameSources = {
  hosts: () => readFile(HOSTS_FILE, "utf8").catch(() => ""),
  dns: (hostname, kind) => Deno.resolveDns(hostname, kind),
  system: async (hostname) => (await lookup(hostname, { all: true })).map(({ address }) => address),
};

export function makeResolve(sources: NameSources = SYSTEM): Resolve {
  const system = aFewAtATime(sources.system);

  return async (hostname) => {
    const name = hostname.toLowerCase().replace(/\.$/, "");
    const given = readHosts(await sources.hosts()).get(name);
    if (given) return ipv4First(given);
    // A name without a dot is one of the local network: only the system knows how to find it.
    if (!name.includes(".")) return ipv4First(await system(name));
    const answers = await Promise.allSettled([sources.dns(`${name}.`, "A"), sources.dns(`${name}.`, "AAAA")]);
    const addresses = answers.flatMap((answer) => answer.status === "fulfilled" ? answer.value : []);
    if (addresses.length > 0) return addresses;
    const reasons = answers.flatMap((answer) => answer.status === "rejected" ? [answer.reason] : []);
    const failure = reasons.find((reason) => !(reason instanceof Deno.errors.NotFound));
    if (failure) throw failure;
    return ipv4First(await system(name));
  };
}

/** By name, in lower case. A line of a hosts file is an address, then its names; `#` begins a comment. */
function readHosts(text: string): Map<string, string[]> {
  const hosts = new Map<string, string[]>();
  for (const line of text.split("\n")) {
    const [address, ...names] = line.replace(/#.*/, "").trim().split(/\s+/);
    for (const name of names) hosts.set(name.toLowerCase(), [...hosts.get(name.toLowerCase()) ?? [], address!]);
  }
  return hosts;
}

/** A machine without IPv6 then needs no second try. */
function ipv4First(addresses: readonly string[]): string[] {
  return addresses.toSorted((a, b) => Number(a.includes(":")) - Number(b.includes(":")));
}

/** Bounds how many names are asked for at once; those who ask for the same name share one answer. */
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
