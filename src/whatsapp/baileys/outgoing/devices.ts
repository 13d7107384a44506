/**
 * The devices of people, which the library caches for five minutes. Handles three cases that the library does not:
 *
 * - One device without keys fails the entire key query, and with it the message to that person or group. The device is
 *   removed from the answer, and left out of the lists for five minutes.
 * - A change may be announced by LID although the list was cached by number, or vice versa. Both lists are dropped.
 * - In a group addressed by LID, the library takes the sender's own device for another one.
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

  /** Returns a list to the library, whose type does not say what it holds. */
  const listOf = <T>(user: string) =>
    lists.get(user)?.filter((device) => !isOwn(device) && !keyless.has(nameOf(device))) as T | undefined;

  /** The other address of the same person. */
  async function aliasOf(jid: string): Promise<string | null> {
    const { user, server } = jidDecode(jid)!;
    const bare = `${user}@${server}`;
    const known = server === "lid" ? lidMapping().getPNForLID(bare) : lidMapping().getLIDForPN(bare);
    return await known.catch(() => null);
  }

  /** Drops the user's list, whichever address it was cached under. */
  async function forget(jid: string): Promise<void> {
    lists.delete(jidDecode(jid)?.user ?? "");
    const alias = await aliasOf(jid);
    if (alias) lists.delete(jidDecode(alias)?.user ?? "");
  }

  /** Removes users without keys from the answer to a key query. */
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

  /** The cache in which the library keeps its lists. */
  const cache: CacheStore & { mget<T>(users: string[]): Promise<Record<string, T | undefined>> } = {
    get: listOf,
    mget: <T>(users: string[]) => Promise.resolve(Object.fromEntries(users.map((user) => [user, listOf<T>(user)]))),
    set: (user, value) => void lists.set(user, value as JidWithDevice[]),
    del: (user) => void lists.delete(user),
    flushAll: () => lists.clear(),
  };

  return {
    cache,

    /** Reads incoming stanzas and corrects key answers. Must be called before the library reads them. */
    watch(stanza: BinaryNode): void {
      const { tag, attrs } = stanza;
      if (tag === "iq" && attrs.type === "result") return dropKeyless(stanza);
      if (tag !== "notification" || attrs.type !== "devices") return;
      const devices = getAllBinaryNodeChildren(stanza).flatMap((child) => getBinaryNodeChildren(child, "device"));
      const jids = [stanza, ...devices].flatMap(({ attrs }) => [attrs.from, attrs.jid, attrs.lid]);
      for (const jid of jids) if (jid && jidDecode(jid)) void forget(jid);
    },

    forget,
    /** Whether the network recently had no keys for the device. */
    isKeyless: (jid: string) => keyless.has(nameOfJid(jid)),
  };
}

function nameOf({ user, device }: JidWithDevice): string {
  return `${user}:${device ?? 0}`;
}

function nameOfJid(jid: string): string {
  return nameOf(jidDecode(jid)!);
}
