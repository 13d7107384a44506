/** Messages that others are about: quoted, reacted to, sent on. Found by the id that the API gave them, or an event. */
import { notFound } from "../errors.ts";
import { previewOf, typeOf } from "../message/content.ts";
import type { Preview } from "../message/kinds/kind.ts";
import { chatOf, type Message } from "../message/message.ts";
import { messageKeys } from "../message/rows.ts";
import type { Kv } from "../store/kv.ts";
import type { Network } from "../whatsapp/network.ts";
import type { ForwardableKind, MessageKey } from "../whatsapp/outgoing.ts";
import { lineKeys } from "./rows.ts";

export interface Referred {
  lineId: string;
  key: MessageKey;
  /** Its chat, as a send takes it. */
  chat: string;
  /** Digits of the other side, where the chat is a `@lid` and the network revealed it. */
  number: string | null;
  /** As what it can be sent on; null when it cannot. */
  kind: ForwardableKind | null;
  preview: Preview;
  /** The row of a message that the API sent. */
  message: Message | null;
}

export class References {
  readonly #kv: Kv;
  readonly #network: Pick<Network, "recall" | "numberOf">;

  constructor({ kv, network }: { kv: Kv; network: Pick<Network, "recall" | "numberOf"> }) {
    this.#kv = kv;
    this.#network = network;
  }

  /**
   * Throws Problem not_found, also for another account's. The id of an event may be known to several lines of the
   * account: the oldest line that knows it counts, unless one is named.
   */
  async find(accountId: string, messageId: string, { sessionId }: { sessionId: string | null }): Promise<Referred> {
    if (messageId.startsWith("msg_")) {
      const message = await this.#sent(messageId);
      if (message?.accountId !== accountId) throw notFound("message");
      return ofMessage(message);
    }
    for await (const { value: lineId } of this.#kv.list({ prefix: lineKeys.linesOfAccount(accountId) })) {
      if (sessionId !== null && sessionId !== lineId) continue;
      const found = await this.#onLine(lineId, messageId);
      if (found) return found;
    }
    throw notFound("message");
  }

  /** Whether what a line sends to `to` stands in the chat of the message: a person may be named by number and by `@lid`. */
  async isInChat({ lineId, chat, number }: Referred, to: string): Promise<boolean> {
    const [here, there] = [chatOf(to), chatOf(chat)];
    if (here === there || (there.endsWith("@lid") && here === number)) return true;
    const [lid, other] = here.endsWith("@lid") ? [here, there] : [there, here];
    return lid.endsWith("@lid") && await this.#network.numberOf(lineId, lid) === other;
  }

  async #sent(messageId: string): Promise<Message | null> {
    const { value } = await this.#kv.get(messageKeys.message(messageId));
    return value?.erasedAt === undefined ? value : null;
  }

  async #onLine(lineId: string, networkId: string): Promise<Referred | null> {
    const messageId = (await this.#kv.get(messageKeys.messageOfNetworkId(lineId, networkId))).value;
    const message = messageId && await this.#sent(messageId);
    if (message) return ofMessage(message);
    const recalled = await this.#network.recall(lineId, networkId);
    if (!recalled) return null;
    const { chat, participant, fromMe, number, kind, text, caption, filename } = recalled;
    const preview = { text, caption, filename };
    return { lineId, key: { networkId, participant, fromMe }, chat, number, kind, preview, message: null };
  }
}

function ofMessage(message: Message): Referred {
  const { sessionId: lineId, networkId, to: chat, content } = message;
  const type = typeOf(content);
  const kind = type === "poll" || type === "reaction" || type === "status" ? null : type;
  const key = { networkId, participant: null, fromMe: true };
  return { lineId, key, chat, number: null, kind, preview: previewOf(content), message };
}
