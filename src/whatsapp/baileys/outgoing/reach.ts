/**
 * Getting at a chat's devices ahead of a departure (promise 2): who they are, and a session with each. The library asks
 * the network for both when it relays a message, some round trips and a commit a session, and has them at hand then.
 */
import {
  type GroupMetadata,
  isHostedLidUser,
  isHostedPnUser,
  isLidUser,
  jidNormalizedUser,
  type WASocket,
} from "@whiskeysockets/baileys";

/** What a business keeps at its provider is no device that takes part in groups. */
const HOSTED_DEVICE = 99;

export type ReachSocket = Pick<WASocket, "authState" | "getUSyncDevices" | "assertSessions">;

/** Of a person: theirs and our own other devices, as the library addresses them. Throws what the library throws. */
export async function reachPerson(socket: ReachSocket, jid: string): Promise<void> {
  const { id, lid } = socket.authState.creds.me!;
  const own = isLidUser(jid) && lid ? lid : id;
  const devices = await socket.getUSyncDevices([jidNormalizedUser(own), jid], true, false);
  await socket.assertSessions(devices.map((device) => device.jid).filter((device) => device !== id && device !== lid));
}

/** Of a group: those that do not have our sender key yet. Throws what the library throws. */
export async function reachGroup(socket: ReachSocket, { id, participants }: GroupMetadata): Promise<void> {
  const devices = await socket.getUSyncDevices(participants.map((participant) => participant.id), true, false);
  const { [id]: told = {} } = await socket.authState.keys.get("sender-key-memory", [id]);
  const untold = devices.filter(({ jid, device }) =>
    !told[jid] && device !== HOSTED_DEVICE && !isHostedLidUser(jid) && !isHostedPnUser(jid)
  );
  if (untold.length > 0) await socket.assertSessions(untold.map(({ jid }) => jid));
}
