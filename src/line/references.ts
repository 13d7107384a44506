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
  /** Digits of the other side, where the chat is a `@lid` and the network told. */
  number: string | null;
  /** As what it can be sent on; null when it cannot. */
  kind: ForwardableKind | null;
  preview: Preview;
  /** The row of a message that the API sent. */
  message: Message | null;
}

/** Whether what a line sends to `to` stands in the chat of the message: a person may be named by number and by `@lid`. */
export type IsInChat = (referred: Referred, to: string) => Promise<boolean>;

export function makeIsInChat(network: Pick<Network, "numberOf">): IsInChat {
  return async ({ lineId, chat, number }, to) => {
    const [here, there] = [chatOf(to), chatOf(chat)];
    if (here === there || here === number) return true;
    const [lid, other] = here.endsWith("@lid") ? [here, there] : [there, here];
    return lid.endsWith("@lid") && await network.numberOf(lineId, lid) === other;
  };
}

/**
 * Throws Problem not_found, also for another account's. The id of an event may be known to several lines of the account:
 * the oldest line that knows it counts, unless one is named.
 */
export type FindReferred = (
  accountId: string,
  messageId: string,
  options: { sessionId: string | null },
) => Promise<Referred>;

export function makeFindReferred({ kv, network }: { kv: Kv; network: Pick<Network, "recall"> }): FindReferred {
  async function sent(messageId: string): Promise<Message | null> {
    const { value } = await kv.get(messageKeys.message(messageId));
    return value?.erasedAt === undefined ? value : null;
  }

  async function onLine(lineId: string, networkId: string): Promise<Referred | null> {
    const messageId = (await kv.get(messageKeys.messageOfNetworkId(lineId, networkId))).value;
    const message = messageId && await sent(messageId);
    if (message) return ofMessage(message);
    const recalled = await network.recall(lineId, networkId);
    if (!recalled) return null;
    const { chat, participant, fromMe, number, kind, text, caption, filename } = recalled;
    const preview = { text, caption, filename };
    return { lineId, key: { networkId, participant, fromMe }, chat, number, kind, preview, message: null };
  }

  return async (accountId, messageId, { sessionId }) => {
    if (messageId.startsWith("msg_")) {
      const message = await sent(messageId);
      if (message?.accountId !== accountId) throw notFound("message");
      return ofMessage(message);
    }
    for await (const { value: lineId } of kv.list({ prefix: lineKeys.linesOfAccount(accountId) })) {
      if (sessionId !== null && sessionId !== lineId) continue;
      const found = await onLine(lineId, messageId);
      if (found) return found;
    }
    throw notFound("message");
  };
}

function ofMessage(message: Message): Referred {
  const { sessionId: lineId, networkId, to: chat, content } = message;
  const type = typeOf(content);
  const kind = type === "poll" || type === "reaction" || type === "status" ? null : type;
  const key = { networkId, participant: null, fromMe: true };
  return { lineId, key, chat, number: null, kind, preview: previewOf(content), message };
}
