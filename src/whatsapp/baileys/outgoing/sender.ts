/**
 * Prepares one message. Slow steps happen before the departure (promise 2), where failure is harmless because the
 * message certainly has not left. `relay.ts` then sends it.
 */
import { isJidGroup, isLidUser, jidDecode, jidNormalizedUser, type proto } from "@whiskeysockets/baileys";
import { detached, errorName } from "../../../base/retry.ts";
import type { Inspect } from "../../../inspect/inspector.ts";
import { type Runtime, sleep } from "../../../runtime.ts";
import type { Seal } from "../../../store/seal.ts";
import { LINGER_MS } from "../../../store/kv.ts";
import { type Outgoing, type Prepared, STATUS_CHAT, type Unsent } from "../../outgoing.ts";
import type { AuthState } from "../auth_state.ts";
import type { Addressing, Recipients } from "./addressing.ts";
import type { Ahead } from "./ahead.ts";
import { type Devices, NoDevice, type Reached, reachGroup, reachPerson } from "./devices.ts";
import { encode, type EncodeTools } from "./encode.ts";
import type { Upload } from "./media_upload.ts";
import { OFFLINE, Relay, type RelayDeps, unsent } from "./relay.ts";
import { keepSent } from "../stored_messages.ts";
import type { DisappearingTimers } from "../disappearing.ts";

interface SenderDeps extends RelayDeps {
  recipients: Recipients;
  addressing: Addressing;
  timers: Pick<DisappearingTimers, "of">;
  devices: Pick<Devices, "forget" | "hashOf" | "isKeyless">;
  seal: Seal;
  ahead: Pick<Ahead, "encrypt">;
  auth: Pick<AuthState, "lingering">;
  lineId: string;
  /** See `EncodeTools`. */
  source: EncodeTools["source"];
  upload: Upload;
  inspect: Inspect;
  runtime: Pick<Runtime, "clock" | "random" | "log">;
}

interface Encryption {
  /** Resolves when it is done, or has failed. */
  encrypted: Promise<void>;
  /** Resolves when a session of each person waits for a flush; those of their other devices follow that. */
  waiting: Promise<void>;
}

/** The message was prepared for an address that is not the recipient's any more. */
const MOVED: Unsent = { kind: "hold", detail: "The recipient's address has changed." };

export type Sender = ReturnType<typeof makeSender>;

export function makeSender(deps: SenderDeps) {
  const { socket, groups, recipients, addressing, timers, devices, seal, ahead, auth, lineId, isOpen, runtime } = deps;
  const relay = new Relay(deps);

  /** As specified by `Connection.prepare`. Never rejects. */
  async function prepare(message: Outgoing, signal: AbortSignal): Promise<Prepared> {
    if (!isOpen()) return OFFLINE;
    try {
      const jid = await recipientOf(message.to);
      if (jid === null) {
        return { kind: "refused", code: "number_not_registered", detail: `${message.to} is not on WhatsApp.` };
      }
      if (isJidGroup(jid)) await groups.metadata(jid);
      const audience = await audienceOf(message);
      if (jid === STATUS_CHAT && audience.length === 0) {
        return { kind: "refused", code: "number_not_registered", detail: "Nobody in the audience has an account." };
      }
      const tools = await encodeTools(jid, signal);
      const content = await encode(message, tools);
      const reached = await reach(jid);
      const { promise: leaving, resolve: leaves } = Promise.withResolvers<void>();
      let encryption: Encryption | undefined;
      return {
        kind: "ready",
        keep: (change) => {
          const sent = { networkId: message.networkId, chat: jid, message: content };
          keepSent(change, sent, { seal, lineId, now: runtime.clock.now() });
        },
        type: () => showTyping(jid),
        leavesNext: async () => {
          if (reached && isOpen()) encryption ??= encryptAhead({ jid, reached }, content, leaving);
          await encryption?.waiting;
        },
        send: async () => {
          leaves();
          await encryption?.encrypted;
          if (isLidUser(jid) && await addressing.of(jid) !== jid) return MOVED;
          return await relay.send({ jid, me: tools.me, audience }, message, content);
        },
      };
    } catch (error) {
      if (signal.aborted) return { kind: "hold", detail: "It is no longer wanted." };
      return isOpen() ? unsent(message, error, runtime.log) : OFFLINE;
    }
  }

  async function recipientOf(to: string): Promise<string | null> {
    if (isJidGroup(to) || to === STATUS_CHAT) return to;
    const jid = /^\d+$/.test(to) ? await recipients.jidOf(to) : jidNormalizedUser(to);
    return jid === null ? null : await addressing.of(jid);
  }

  /** JIDs of the people in a post's audience who have an account, by LID; empty for a message to a chat. */
  async function audienceOf({ body }: Outgoing): Promise<string[]> {
    if (body.kind !== "status") return [];
    const jids = await recipients.jidsOf(body.audience);
    return await addressing.byLid([...jids.values()].filter((jid) => jid !== null));
  }

  async function encodeTools(chat: string, signal: AbortSignal): Promise<EncodeTools> {
    const { id, lid } = socket.authState.creds.me!;
    const group = isJidGroup(chat) ? await groups.metadata(chat) : null;
    const isByLid = group ? group.addressingMode === "lid" : isLidUser(chat);
    return {
      chat,
      me: jidNormalizedUser(isByLid && lid ? lid : id),
      timer: group ? { seconds: group.ephemeralDuration ?? 0, setAt: 0 } : await timers.of(chat),
      mentioned: async (jids) => group && isByLid ? await addressing.byLid(jids) : [...jids],
      original: (networkId) => deps.source({ lineId, networkId }),
      source: deps.source,
      upload: deps.upload,
      inspect: deps.inspect,
      runtime,
      signal,
    };
  }

  /**
   * Makes the queries of a departure in advance. If that fails, the library repeats them and its outcome counts.
   * Resolves to the devices of a person, if they were reached.
   */
  async function reach(jid: string): Promise<Reached | null> {
    try {
      if (jid === STATUS_CHAT) return null; // the key of a post is sent to its audience with the post
      if (!isJidGroup(jid)) return await reachPerson(socket, jid, devices);
      await reachGroup(socket, await groups.metadata(jid));
    } catch (error) {
      if (error instanceof NoDevice) throw error;
      runtime.log.debug({ error: errorName(error) }, "the devices of a chat could not be reached in advance");
    }
    return null;
  }

  /**
   * Encrypts what the library will ask for. If that fails, or the library asks for something else, it encrypts by
   * itself.
   */
  function encryptAhead(
    { jid: destinationJid, reached: { theirs, own } }: { jid: string; reached: Reached },
    message: proto.IMessage,
    leaving: Promise<void>,
  ): Encryption {
    const { messageContextInfo } = message;
    const toOwn = { deviceSentMessage: { destinationJid, message }, messageContextInfo };
    const { promise, resolve } = Promise.withResolvers<void>();
    let people = new Set([...theirs, ...own].map((jid) => jidDecode(jid)!.user)).size;
    // The flush of the departure includes the sessions of a message that was encrypted ahead.
    const lingering = {
      until: Promise.race([leaving, sleep(runtime.clock, LINGER_MS)]),
      waits: () => --people > 0 || resolve(),
    };
    const encrypt = () => Promise.all([ahead.encrypt(message, theirs), ahead.encrypt(toOwn, own)]);
    const encrypted = auth.lingering(lingering, encrypt).catch((error) => {
      runtime.log.debug({ error: errorName(error) }, "a message could not be encrypted in advance");
    });
    return { encrypted, waiting: Promise.race([promise, encrypted]) };
  }

  /** Shows "typing". Phones end it when the message arrives, or after some seconds. */
  function showTyping(jid: string): void {
    if (!isOpen() || jid === STATUS_CHAT) return;
    void detached(socket.sendPresenceUpdate("composing", jid), (failure) => {
      runtime.log.debug(failure, "typing could not be shown");
    });
  }

  return { prepare, relay };
}
