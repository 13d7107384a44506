/**
 * People whose account has another LID than before, as when their number is registered anew. The network says so with
 * the ack of a message, or by a notification; an account that goes on writing to the old LID may be suspended.
 */
import {
  getBinaryNodeChild,
  isLidUser,
  isPnUser,
  jidDecode,
  jidNormalizedUser,
  type WASocket,
} from "@whiskeysockets/baileys";
import { errorName } from "../../../base/retry.ts";
import type { Runtime } from "../../../runtime.ts";
import type { AuthState } from "../auth_state.ts";
import { answerOf, askAboutUsers } from "../stanza.ts";
import type { Addressing } from "./addressing.ts";
import type { Devices } from "./devices.ts";

/** Short, because the line's next message waits for the answer. */
const ANSWER_MS = 5_000;

export type Moves = ReturnType<typeof makeMoves>;

interface MovesOptions {
  socket: Pick<WASocket, "query" | "generateMessageTag" | "signalRepository">;
  keys: AuthState["keys"];
  addressing: Pick<Addressing, "numberOf" | "lidOf">;
  devices: Pick<Devices, "forget">;
  /** Called when a person's new LID is kept. */
  moved: (old: string, lid: string) => void;
  runtime: Pick<Runtime, "clock" | "log">;
}

export function makeMoves({ socket, keys, addressing, devices, moved, runtime: { clock, log } }: MovesOptions) {
  const { signalRepository } = socket;
  /** Numbers that were asked for on this connection. */
  const asked = new Set<string>();

  /** Keeps the new LID. What belongs to the old one is of no more use, and must not be used. */
  async function take(old: string, lid: string): Promise<void> {
    if (lid === old) return;
    const number = await addressing.numberOf(old);
    await devices.forget(old);
    const { user } = jidDecode(old)!;
    const { [user]: ids = [] } = await keys.get("device-list", [user]);
    await signalRepository.deleteSession(["0", ...ids].map((device) => `${user}:${device}@lid`));
    await keys.set({ "device-list": { [user]: null }, "new-lid": { [user]: lid, [jidDecode(lid)!.user]: null } });
    if (isPnUser(number)) await signalRepository.lidMapping.storeLIDPNMappings([{ lid, pn: number }]);
    log.info({}, "a person's account has moved to another address");
    moved(old, lid);
  }

  async function lidNow(number: string): Promise<string | null> {
    const users = [{ tag: "user", attrs: { jid: number } }];
    const asked = askAboutUsers(socket, "background", { asked: [{ tag: "lid", attrs: {} }], users });
    const [user] = await answerOf(clock, asked, "say who has the number", { withinMs: ANSWER_MS });
    const lid = getBinaryNodeChild(user, "lid")?.attrs.val;
    return isLidUser(lid) ? jidNormalizedUser(lid) : null;
  }

  return {
    take,
    /**
     * Asks for the present LID of the person in a chat, once per number and connection, so that the next message goes
     * there. Never rejects.
     */
    async look(chat: string): Promise<void> {
      try {
        const number = await addressing.numberOf(chat);
        if (!isPnUser(number) || asked.has(number)) return;
        asked.add(number);
        const old = isLidUser(chat) ? chat : await addressing.lidOf(number);
        const lid = await lidNow(number);
        if (lid && isLidUser(old)) await take(old, lid);
      } catch (error) {
        log.warn({ error: errorName(error) }, "a person's new address could not be learnt");
      }
    },
  };
}
