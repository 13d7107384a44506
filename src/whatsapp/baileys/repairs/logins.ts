/**
 * Completes the login payload. Baileys 7.0.0-rc14 omits the number of times that the device has logged in (`lc`).
 * WhatsApp Web increments it with every login and starts over past 31 bits.
 */
import { type AuthenticationCreds, jidDecode, proto } from "@whiskeysockets/baileys";
import { LRUCache } from "lru-cache";
import { atMost } from "../../../base/at_most.ts";

const MOST_LOGINS = 2 ** 31 - 1;
/** Maximum number of devices about to log in, some of which never do. */
const MOST_AT_ONCE = 10_000;
const { fromObject } = proto.ClientPayload;
/** The counters of upcoming logins, by user and device: the library builds the payloads itself. */
const counts = new LRUCache<string, number>(atMost(MOST_AT_ONCE));

/** Adds the counter set by `countLogin` to every login of this process. */
export function repairLogins(): void {
  proto.ClientPayload.fromObject = (payload) => {
    const who = `${payload.username}:${payload.device}`;
    const lc = counts.get(who);
    counts.delete(who);
    return fromObject(lc === undefined ? payload : { ...payload, lc });
  };
}

/** Counts the login that these credentials are used for. The counter is saved with the credentials. */
export function countLogin(creds: AuthenticationCreds & { logins?: number }): void {
  const { user, device = 0 } = jidDecode(creds.me?.id)!;
  const { logins = 0 } = creds;
  creds.logins = logins < MOST_LOGINS ? logins + 1 : 0;
  counts.set(`${Number(user)}:${device}`, creds.logins);
}
