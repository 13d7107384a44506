/** How a command finds out which processes are running on a shared store. */
import { type Clock, sleep } from "../runtime.ts";
import type { Kv } from "../store/kv.ts";
import { clusterKeys, type MemberRow } from "./rows.ts";

/** A running member renews its row within this time. */
const LOOK_FOR_MS = 2_500;

/** Resolves to the rows of all running members, on any machine. API processes are not members. */
export async function membersAtWork(kv: Pick<Kv, "list">, clock: Clock): Promise<MemberRow[]> {
  const look = () => Array.fromAsync(kv.list({ prefix: clusterKeys.members() }));
  const before = new Map((await look()).map(({ key, version }) => [String(key.at(-1)), version]));
  await sleep(clock, LOOK_FOR_MS);
  return (await look()).filter(({ key, version }) => before.get(String(key.at(-1))) !== version).map(({ value }) =>
    value
  );
}
