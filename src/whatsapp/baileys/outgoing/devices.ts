/**
 * The devices of people, as the library keeps them for five minutes, with what it does not heed:
 *
 * - One device without keys fails the whole key query, and with it the message to that person or group. It is taken out of
 *   the answer, and left out until its user's list is asked for anew.
 * - A change is announced by LID where the list was kept by number, or the other way round: both go.
 * - In a group addressed by LIDs the sender's own device is taken for another.
 */
import {
  type AuthenticationCreds,
  type BinaryNode,
  type CacheStore,
  getAllBinaryNodeChildren,
  getBinaryNodeChild,
  getBinaryNodeChildren,
  jidDecode,
  type JidWithDevice,
  type WASocket,
} from "@whiskeysockets/baileys";
import { LRUCache } from "lru-cache";
import { atMost } from "../../../base/at_most.ts";
import type { Clock } from "../../../runtime.ts";

const KEPT_MS = 5 * 60_000;
const USERS_KEPT = 5_000;

type LidMapping = Pick<WASocket["signalRepository"]["lidMapping"], "getLIDForPN" | "getPNForLID">;

interface DevicesOptions {
  creds: AuthenticationCreds;
  clock: Clock;
  lidMapping: () => LidMapping;
}

export type Devices = ReturnType<typeof makeDevices>;

export function makeDevices({ creds, clock, lidMapping }: DevicesOptions) {
  const bounds = atMost(USERS_KEPT, { forMs: KEPT_MS, clock });
  const lists = new LRUCache<string, JidWithDevice[]>(bounds);
  const keyless = new LRUCache<string, true>(bounds);

  const isOwn = ({ user, device }: JidWithDevice) =>
    [creds.me?.id, creds.me?.lid].some((jid) => {
      const own = jid ? jidDecode(jid) : undefined;
      return own?.user === user && (own.device ?? 0) === (device ?? 0);
    });

  /** As the library wants a list: it does not say of what. */
  const listOf = <T>(user: string) =>
    lists.get(user)?.filter((device) => !isOwn(device) && !keyless.has(nameOf(device))) as T | undefined;

  /** The other address of the same person. */
  async function aliasOf(jid: string): Promise<string | null> {
    const { user, server } = jidDecode(jid)!;
    const bare = `${user}@${server}`;
    const known = server === "lid" ? lidMapping().getPNForLID(bare) : lidMapping().getLIDForPN(bare);
    return await known.catch(() => null);
  }

  /** The user's list is not as it was, under whichever address it was kept. */
  async function forget(jid: string): Promise<void> {
    lists.delete(jidDecode(jid)?.user ?? "");
    const alias = await aliasOf(jid);
    if (alias) lists.delete(jidDecode(alias)?.user ?? "");
  }

  /** Takes users without keys out of the answer to a key query. */
  function dropKeyless(stanza: BinaryNode): void {
    const list = getBinaryNodeChild(stanza, "list");
    if (!Array.isArray(list?.content)) return;
    const refused = getBinaryNodeChildren(list, "user").filter((user) => getBinaryNodeChild(user, "error"));
    if (refused.length === 0) return;
    list.content = list.content.filter((user) => !refused.includes(user));
    for (const { attrs: { jid } } of refused) if (jid) void noteKeyless(jid);
  }

  async function noteKeyless(jid: string): Promise<void> {
    keyless.set(nameOfJid(jid), true);
    const alias = await aliasOf(jid);
    if (alias) keyless.set(nameOf({ user: jidDecode(alias)!.user, device: jidDecode(jid)!.device ?? 0 }), true);
  }

  /** What the library keeps its lists in. */
  const cache: CacheStore & { mget<T>(users: string[]): Promise<Record<string, T | undefined>> } = {
    get: listOf,
    mget: <T>(users: string[]) => Promise.resolve(Object.fromEntries(users.map((user) => [user, listOf<T>(user)]))),
    set: (user, value) => void lists.set(user, value as JidWithDevice[]),
    del: (user) => void lists.delete(user),
    flushAll: () => lists.clear(),
  };

  return {
    cache,

    /** Reads, and mends, what comes in. To be called before the library does. */
    watch(stanza: BinaryNode): void {
      const { tag, attrs } = stanza;
      if (tag === "iq" && attrs.type === "result") return dropKeyless(stanza);
      if (tag !== "notification" || attrs.type !== "devices") return;
      const devices = getAllBinaryNodeChildren(stanza).flatMap((child) => getBinaryNodeChildren(child, "device"));
      const jids = [stanza, ...devices].flatMap(({ attrs }) => [attrs.from, attrs.jid, attrs.lid]);
      for (const jid of jids) if (jid && jidDecode(jid)) void forget(jid);
    },

    forget,
    /** Whether the network had no keys for the device lately. */
    isKeyless: (jid: string) => keyless.has(nameOfJid(jid)),
  };
}

function nameOf({ user, device }: JidWithDevice): string {
  return `${user}:${device ?? 0}`;
}

function nameOfJid(jid: string): string {
  return nameOf(jidDecode(jid)!);
}
