/** The hash of a list of devices, by which sender and network notice that theirs differ. */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { parseJid } from "./address.ts";

const HASH_BYTES = 6;

/** Version 2: base64 of the first six bytes of a SHA-256 over the sorted `user.0:device@server`. */
export function participantHash(jids: string[]): string {
  const devices = jids.map((jid) => {
    const { user, device, server } = parseJid(jid)!;
    return `${user}.0:${device}@${server}`;
  });
  const hash = createHash("sha256").update(devices.sort().join("")).digest();
  return `2:${Buffer.from(hash.subarray(0, HASH_BYTES)).toString("base64")}`;
}
