/**
 * Sending one message and learning what became of it (promise 3: `sent` means that the server acknowledged).
 *
 * What takes long is done ahead of the departure (promise 2), and may fail without harm: the message surely did not
 * leave. Once the library was told to relay it, only the network's ack counts.
 */
import { detached, errorName } from "../../../base/detached.ts";
import { queryError, statusOf, TIMED_OUT } from "../library_error.ts";
import {
  type BinaryNode,
  isJidGroup,
  isLidUser,
  isPnUser,
  jidNormalizedUser,
  type proto,
  type WASocket,
} from "@whiskeysockets/baileys";
import { type Runtime, sleep } from "../../../runtime.ts";
import type { Inspect } from "../../../inspect/inspector.ts";
import { PATIENCE_MS, StoreError } from "../../../store/kv.ts";
import { NetworkRefusal, NetworkTimeout } from "../../network_error.ts";
import { type Outgoing, type Prepared, type SendOutcome, STATUS_CHAT, type Unsent } from "../../outgoing.ts";
import { within } from "../../../base/within.ts";
import type { AuthState } from "../auth_state.ts";
import { leaveOutStored } from "../repairs/recent_messages.ts";
import type { Ahead } from "./ahead.ts";
import { encode, type EncodeTools } from "./encode.ts";
import { OriginalGone } from "./forward.ts";
import type { GroupCache } from "./group_cache.ts";
import { type Upload, UploadFailed } from "./media_upload.ts";
import type { Devices } from "./devices.ts";
import { NoDevice, type Reached, reachGroup, reachPerson, rotateSenderKey } from "./reach.ts";
import type { Recipients } from "./recipients.ts";
import type { SentStore } from "./sent_store.ts";
import type { Standing } from "./standing.ts";

/** The server acknowledges within a second; after this it is taken as lost. */
const ACK_MS = 20_000;
/** The server has trouble, or wants fewer messages: the only refusals that trying again can change. */
const PASSING = new Set([408, 421, 429, 500, 502, 503, 504]);
/** 463: the account may not start new chats for now. Sending again makes it worse. */
const RESTRICTED = 463;
/** The stanza's word for what changes an earlier message. */
const EDITED = "1";
const REVOKED = "7";
const REVOKED_BY_ADMIN = "8";
const MAY_START_NO_CHATS = "The network does not let this number start new chats for now (error 463).";

export interface SenderOptions {
  socket: WASocket;
  recipients: Recipients;
  groups: GroupCache;
  devices: Pick<Devices, "forget" | "isKeyless">;
  sent: Pick<SentStore, "keep">;
  ahead: Pick<Ahead, "encrypt">;
  auth: Pick<AuthState, "patiently">;
  lineId: string;
  /** As `EncodeTools` say it. */
  source: EncodeTools["source"];
  upload: Upload;
  inspect: Inspect;
  standing: Pick<Standing, "isRestricted" | "tokenFor">;
  /** The network acknowledged a message. */
  acknowledged: () => void;
  runtime: Pick<Runtime, "clock" | "random" | "log">;
  isOpen: () => boolean;
}

export interface Sender {
  /** As `Connection.prepare` says. Never rejects. */
  prepare(message: Outgoing, signal: AbortSignal): Promise<Prepared>;
  /** The connection has ended: what waits for an ack is `unknown`. */
  abandon(): void;
}

/** With `isPartial` the network knows of devices that the message was not encrypted for. */
type Ack = { error: number | null; isPartial: boolean } | "lost";

export function makeSender(options: SenderOptions): Sender {
  const { socket, recipients, groups, devices, sent, lineId, source, upload, inspect, standing, runtime, isOpen } =
    options;
  const { acknowledged, ahead, auth } = options;
  const waiting = new Map<string, (ack: Ack) => void>();
  leaveOutStored(socket.messageRetryManager, (networkId) => waiting.has(networkId));

  socket.ws.on("CB:ack,class:message", ({ attrs }: BinaryNode) => {
    waiting.get(attrs.id ?? "")?.({
      error: attrs.error ? Number(attrs.error) : null,
      isPartial: attrs.phash !== undefined,
    });
  });

  /** Listens for the ack from now on; `within` gives it a deadline once the frame is written. */
  function ackOf(networkId: string) {
    const { promise, resolve: settle } = Promise.withResolvers<Ack>();
    waiting.set(networkId, settle);
    const answer = promise.finally(() => waiting.delete(networkId));
    return { settle, answer: () => within(runtime.clock, ACK_MS, answer) };
  }

  async function recipientOf(to: string): Promise<string | null> {
    if (isJidGroup(to) || to === STATUS_CHAT) return to;
    const jid = /^\d+$/.test(to) ? await recipients.jidOf(to) : jidNormalizedUser(to);
    if (!isPnUser(jid ?? undefined)) return jid;
    // People are addressed by LID wherever it is known, as WhatsApp's own clients do.
    return await socket.signalRepository.lidMapping.getLIDForPN(jid!).catch(() => null) ?? jid;
  }

  /** JIDs of those of a post's audience who have an account; none for a message to a chat. */
  async function audienceOf({ body }: Outgoing): Promise<string[]> {
    if (body.kind !== "status") return [];
    const jids = await Promise.all(body.audience.map(recipientOf));
    return jids.filter((jid) => jid !== null);
  }

  async function chatTools(chat: string) {
    const { id, lid } = socket.authState.creds.me!;
    const original = (networkId: string) => source({ lineId, networkId });
    if (!isJidGroup(chat)) {
      return { chat, me: jidNormalizedUser(isLidUser(chat) && lid ? lid : id), members: [], original };
    }
    const { participants, addressingMode } = await groups.metadata(chat);
    const me = jidNormalizedUser(addressingMode === "lid" && lid ? lid : id);
    return { chat, me, members: participants.map((participant) => participant.id), original };
  }

  /**
   * Spares the departure what can be asked before; where that fails, the library asks again and its outcome counts. The
   * devices of a person, where they were reached.
   */
  async function reach(jid: string): Promise<Reached | null> {
    try {
      if (jid === STATUS_CHAT) return null; // whoever is in its audience gets the post's key with it
      if (!isJidGroup(jid)) return await reachPerson(socket, jid, devices);
      await reachGroup(socket, await groups.metadata(jid));
    } catch (error) {
      if (error instanceof NoDevice) throw error;
      runtime.log.debug({ error: errorName(error) }, "the devices of a chat could not be reached ahead");
    }
    return null;
  }

  /** As the library will ask for it; where that fails, or it asks for something else, it encrypts by itself. */
  async function encryptAhead(
    { jid: destinationJid, reached: { theirs, own } }: { jid: string; reached: Reached },
    message: proto.IMessage,
    leaving: Promise<void>,
  ): Promise<void> {
    const { messageContextInfo } = message;
    const toOwn = { deviceSentMessage: { destinationJid, message }, messageContextInfo };
    // The departure of a message that was encrypted ahead takes its sessions along.
    const patience = Promise.race([leaving, sleep(runtime.clock, PATIENCE_MS)]);
    try {
      await auth.patiently(patience, async () => {
        await Promise.all([ahead.encrypt(message, theirs), ahead.encrypt(toOwn, own)]);
      });
    } catch (error) {
      runtime.log.debug({ error: errorName(error) }, "a message could not be encrypted ahead");
    }
  }

  async function relay({ jid, ...stanza }: Stanza, message: Outgoing, content: proto.IMessage): Promise<SendOutcome> {
    const ack = ackOf(message.networkId);
    try {
      await socket.relayMessage(jid, content, {
        messageId: message.networkId,
        ...stanza,
      });
    } catch (error) {
      if (surelyUnsent(error)) {
        ack.settle("lost");
        return isOpen() ? { kind: "retry", detail: describe(error) } : offline();
      }
    }
    return await outcomeOf(await ack.answer(), jid);
  }

  /** What the network wants to see of a message that it cannot read. Throws StoreError. */
  async function stanzaOf({ jid, audience }: Route, content: proto.IMessage): Promise<Stanza> {
    const { protocolMessage: amendment, pollCreationMessage, pollCreationMessageV3 } = content;
    const isPoll = pollCreationMessage || pollCreationMessageV3;
    const additionalNodes: BinaryNode[] = [
      ...await standing.tokenFor(jid),
      ...(isPoll ? [{ tag: "meta", attrs: { polltype: "creation" } }] : []),
    ];
    const revoked = amendment?.key?.fromMe ? REVOKED : REVOKED_BY_ADMIN;
    const edit = amendment && { edit: amendment.editedMessage ? EDITED : revoked };
    return {
      jid,
      additionalNodes,
      ...(edit ? { additionalAttributes: edit } : {}),
      ...(audience.length > 0 ? { statusJidList: [...audience] } : {}),
    };
  }

  async function outcomeOf(ack: Ack | "late", jid: string): Promise<SendOutcome> {
    if (ack === "late") return { kind: "unknown", detail: "The network did not acknowledge the message in time." };
    if (ack === "lost") return { kind: "unknown", detail: "The connection was lost before the acknowledgement." };
    const { error, isPartial } = ack;
    if (error !== null || isPartial) groups.forget(jid);
    if (isPartial) void devices.forget(jid);
    if (error === null) {
      acknowledged();
      return { kind: "sent", chat: jid };
    }
    if (error === RESTRICTED && await standing.isRestricted()) {
      return { kind: "restricted", detail: MAY_START_NO_CHATS };
    }
    if (PASSING.has(error)) return { kind: "retry", detail: `The network answered with error ${error}.` };
    return {
      kind: "refused",
      code: error === RESTRICTED ? "account_restricted" : "refused",
      detail: error === RESTRICTED ? MAY_START_NO_CHATS : `The network refused the message (error ${error}).`,
    };
  }

  /** Phones drop it when the message arrives, or after some seconds. */
  function type(jid: string): void {
    if (!isOpen() || jid === STATUS_CHAT) return;
    void detached(socket.sendPresenceUpdate("composing", jid), (failure) => {
      runtime.log.debug(failure, "typing could not be shown");
    });
  }

  /** Lets the message leave. */
  async function depart(route: Route, message: Outgoing, content: proto.IMessage): Promise<SendOutcome> {
    const { jid } = route;
    if (!isOpen()) return offline();
    let stanza: Stanza;
    try {
      stanza = await stanzaOf(route, content);
      if (isJidGroup(jid)) await rotateSenderKey(socket, await groups.metadata(jid));
    } catch (error) {
      return unsent(message, error);
    }
    return isOpen() ? await relay(stanza, message, content) : offline();
  }

  function unsent({ networkId, to }: Outgoing, error: unknown): Unsent {
    if (!isOpen()) return offline();
    const code = queryError(error);
    if (isJidGroup(to) && code !== null && [401, 403, 404].includes(code)) {
      return { kind: "refused", code: "group_not_accessible", detail: "The line is not in this group." };
    }
    if (error instanceof OriginalGone) {
      return { kind: "refused", code: "original_gone", detail: "The message to forward is not kept any more." };
    }
    runtime.log.warn({ networkId, error: errorName(error) }, "a message could not be prepared");
    return { kind: "retry", detail: describe(error) };
  }

  return {
    async prepare(message, signal) {
      if (!isOpen()) return offline();
      try {
        const jid = await recipientOf(message.to);
        if (jid === null) {
          return { kind: "refused", code: "number_not_registered", detail: `${message.to} has no account.` };
        }
        if (isJidGroup(jid)) await groups.metadata(jid);
        const audience = await audienceOf(message);
        if (jid === STATUS_CHAT && audience.length === 0) {
          return { kind: "refused", code: "number_not_registered", detail: "Nobody in the audience has an account." };
        }
        const content = await encode(message, { ...await chatTools(jid), upload, inspect, runtime, signal, source });
        const reached = await reach(jid);
        const { promise: leaving, resolve: leaves } = Promise.withResolvers<void>();
        let encrypted: Promise<void> | undefined;
        return {
          kind: "ready",
          keep: (change) => sent.keep(change, message.networkId, content),
          type: () => type(jid),
          leavesNext() {
            if (reached && isOpen()) encrypted ??= encryptAhead({ jid, reached }, content, leaving);
          },
          async send() {
            leaves();
            await encrypted;
            return await depart({ jid, audience }, message, content);
          },
        };
      } catch (error) {
        return signal.aborted ? { kind: "hold", detail: "It was not wanted any more." } : unsent(message, error);
      }
    },
    abandon() {
      for (const settle of waiting.values()) settle("lost");
    },
  };
}

/** Where a message goes: the chat, and of a status post who gets it. */
interface Route {
  jid: string;
  audience: readonly string[];
}

/** Of a message, what the library writes around it. */
type Stanza = { jid: string } & Omit<Parameters<WASocket["relayMessage"]>[2], "messageId">;

function offline(): Unsent {
  return { kind: "hold", detail: "The line is not connected." };
}

/**
 * Whether the library failed before it wrote the frame. Its key transaction commits after the frame, and a write to
 * the socket may fail or hang half-way: those, and only those, leave the question open.
 */
function surelyUnsent(error: unknown): boolean {
  if (error instanceof StoreError) return false;
  const code = error instanceof Error && "code" in error ? error.code : null;
  const socketFailed = typeof code === "string" && /^E[A-Z]/.test(code);
  return !socketFailed && statusOf(error) !== TIMED_OUT;
}

/** One sentence without the library's own words, which may hold addresses or content. */
function describe(error: unknown): string {
  if (error instanceof NetworkRefusal || error instanceof NetworkTimeout) return error.message;
  if (error instanceof StoreError) return "The storage could not be used.";
  const code = queryError(error);
  if (code !== null) return `The network answered a query with error ${code}.`;
  if (error instanceof NoDevice) return "The recipient has no device with keys now.";
  if (error instanceof UploadFailed) return "The file could not be uploaded.";
  return "The message could not be prepared.";
}
