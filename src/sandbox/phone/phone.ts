/**
 * A simulated phone: the primary device of a WhatsApp account, in this process. It links companions, encrypts and
 * decrypts with real Signal sessions, and answers the network as the app does.
 */
import type { proto } from "@whiskeysockets/baileys";
import { KeyedQueue } from "../../base/keyed_queue.ts";
import { invalid, notFound } from "../../errors.ts";
import type { Runtime } from "../../runtime.ts";
import { type BinaryNode, isGroup, messageId } from "../world/stanza.ts";
import type { Device, LinkAnswer, PhoneUplink } from "../world/uplink.ts";
import { Passkey } from "./authenticator.ts";
import {
  type Addressed,
  compose,
  type Composed,
  composeEdit,
  composeReaction,
  composeRevocation,
  composeTap,
  composeVote,
  keyOf,
  type PhoneMessage,
} from "./compose.ts";
import { chatJid, chatWithOthers, type PhoneContext } from "./context.ts";
import { Inbox, type InboxItem } from "./inbox.ts";
import { makeKeys, refill } from "./keys.ts";
import { Linker } from "./linking.ts";
import { makeOutbox, type Outbox, type Sent } from "./outbox.ts";
import type { PasskeyState } from "./passkey_exchange.ts";
import { makeReceiver, type Receiver } from "./receiver.ts";
import { SenderKeys, SignalSessions } from "./signal.ts";
import { callOffer, type ChatState, chatState, readReceipt } from "./stanzas.ts";
import { type AppStateKey, composeWelcome, namePatch, saltPatch } from "./welcome.ts";

interface PhoneOptions {
  runtime: Runtime;
  uplink: PhoneUplink;
  /** Digits only. */
  number: string;
  /** `…@lid`. */
  lid: string;
  name?: string;
  /** Whether links of this account require a passkey, which the owner has. */
  passkey?: boolean;
}

/** The phone as the network uses it, and its owner through the control API. Throws Problem for bad input. */
export class Phone implements Device {
  readonly jid: string;
  lid: string;
  /** Digits only. */
  readonly number: string;
  readonly name: string;
  #context: PhoneContext;
  #inbox: Inbox;
  #outbox: Outbox;
  #receiver: Receiver;
  #linker: Linker;
  /** Serialises the reading of stanzas, and separately the sending of messages. */
  readonly #turns = new KeyedQueue();
  /** The key with which the shared settings are encrypted; the same for all companions. */
  #appStateKey: AppStateKey;

  /** Publishes the phone's keys, which registers it with the network. */
  constructor({ runtime, uplink, number, lid, name = number, passkey = false }: PhoneOptions) {
    this.jid = `${number}@s.whatsapp.net`;
    this.lid = lid;
    this.number = number;
    this.name = name;
    const keys = makeKeys(runtime.random);
    const [sessions, senderKeys] = [new SignalSessions(keys), new SenderKeys()];
    this.#context = { runtime, uplink, media: uplink.media, self: this, name, keys, sessions, senderKeys };
    this.#inbox = new Inbox(this.#context);
    this.#outbox = makeOutbox(this.#context);
    this.#receiver = makeReceiver(this.#context, { inbox: this.#inbox, outbox: this.#outbox });
    this.#appStateKey = { id: runtime.random.bytes(6), data: runtime.random.bytes(32) };
    this.#linker = new Linker(this.#context, passkey ? new Passkey(runtime.random) : null);
    uplink.publishKeys(this, refill(keys)!);
    if (this.#linker.passkey) uplink.demandPasskey(this, this.#linker.passkey.credential);
  }

  welcome(companion: string): void {
    this.#turns.add("sending", async () => {
      const { uplink } = this.#context;
      uplink.beginSettings(this, { name: "critical_block", patch: await namePatch(this.#appStateKey, this.#context) });
      const about = { key: this.#appStateKey, chats: uplink.chatsOf(this) };
      for (const message of await composeWelcome(about, this.#context)) await this.#outbox.tell(companion, message);
    }).catch((error) => {
      this.#context.runtime.log.warn({ err: error, phone: this.number }, "a phone could not welcome its companion");
    });
  }

  /** Sends a message that shows in no chat to one of the phone's own companions. */
  tell(companion: string, message: proto.IMessage): Promise<void> {
    return this.#turns.add("sending", () => this.#outbox.tell(companion, message));
  }

  shareSalt(): void {
    const { uplink, runtime } = this.#context;
    uplink.changeSettings(this, saltPatch(this.#appStateKey, uplink.chatsOf(this).nctSalt, runtime.random));
  }

  /** Scans a QR, given as its text or a PNG data URL. */
  scan(qr: string): Promise<LinkAnswer> {
    return Promise.try(() => this.#linker.scan(qr));
  }

  /** Enters the code that a companion shows. */
  enterCode(typed: string) {
    return this.#linker.enterCode(typed);
  }

  /** The link with a passkey in progress, or null. */
  passkeyState(): PasskeyState | null {
    return this.#linker.passkeyState();
  }

  /** Signs WebAuthn request options, as the owner's browser would. Throws Problem not_found without a passkey. */
  signPasskey(options: unknown) {
    return this.#linker.ownPasskey().sign(options);
  }

  /** Confirms that the companion shows the same code. Throws Problem not_found if no code is shown. */
  confirmPasskey(): void {
    this.#linker.confirmPasskey();
  }

  /** Exports the passkey. Throws Problem not_found without one. */
  exportPasskey() {
    return this.#linker.ownPasskey().export();
  }

  /** Encrypts and sends a message; resolves once the network has accepted it. */
  sendMessage(message: PhoneMessage): Promise<{ id: string }> {
    return this.#inTurn(async () => {
      const to = chatJid(message.to);
      const content = await compose(message, this.#context);
      return await this.#outbox.send(to, content, { hideNumber: message.hideNumber });
    });
  }

  /** Votes on a poll in the inbox, by the names of options. Throws Problem not_found or validation_failed. */
  vote(messageId: string, options: readonly string[]): Promise<{ id: string }> {
    return this.#answer(messageId, (received) => composeVote(received, options, this.#context));
  }

  /** Taps an option of a message in the inbox, by its id. Throws Problem not_found or validation_failed. */
  tap(messageId: string, choice: string): Promise<{ id: string }> {
    return this.#answer(messageId, (received) => composeTap(received, choice));
  }

  /** Reacts to a message in the inbox; an empty emoji removes the reaction. Throws Problem not_found. */
  react(messageId: string, emoji: string): Promise<{ id: string }> {
    return this.#answer(messageId, (received) => composeReaction(received, emoji, this.#context));
  }

  #answer(messageId: string, make: (received: Addressed) => Composed): Promise<{ id: string }> {
    return this.#inTurn(() => {
      const received = this.#inbox.message(messageId);
      const key = keyOf(received);
      const hideNumber = this.#outbox.hidesNumberIn(key.remoteJid!);
      const { message, edit } = make({ ...received, key, hideNumber });
      return this.#outbox.send(key.remoteJid!, message, { hideNumber, edit });
    });
  }

  /** Edits the text of a message that this phone sent; `plain`: as older apps do. Throws Problem not_found. */
  edit(messageId: string, { text, plain }: { text: string; plain: boolean }): Promise<{ id: string }> {
    return this.#changeOwn(
      messageId,
      (key, sent) => composeEdit({ key, text, original: plain ? null : { ...sent, author: sent.from } }, this.#context),
    );
  }

  /** Deletes a message that this phone sent, for everyone. Throws Problem not_found. */
  revoke(messageId: string): Promise<{ id: string }> {
    return this.#changeOwn(messageId, composeRevocation);
  }

  #changeOwn(
    id: string,
    make: (key: proto.IMessageKey, sent: Sent) => Composed,
  ): Promise<{ id: string }> {
    return this.#inTurn(() => {
      const sent = this.#outbox.find(id);
      if (!sent) throw notFound("message that this phone sent");
      const { message, edit } = make({ remoteJid: sent.chat, fromMe: true, id }, sent);
      return this.#outbox.send(sent.chat, message, { edit, hideNumber: sent.hideNumber });
    });
  }

  #inTurn(send: () => Promise<string>): Promise<{ id: string }> {
    return this.#turns.add("sending", async () => ({ id: await send() }));
  }

  /**
   * Shows in a chat that the owner is typing or recording, or has stopped. Throws Problem validation_failed if nobody
   * would see it.
   */
  setTyping(to: string, state: "typing" | "recording" | "paused"): void {
    const chat = chatWithOthers(to, this.#context);
    this.#context.uplink.send(this, chatState(chat, { from: this.#shownIn(chat), state }));
  }

  /** Starts a call; nobody has to answer. Throws Problem validation_failed if it would ring nowhere. */
  call(to: string, { video }: { video: boolean }): { callId: string } {
    const { random, clock } = this.#context.runtime;
    const chat = chatWithOthers(to, this.#context);
    if (isGroup(chat)) throw invalid("to", "is a group, and calls are to one person");
    const callId = messageId(random);
    this.#context.uplink.send(this, callOffer(chat, { from: this.#shownIn(chat), callId, video, clock }));
    return { callId };
  }

  /** Returns the phone's address as the members of a chat see it. */
  #shownIn(chat: string): string {
    return this.#outbox.hidesNumberIn(chat) ? this.lid : this.jid;
  }

  /** Returns the typing states that the phone saw in chats, oldest first. */
  chatStates(): ChatState[] {
    return this.#receiver.chatStates();
  }

  /** Returns the messages that the phone decrypted, oldest first. */
  inbox(): InboxItem[] {
    return this.#inbox.items();
  }

  /** Sends the read receipt of a message in the inbox. Throws Problem not_found. */
  read(messageId: string): void {
    const { runtime, uplink } = this.#context;
    const { stanza } = this.#inbox.incoming(messageId);
    uplink.send(this, readReceipt(stanza, { self: this, clock: runtime.clock }));
  }

  /** Resolves when everything delivered so far has been processed. */
  async idle(): Promise<void> {
    await this.#turns.onIdle();
  }

  deliver(stanza: BinaryNode): void {
    this.#turns.add("receiving", () => this.#receiver.take(stanza)).catch((error) => {
      this.#context.runtime.log.warn(
        { err: error, phone: this.number, tag: stanza.tag },
        "a phone could not process a stanza",
      );
    });
  }
}
