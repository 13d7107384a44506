/**
 * Completes the payload of a login. Baileys 7.0.0-rc14 leaves out how often the device has logged in (`lc`); WhatsApp Web
 * counts it up with every login, and starts over past 31 bits.
 */
import { type AuthenticationCreds, jidDecode, proto } from "@whiskeysockets/baileys";
import { LRUCache } from "lru-cache";
import { atMost } from "../../../base/at_most.ts";

const MOST_LOGINS = 2 ** 31 - 1;
/** Devices that are about to log in; among them are some that never do. */
const MOST_AT_ONCE = 10_000;
const { fromObject } = proto.ClientPayload;
/** Of logins that are about to happen, by who logs in: the library makes their payloads. */
const counts = new LRUCache<string, number>(atMost(MOST_AT_ONCE));

/** Makes every login of this process say what `countLogin` counted. */
export function repairLogins(): void {
  proto.ClientPayload.fromObject = (payload) => {
    const who = `${payload.username}:${payload.device}`;
    const lc = counts.get(who);
    counts.delete(who);
    return fromObject(lc === undefined ? payload : { ...payload, lc });
  };
}

/** Counts the login that these credentials are for. They keep the count, whoever saves them next. */
export function countLogin(creds: AuthenticationCreds & { logins?: number }): void {
  const { user, device = 0 } = jidDecode(creds.me?.id)!;
  const { logins = 0 } = creds;
  creds.logins = logins < MOST_LOGINS ? logins + 1 : 0;
  counts.set(`${Number(user)}:${device}`, creds.logins);
}
