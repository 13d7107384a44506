/** The hash of a list of devices, by which sender and network detect that their lists differ. */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { isLid, parseJid } from "./address.ts";
import { type Endpoint, isSame, jidOf } from "./directory.ts";
import { type BinaryNode, child, childrenOf } from "./stanza.ts";

const HASH_BYTES = 6;

/** Returns the hash, version 2: base64 of the first six bytes of the SHA-256 over the sorted `user.0:device@server`. */
export function participantHash(jids: string[]): string {
  const devices = jids.map((jid) => {
    const { user, device, server } = parseJid(jid)!;
    return `${user}.0:${device}@${server}`;
  });
  const hash = createHash("sha256").update(devices.sort().join("")).digest();
  return `2:${Buffer.from(hash.subarray(0, HASH_BYTES)).toString("base64")}`;
}

/**
 * Returns the hash of the network's device list if the sender's list differs from it; null if they agree. The sender's
 * list is given by the hash that it states, or in a 1:1 chat by the devices that it encrypted for.
 */
export function differingHash(
  message: BinaryNode,
  { sender, receivers, isGroup }: { sender: Endpoint; receivers: Endpoint[]; isGroup: boolean },
): string | null {
  const named = childrenOf(child(message, "participants"), "to").flatMap(({ attrs: { jid } }) => jid ?? []);
  const form = isLid(named[0]) ? "lid" : "pn";
  const own = jidOf(sender, form);
  const implied = isGroup || named.length === 0 ? null : participantHash([own, ...named]);
  const stated = message.attrs.phash ?? implied;
  if (!stated) return null;
  const others = receivers.filter((one) => !isSame(one, sender)).map((one) => jidOf(one, form));
  const phash = participantHash([own, ...others]);
  return phash === stated ? null : phash;
}
