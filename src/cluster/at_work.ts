/** Who is at work on a shared store, as a command beside them finds out. */
import { type Clock, sleep } from "../runtime.ts";
import type { Kv } from "../store/kv.ts";
import { clusterKeys, type MemberRow } from "./rows.ts";

/** Whoever is at work has renewed its row meanwhile. */
const LOOK_FOR_MS = 2_500;

/** The rows of all members that renew theirs, on whatever machine. APIs are none. */
export async function membersAtWork(kv: Pick<Kv, "list">, clock: Clock): Promise<MemberRow[]> {
  const look = () => Array.fromAsync(kv.list({ prefix: clusterKeys.members() }));
  const before = new Map((await look()).map(({ key, version }) => [String(key.at(-1)), version]));
  await sleep(clock, LOOK_FOR_MS);
  return (await look()).filter(({ key, version }) => before.get(String(key.at(-1))) !== version).map(({ value }) =>
    value
  );
}
