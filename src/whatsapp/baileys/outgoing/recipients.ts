/** Which JID a number has on the network, asked once and kept for a while. */
import type { WASocket } from "@whiskeysockets/baileys";
import type { Runtime } from "../../../runtime.ts";
import { networkKeys } from "../rows.ts";
import { Change, type Kv } from "../../../store/kv.ts";
import { NetworkRefusal, NetworkTimeout, type NumberCheck } from "../../connection.ts";
import { within } from "../../../base/within.ts";

/** People seldom change or leave; a number that has no account is asked for every time. */
const KEPT_MS = 7 * 24 * 60 * 60 * 1000;
const ANSWER_MS = 15_000;

export interface Recipients {
  /** Asks the network. Throws NetworkRefusal, NetworkTimeout. */
  check(number: string): Promise<NumberCheck>;
  /** The JID to send to, from the store where it was asked lately; null when the number has no account. Throws as `check`. */
  jidOf(number: string): Promise<string | null>;
}

export interface RecipientsOptions {
  socket: Pick<WASocket, "onWhatsApp">;
  kv: Kv;
  lineId: string;
  runtime: Pick<Runtime, "clock">;
}

export function makeRecipients({ socket, kv, lineId, runtime }: RecipientsOptions): Recipients {
  const { clock } = runtime;

  async function check(number: string): Promise<NumberCheck> {
    const answer = await within(clock, ANSWER_MS, socket.onWhatsApp(number)).catch((cause) => {
      throw new NetworkRefusal("The messaging network could not check the number.", { cause });
    });
    if (answer === "late" || answer === undefined) {
      throw new NetworkTimeout("The messaging network did not say whether the number exists.");
    }
    const found = answer.find((entry) => entry.exists);
    if (!found) return { exists: false, jid: `${number}@s.whatsapp.net` };
    await kv.commit(new Change().set(networkKeys.waRecipient(lineId, number), { jid: found.jid, at: clock.now() }));
    return { exists: true, jid: found.jid };
  }

  return {
    check,
    async jidOf(number) {
      const { value } = await kv.get(networkKeys.waRecipient(lineId, number));
      if (value && clock.now() - value.at < KEPT_MS) return value.jid;
      const { exists, jid } = await check(number);
      return exists ? jid : null;
    },
  };
}
