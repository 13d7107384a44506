/**
 * Looks up messages that other messages refer to: quoted, reacted to, or forwarded. They are found by the id that the
 * API or an event gave them.
 */
import { notFound } from "../errors.ts";
import { type MessageKind, previewOf, typeOf } from "../message/content.ts";
import type { Preview } from "../message/kinds/plain.ts";
import { chatOf, type Message } from "../message/message.ts";
import { messageKeys } from "../message/rows.ts";
import { filled } from "../message/templates/filled.ts";
import type { Kv } from "../store/kv.ts";
import type { Network } from "../whatsapp/network.ts";
import type { ForwardableKind, MessageKey } from "../whatsapp/outgoing.ts";
import { hadOtherNumber } from "./line.ts";
import { lineKeys } from "./rows.ts";

/** Kinds that cannot be forwarded. */
const NOT_FORWARDED: ReadonlySet<MessageKind> = new Set(["poll", "reaction", "status", "choices"]);

export interface Referred {
  lineId: string;
  key: MessageKey;
  /** The message's chat, in the form that a send accepts. */
  chat: string;
  /** Digits of the other side, if the chat is a `@lid` and the network revealed its number. */
  number: string | null;
  /** The kind as which the message can be forwarded; null if it cannot. */
  kind: ForwardableKind | null;
  preview: Preview;
  /** The record, if the API sent the message. */
  message: Message | null;
  /**
   * True if the line sent it from another number than its present one. The network knows only that other number as its
   * author; what that number received is forgotten when the link ends.
   */
  isOfOtherNumber: boolean;
}

export class References {
  readonly #kv: Kv;
  readonly #network: Pick<Network, "recall" | "numberOf">;

  constructor({ kv, network }: { kv: Kv; network: Pick<Network, "recall" | "numberOf"> }) {
    this.#kv = kv;
    this.#network = network;
  }

  /**
   * Finds a message of the account. An id from an event may be known to several lines: the oldest line that knows it is
   * used, one whose last number sent it only if no other does, unless `sessionId` names one. Throws Problem not_found,
   * also for another account's message.
   */
  async find(accountId: string, messageId: string, { sessionId }: { sessionId: string | null }): Promise<Referred> {
    if (messageId.startsWith("msg_")) {
      const message = await this.#sent(messageId);
      if (message?.accountId !== accountId) throw notFound("message");
      return await this.#ofMessage(message);
    }
    let ofOtherNumber: Referred | null = null;
    for await (const { value: lineId } of this.#kv.list({ prefix: lineKeys.linesOfAccount(accountId) })) {
      if (sessionId !== null && sessionId !== lineId) continue;
      const found = await this.#onLine(lineId, messageId);
      if (found && !found.isOfOtherNumber) return found;
      ofOtherNumber ??= found;
    }
    if (ofOtherNumber) return ofOtherNumber;
    throw notFound("message");
  }

  /** Returns whether `to` names the chat of the message: a person may be named by number or by `@lid`. */
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
    if (message) return await this.#ofMessage(message);
    const recalled = await this.#network.recall(lineId, networkId);
    if (!recalled) return null;
    const { chat, participant, fromMe, number, kind, ...preview } = recalled;
    const key = { networkId, participant, fromMe };
    return { lineId, key, chat, number, kind, preview, message: null, isOfOtherNumber: false };
  }

  async #ofMessage(message: Message): Promise<Referred> {
    const { sessionId: lineId, networkId, to: chat, sentAt } = message;
    const [{ content }] = await filled(this.#kv, [message]) as [Message];
    const type = typeOf(content);
    const kind = NOT_FORWARDED.has(type) ? null : type as ForwardableKind;
    const key = { networkId, participant: null, fromMe: true };
    const { value: line } = await this.#kv.get(lineKeys.line(lineId));
    const isOfOtherNumber = line !== null && sentAt !== null && hadOtherNumber(line, sentAt);
    return { lineId, key, chat, number: null, kind, preview: previewOf(content), message, isOfOtherNumber };
  }
}
