/**
 * A simulated phone: the primary device of a WhatsApp account, inside this process. It links companions, encrypts and
 * decrypts with real Signal, and answers the network as an app does.
 */
import { jidNormalizedUser, type proto } from "@whiskeysockets/baileys";
import { Buffer } from "node:buffer";
import { invalid, notFound } from "../../errors.ts";
import { KeyedQueue } from "../../base/keyed_queue.ts";
import type { Runtime } from "../../runtime.ts";
import type { ChatState, InboxItem } from "../world/inbox.ts";
import type { AssertionJson, CodeAnswer, ExportedPasskey, LinkAnswer, PasskeyState } from "../world/linking.ts";
import type { Phone, PhoneMessage } from "../world/phone.ts";
import type { PhoneUplink } from "../world/uplink.ts";
import type { BinaryNode } from "../world/stanza.ts";
import { type ChangeMessage, composeEdit, composeReaction, composeRevocation, composeVote } from "./actions.ts";
import { AttachmentError, receiveFile } from "./attachment.ts";
import { Passkey } from "./authenticator.ts";
import { callOffer, chatState, readChatState } from "./chat_state.ts";
import { compose } from "./compose.ts";
import { type Content, readContent, unwrap } from "./content.ts";
import { isOwn, type PhoneContext } from "./context.ts";
import { decryptStanza } from "./decrypt.ts";
import { amendmentOf } from "./details.ts";
import { Inbox } from "./inbox.ts";
import { addPreKeys, bundleOf, makeKeys, refill } from "./keys.ts";
import { type Companion, readQr, signIdentity } from "./linking.ts";
import { Outbox } from "./outbox.ts";
import { beginCodeExchange, readCode } from "./pairing_code.ts";
import { PasskeyExchange } from "./passkey_exchange.ts";
import { reupload } from "./reupload.ts";
import { SenderKeys } from "./sender_keys.ts";
import { SignalSessions } from "./signal.ts";
import { saltPatch } from "./settings.ts";
import { type AppStateKey, composeWelcome } from "./welcome.ts";
import { ack, deliveryReceipt, readReceipt, retryReceipt } from "./stanzas.ts";

/** How many copies of a message may fail to decrypt before it is given up. */
const RETRY_RECEIPTS = 5;

/** What it saw others do in chats, kept for the control API. */
const STATES_KEPT = 1_000;

interface PhoneOptions {
  runtime: Runtime;
  uplink: PhoneUplink;
  /** Digits. */
  number: string;
  /** `…@lid`. */
  lid: string;
  name?: string;
  /** Whether the account's links demand a passkey, which the owner has. */
  passkey?: boolean;
}

/** Makes a phone and publishes its keys, which registers it with the network. */
export function createPhone(options: PhoneOptions): Phone {
  const phone = new SimulatedPhone(options);
  phone.publishKeys();
  phone.registerPasskey();
  return phone;
}

class SimulatedPhone implements Phone {
  readonly jid: string;
  readonly lid: string;
  readonly number: string;
  readonly name: string;
  #context: PhoneContext;
  #inbox: Inbox;
  #outbox: Outbox;
  /** Work is done one piece after another: what came, and apart from it what is sent. */
  /** One stanza after another is read, one message after another leaves. */
  readonly #turns = new KeyedQueue();
  #retryReceipts = new Map<string, number>();
  /** Secrets of QRs that the network wants to be shown anew; each is valid once. */
  #spentSecrets = new Set<string>();
  #companions = 0;
  /** The key that chat settings are encrypted with, the same for all companions. */
  #appStateKey: AppStateKey;
  #states: ChatState[] = [];
  #passkey: Passkey | null;
  #exchange: PasskeyExchange | null = null;

  constructor({ runtime, uplink, number, lid, name = number, passkey = false }: PhoneOptions) {
    this.jid = `${number}@s.whatsapp.net`;
    this.lid = lid;
    this.number = number;
    this.name = name;
    const keys = makeKeys(runtime.random);
    const sessions = new SignalSessions(keys);
    this.#context = { runtime, uplink, self: this, name, keys, sessions, senderKeys: new SenderKeys() };
    this.#inbox = new Inbox(this.#context);
    this.#outbox = new Outbox(this.#context);
    this.#appStateKey = { id: runtime.random.bytes(6), data: runtime.random.bytes(32) };
    this.#passkey = passkey ? new Passkey(runtime.random) : null;
  }

  welcome(companion: string): void {
    void this.#inTurn(async () => {
      const about = { key: this.#appStateKey, chats: this.#context.uplink.chatsOf(this) };
      for (const message of await composeWelcome(about, this.#context)) await this.#outbox.tell(companion, message);
      return "";
    }).catch((error) => {
      this.#context.runtime.log.warn({ err: error, phone: this.number }, "a phone could not welcome its companion");
    });
  }

  shareSalt(): void {
    const { uplink, runtime } = this.#context;
    uplink.changeSettings(this, saltPatch(this.#appStateKey, uplink.chatsOf(this).nctSalt, runtime.random));
  }

  describe(): { number: string; lid: string; name: string } {
    return { number: this.number, lid: this.lid, name: this.name };
  }

  publishKeys(): void {
    const { uplink, keys } = this.#context;
    const preKeys = refill(keys);
    if (preKeys.length > 0) uplink.publishKeys(this, bundleOf(keys, preKeys));
  }

  registerPasskey(): void {
    if (this.#passkey) this.#context.uplink.demandPasskey(this, this.#passkey.credential);
  }

  scan(qr: string): Promise<LinkAnswer> {
    try {
      const companion = readQr(qr);
      return Promise.resolve(this.#link(companion.ref, companion));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async enterCode(typed: string): Promise<CodeAnswer> {
    const code = readCode(typed);
    const { runtime, uplink, keys } = this.#context;
    const request = uplink.codeRequest(this);
    if (!request) return { kind: "no_request" };
    const exchange = await beginCodeExchange(keys, request, { code, random: runtime.random });
    const answer = await uplink.answerCode(this, request.ref, exchange.hello);
    const companion = answer && exchange.finish(answer);
    return companion ? this.#link(request.ref, companion) : { kind: "wrong_code" };
  }

  #link(ref: string, companion: Companion): LinkAnswer {
    const { runtime, uplink } = this.#context;
    const secret = companion.advSecret.toString();
    if (this.#spentSecrets.has(secret)) return { kind: "refresh" };
    const exchange = new PasskeyExchange({
      companion,
      random: runtime.random,
      sign: (revealed) => {
        const signed = this.#sign(revealed);
        this.#companions++;
        return signed;
      },
      onAsk: () => this.#exchange = exchange,
    });
    const answer = uplink.acceptQr(this, ref, this.#sign(companion), exchange);
    if (answer.kind === "linked") this.#companions++;
    if (answer.kind === "refresh") this.#spentSecrets.add(secret);
    return answer;
  }

  #sign(companion: Companion): Uint8Array {
    const { runtime, keys } = this.#context;
    return signIdentity(keys, companion, { keyIndex: this.#companions + 1, now: runtime.clock.now() });
  }

  passkeyState(): PasskeyState | null {
    return this.#exchange?.state ?? null;
  }

  signPasskey(options: unknown): AssertionJson {
    return this.#ownPasskey().sign(options);
  }

  confirmPasskey(): void {
    if (!this.#exchange?.confirm()) throw notFound("code to confirm on this phone");
  }

  exportPasskey(): ExportedPasskey {
    return this.#ownPasskey().export();
  }

  #ownPasskey(): Passkey {
    if (!this.#passkey) throw notFound("passkey on this phone");
    return this.#passkey;
  }

  sendMessage(message: PhoneMessage): Promise<{ id: string }> {
    return this.#inTurn(async () => {
      const to = chatJid(message.to);
      const { runtime, uplink } = this.#context;
      const content = await compose(message, { runtime, media: uplink.media });
      return await this.#outbox.send(to, content, { hideNumber: message.hideNumber });
    });
  }

  vote(messageId: string, options: readonly string[]): Promise<{ id: string }> {
    return this.#inTurn(() => {
      const received = this.#inbox.message(messageId);
      const { message, to } = composeVote(received, options, this.#context);
      return this.#outbox.send(to, message);
    });
  }

  react(messageId: string, emoji: string): Promise<{ id: string }> {
    return this.#inTurn(() => {
      const { message, to } = composeReaction(this.#inbox.message(messageId), emoji, this.#context);
      return this.#outbox.send(to, message);
    });
  }

  edit(messageId: string, text: string): Promise<{ id: string }> {
    return this.#changeOwn(messageId, (key) => composeEdit(key, text, this.#context));
  }

  revoke(messageId: string): Promise<{ id: string }> {
    return this.#changeOwn(messageId, composeRevocation);
  }

  #changeOwn(id: string, make: (key: proto.IMessageKey) => ChangeMessage): Promise<{ id: string }> {
    return this.#inTurn(() => {
      const chat = this.#outbox.chatOf(id);
      if (!chat) throw notFound("message that this phone sent");
      const { message, edit } = make({ remoteJid: chat, fromMe: true, id });
      return this.#outbox.send(chat, message, { edit });
    });
  }

  #inTurn(send: () => Promise<string>): Promise<{ id: string }> {
    return this.#turns.add("sending", async () => ({ id: await send() }));
  }

  setTyping(to: string, state: "typing" | "recording" | "paused"): void {
    this.#context.uplink.send(this, chatState(chatJid(to), { self: this, state }));
  }

  call(to: string, { video }: { video: boolean }): { callId: string } {
    const { random, clock } = this.#context.runtime;
    const callId = Buffer.from(random.bytes(16)).toString("hex").toUpperCase();
    this.#context.uplink.send(this, callOffer(chatJid(to), { self: this, callId, video, now: clock.now() }));
    return { callId };
  }

  chatStates(): ChatState[] {
    return this.#states.map((state) => ({ ...state }));
  }

  inbox(): InboxItem[] {
    return this.#inbox.items();
  }

  read(messageId: string): void {
    const { runtime, uplink } = this.#context;
    const { stanza } = this.#inbox.incoming(messageId);
    uplink.send(this, readReceipt(stanza, { self: this, now: runtime.clock.now() }));
  }

  async idle(): Promise<void> {
    await this.#turns.onIdle();
  }

  deliver(stanza: BinaryNode): void {
    this.#turns.add("receiving", () => this.#handle(stanza)).catch((error) => {
      this.#context.runtime.log.warn({ err: error, phone: this.number, tag: stanza.tag }, "a phone choked on a stanza");
    });
  }

  async #handle(stanza: BinaryNode): Promise<void> {
    const { uplink } = this.#context;
    if (stanza.tag === "message") return await this.#receiveMessage(stanza);
    if (stanza.tag === "ack") return;
    if (stanza.tag === "chatstate" || stanza.tag === "presence") return this.#see(stanza);
    uplink.send(this, ack(stanza));
    if (stanza.tag !== "receipt") return;
    if (stanza.attrs.type === "retry") await this.#outbox.resend(stanza);
    if (stanza.attrs.type === "server-error" && isOwn(this.#context, stanza.attrs.from ?? "")) {
      uplink.send(this, await reupload(this.#context, stanza, this.#inbox.withId(stanza.attrs.id ?? "")));
    }
  }

  async #receiveMessage(stanza: BinaryNode): Promise<void> {
    const { uplink } = this.#context;
    const decrypted = await decryptStanza(this.#context, stanza);
    this.publishKeys();
    const destination = decrypted.kind === "message" ? decrypted.destination : stanza.attrs.recipient ?? null;
    const known = this.#inbox.find(stanza, destination);
    if (known) {
      known.item.copies++;
    } else if (decrypted.kind === "failed") {
      return this.#askAgain(stanza, decrypted.error);
    } else if (decrypted.kind === "message") {
      const amendment = amendmentOf(unwrap(decrypted.message).inner);
      const content = amendment ? null : readContent(decrypted.message);
      if (amendment) this.#inbox.amend(stanza, amendment);
      // Peer messages pass between a companion and its own phone.
      if (content && stanza.attrs.category !== "peer") await this.#keep(stanza, destination, content);
    }
    const own = isOwn(this.#context, stanza.attrs.participant ?? stanza.attrs.from ?? "");
    uplink.send(this, deliveryReceipt(stanza, { self: this, own }));
  }

  async #keep(stanza: BinaryNode, destination: string | null, content: Content): Promise<void> {
    const { runtime, uplink } = this.#context;
    try {
      const { attachment, kind } = content.file ?? {};
      const file = attachment && kind ? await receiveFile(attachment, kind, { runtime, media: uplink.media }) : null;
      this.#inbox.add(stanza, destination, { content, file, mediaError: null });
    } catch (error) {
      if (!(error instanceof AttachmentError)) throw error;
      this.#inbox.add(stanza, destination, { content, file: null, mediaError: error.message });
    }
  }

  #see(stanza: BinaryNode): void {
    const seen = readChatState(stanza, this.#context);
    if (seen) this.#states.push(seen);
    while (this.#states.length > STATES_KEPT) this.#states.shift();
  }

  #askAgain(stanza: BinaryNode, error: unknown): void {
    const { runtime, uplink, keys } = this.#context;
    const { id, from, participant } = stanza.attrs;
    const key = `${id} ${participant ?? from}`;
    const count = (this.#retryReceipts.get(key) ?? 0) + 1;
    this.#retryReceipts.set(key, count);
    runtime.log.debug({ phone: this.number, id, count, err: error }, "a phone could not decrypt a message");
    if (count <= RETRY_RECEIPTS) {
      const bundle = bundleOf(keys, addPreKeys(keys, 1));
      uplink.send(this, retryReceipt(stanza, { self: this, bundle, count }));
    }
    uplink.send(this, ack(stanza));
  }
}

/** Digits become a number's jid. Throws Problem validation_failed. */
function chatJid(to: string): string {
  if (/^\d{7,15}$/.test(to)) return `${to}@s.whatsapp.net`;
  if (/^[\d-]+@g\.us$/.test(to)) return to;
  if (/^\d+@(s\.whatsapp\.net|lid)$/.test(to)) return jidNormalizedUser(to);
  throw invalid("to", "is neither a number, nor the jid of a user or a group");
}
