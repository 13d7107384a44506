/**
 * The devices of people, which the library caches for five minutes. Handles three cases that the library does not:
 *
 * - One device without keys fails the entire key query, and with it the message to that person or group. The device is
 *   removed from the answer, and left out of the lists for five minutes.
 * - A change may be announced by LID although the list was cached by number, or vice versa. Both lists are dropped.
 * - In a group addressed by LID, the library takes the sender's own device for another one.
 *
 * A chat's devices are reached before a departure (promise 2): the list of devices, and a session with each. When the
 * library relays a message, it would otherwise query the network for both, at a cost of some round trips and a commit
 * per session.
 */
import { createHash } from "node:crypto";
import {
  areJidsSameUser,
  type AuthenticationCreds,
  type BinaryNode,
  type CacheStore,
  type FullJid,
  getAllBinaryNodeChildren,
  getBinaryNodeChild,
  getBinaryNodeChildren,
  type GroupMetadata,
  isHostedLidUser,
  isHostedPnUser,
  isLidUser,
  jidDecode,
  jidNormalizedUser,
  type JidWithDevice,
  type WASocket,
} from "@whiskeysockets/baileys";
import { LRUCache } from "lru-cache";
import { atMost } from "../../../base/at_most.ts";
import type { Clock } from "../../../runtime.ts";
import { childrenOf } from "../stanza.ts";

/** How long a list of devices is used. */
export const KEPT_MS = 5 * 60_000;
const HASH_BYTES = 6;
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
  const lists = new LRUCache<string, FullJid[]>(bounds);
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

  /**
   * Returns the hash of a group's devices, by which the network notices that the message misses one: base64 of the first
   * six bytes of SHA-256 over the sorted devices. Null if the devices of a member are not known now.
   */
  function hashOf({ participants, addressingMode }: GroupMetadata): string | null {
    const own = addressingMode === "lid" ? creds.me?.lid : creds.me?.id;
    const known = participants.map(({ id }) => lists.get(jidDecode(id)?.user ?? ""));
    if (!own || !known.every((list) => list !== undefined)) return null;
    const devices = [jidDecode(own)!, ...known.flat().filter((device) => !isOwn(device))];
    const names = devices.map(({ user, device = 0, server }) => `${user}.0:${device}@${server}`);
    const hash = createHash("sha256").update(names.sort().join("")).digest();
    return `2:${hash.subarray(0, HASH_BYTES).toString("base64")}`;
  }

  /** Removes users without keys from the answer to a key query. */
  function dropKeyless(stanza: BinaryNode): void {
    const list = getBinaryNodeChild(stanza, "list");
    if (!Array.isArray(list?.content)) return;
    const refused = childrenOf(list, "user").filter((user) => getBinaryNodeChild(user, "error"));
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
    set: (user, value) => void lists.set(user, value as FullJid[]),
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
    hashOf,
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

/** The device that a business keeps at its provider does not take part in groups. */
const HOSTED_DEVICE = 99;

type ReachSocket = Pick<WASocket, "authState" | "getUSyncDevices" | "assertSessions">;

/** None of a person's devices has keys now, so a message cannot be encrypted. */
export class NoDevice extends Error {
  override name = "NoDevice";
}

/** JIDs of the devices that a message to a person goes to: the recipient's, and the line's own other devices. */
export interface Reached {
  theirs: string[];
  own: string[];
}

/** Reaches the devices of a person, by the library's addresses. Throws NoDevice, and what the library throws. */
export async function reachPerson(
  socket: ReachSocket,
  jid: string,
  known: Pick<Devices, "isKeyless">,
): Promise<Reached> {
  const { id, lid } = socket.authState.creds.me!;
  const own = isLidUser(jid) && lid ? lid : id;
  const devices = await socket.getUSyncDevices([jidNormalizedUser(own), jid], true, false);
  const others = devices.map((device) => device.jid).filter((device) => device !== id && device !== lid);
  await socket.assertSessions(others);
  const theirs = devices.filter((device) => areJidsSameUser(device.jid, jid));
  if (theirs.length > 0 && theirs.every((device) => known.isKeyless(device.jid))) throw new NoDevice();
  const users = usersOf([id, lid]);
  const isOwn = (device: string) => users.has(userOf(device));
  return { theirs: others.filter((device) => !isOwn(device)), own: others.filter(isOwn) };
}

/** Reaches the devices of a group that lack the line's sender key. Throws what the library throws. */
export async function reachGroup(socket: ReachSocket, { id, participants }: GroupMetadata): Promise<void> {
  const devices = await socket.getUSyncDevices(participants.map((participant) => participant.id), true, false);
  const { [id]: holders = {} } = await socket.authState.keys.get("sender-key-memory", [id]);
  const lacking = devices.filter(({ jid, device }) =>
    !holders[jid] && device !== HOSTED_DEVICE && !isHostedLidUser(jid) && !isHostedPnUser(jid)
  );
  if (lacking.length > 0) await socket.assertSessions(lacking.map(({ jid }) => jid));
}

/**
 * Makes the next message to the group carry a new sender key if someone who has the present one has left the group. The
 * library never changes the key, so a removed member could go on reading. Throws StoreError.
 */
export async function rotateSenderKey(socket: Pick<WASocket, "authState">, group: GroupMetadata): Promise<void> {
  const { keys, creds } = socket.authState;
  const { [group.id]: holders = {} } = await keys.get("sender-key-memory", [group.id]);
  const own = [creds.me?.id, creds.me?.lid];
  const users = membersOf(group).union(usersOf(own));
  if (Object.keys(holders).every((device) => users.has(userOf(device)))) return;
  const names = own.flatMap((jid) => jid ? senderKeyName(group.id, jid) : []);
  await keys.set({
    "sender-key": Object.fromEntries(names.map((name) => [name, null])),
    "sender-key-memory": { [group.id]: null },
  });
}

/** Whether the device belongs to a member of the group. */
export function isMember(device: string, group: GroupMetadata): boolean {
  return membersOf(group).has(userOf(device));
}

function membersOf({ participants }: GroupMetadata): Set<string> {
  return usersOf(participants.flatMap(({ id, lid, phoneNumber }) => [id, lid, phoneNumber]));
}

function usersOf(jids: readonly (string | undefined)[]): Set<string> {
  return new Set(jids.flatMap((jid) => jid ? userOf(jid) : []));
}

function userOf(jid: string): string {
  return jidDecode(jid)?.user ?? jid;
}

/** Returns the library's row id for a sender key. */
export function senderKeyName(group: string, jid: string): string {
  const { user, device = 0 } = jidDecode(jid)!;
  return `${group}::${isLidUser(jid) ? `${user}_1` : user}::${device}`;
}
