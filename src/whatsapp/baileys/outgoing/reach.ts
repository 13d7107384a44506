/**
 * Prepares access to a chat's devices before a departure (promise 2): the list of devices, and a session with each.
 * When the library relays a message, it would otherwise query the network for both, at a cost of some round trips and a
 * commit per session.
 */
import {
  areJidsSameUser,
  type GroupMetadata,
  isHostedLidUser,
  isHostedPnUser,
  isLidUser,
  jidDecode,
  jidNormalizedUser,
  type WASocket,
} from "@whiskeysockets/baileys";
import type { Devices } from "./devices.ts";

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
  const users = new Set([id, lid].flatMap((jid) => jid ? userOf(jid) : []));
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
  const members = group.participants.flatMap(({ id, lid, phoneNumber }) => [id, lid, phoneNumber]);
  const own = [creds.me?.id, creds.me?.lid];
  const users = new Set([...members, ...own].flatMap((jid) => jid ? userOf(jid) : []));
  if (Object.keys(holders).every((device) => users.has(userOf(device)))) return;
  const names = own.flatMap((jid) => jid ? senderKeyName(group.id, jid) : []);
  await keys.set({
    "sender-key": Object.fromEntries(names.map((name) => [name, null])),
    "sender-key-memory": { [group.id]: null },
  });
}

function userOf(jid: string): string {
  return jidDecode(jid)?.user ?? jid;
}

/** Returns the library's row id for a sender key. */
export function senderKeyName(group: string, jid: string): string {
  const { user, device = 0 } = jidDecode(jid)!;
  return `${group}::${isLidUser(jid) ? `${user}_1` : user}::${device}`;
}
