/**
 * People whose account has another LID than before, as when their number is registered anew. The network says so with
 * the ack of a message, or by a notification; an account that goes on writing to the old LID may be suspended.
 */
import type { Buffer } from "node:buffer";
import {
  type BinaryNode,
  getBinaryNodeChild,
  isLidUser,
  isPnUser,
  jidDecode,
  jidNormalizedUser,
  type WASocket,
} from "@whiskeysockets/baileys";
import { detached, errorName } from "../../../base/retry.ts";
import type { Runtime } from "../../../runtime.ts";
import { answerOf, bytesIn, childrenOf, usersIn, usync } from "../stanza.ts";
import type { Addressing } from "./addressing.ts";
import type { Devices } from "./devices.ts";

/** Short, because the line's next message waits for the answer. */
const ANSWER_MS = 5_000;
/** The name of the notification, as WhatsApp Web knows it. */
export const LID_CHANGE = "LidChangeNotification";

export type Moves = ReturnType<typeof takeMoves>;

interface MovesOptions {
  socket: Pick<WASocket, "ws" | "query" | "generateMessageTag" | "signalRepository" | "authState">;
  addressing: Pick<Addressing, "numberOf" | "lidOf">;
  devices: Pick<Devices, "forget">;
  runtime: Pick<Runtime, "clock" | "log">;
}

export function takeMoves({ socket, addressing, devices, runtime: { clock, log } }: MovesOptions) {
  const { ws, signalRepository, authState: { keys } } = socket;
  /** Numbers that were asked for on this connection. */
  const asked = new Set<string>();

  /** Stores the pair. What belongs to the old LID is of no more use, and must not be used. */
  async function move(number: string, { old, lid }: { old: string; lid: string }): Promise<void> {
    if (lid === old) return;
    await devices.forget(old);
    const { user } = jidDecode(old)!;
    const { [user]: ids = [] } = await keys.get("device-list", [user]);
    await signalRepository.deleteSession(["0", ...ids].map((device) => `${user}:${device}@lid`));
    await keys.set({ "device-list": { [user]: null } });
    await signalRepository.lidMapping.storeLIDPNMappings([{ lid, pn: number }]);
    log.info({}, "a person's account has moved to another address");
  }

  async function lidNow(number: string): Promise<string | null> {
    const about = { context: "background", sid: socket.generateMessageTag() } as const;
    const query = usync(about, {
      asked: [{ tag: "lid", attrs: {} }],
      users: [{ tag: "user", attrs: { jid: number } }],
    });
    const answer = await answerOf(clock, socket.query(query), "say who has the number", { withinMs: ANSWER_MS });
    const [user] = usersIn(answer);
    const lid = getBinaryNodeChild(user, "lid")?.attrs.val;
    return isLidUser(lid) ? jidNormalizedUser(lid) : null;
  }

  function takeNotification(stanza: BinaryNode): void {
    for (const update of stanza.attrs.type === "mex" ? childrenOf(stanza, "update") : []) {
      if (update.attrs.op_name !== LID_CHANGE) continue;
      const pair = pairIn(bytesIn(update));
      if (!pair) continue;
      const moved = addressing.numberOf(pair.old).then((number) => isPnUser(number) ? move(number, pair) : undefined);
      void detached(moved, (failure) => log.warn(failure, "a person's new address could not be kept"));
    }
  }
  ws.on("CB:notification", takeNotification);

  return {
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
        if (lid && isLidUser(old)) await move(number, { old, lid });
      } catch (error) {
        log.warn({ error: errorName(error) }, "a person's new address could not be learnt");
      }
    },
  };
}

/** Reads the notification's GraphQL data; null if it is malformed. */
function pairIn(json: Buffer): { old: string; lid: string } | null {
  try {
    const { old, new: lid } = JSON.parse(json.toString()).data.xwa2_notify_lid_change;
    return isLidUser(old) && isLidUser(lid) ? { old: jidNormalizedUser(old), lid: jidNormalizedUser(lid) } : null;
  } catch {
    return null;
  }
}
