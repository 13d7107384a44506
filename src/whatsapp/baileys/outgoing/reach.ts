/**
 * Getting at a chat's devices ahead of a departure (promise 2): who they are, and a session with each. The library asks
 * the network for both when it relays a message, some round trips and a commit a session, and has them at hand then.
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

/** What a business keeps at its provider is no device that takes part in groups. */
const HOSTED_DEVICE = 99;

type ReachSocket = Pick<WASocket, "authState" | "getUSyncDevices" | "assertSessions">;

/** None of a person's devices has keys now: there is nothing to encrypt a message with. */
export class NoDevice extends Error {
  override name = "NoDevice";
}

/** Devices that a message to a person goes to, by their JIDs: theirs, and our own others. */
export interface Reached {
  theirs: string[];
  own: string[];
}

/** Of a person, as the library addresses them. Throws NoDevice, and what the library throws. */
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

/** Of a group: those that do not have our sender key yet. Throws what the library throws. */
export async function reachGroup(socket: ReachSocket, { id, participants }: GroupMetadata): Promise<void> {
  const devices = await socket.getUSyncDevices(participants.map((participant) => participant.id), true, false);
  const { [id]: holders = {} } = await socket.authState.keys.get("sender-key-memory", [id]);
  const lacking = devices.filter(({ jid, device }) =>
    !holders[jid] && device !== HOSTED_DEVICE && !isHostedLidUser(jid) && !isHostedPnUser(jid)
  );
  if (lacking.length > 0) await socket.assertSessions(lacking.map(({ jid }) => jid));
}

/**
 * Makes the next message to the group bring a new sender key when somebody who has the present one is not in it any more:
 * the library never changes it, and who was removed could read on. Throws StoreError.
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

/** As the library names the row of a sender key. */
export function senderKeyName(group: string, jid: string): string {
  const { user, device = 0 } = jidDecode(jid)!;
  return `${group}::${isLidUser(jid) ? `${user}_1` : user}::${device}`;
}
