/**
 * Sends a message and determines the outcome (promise 3: `sent` means that the server acknowledged it). Once the
 * library was asked to relay it, only the network's ack counts. Before that, failure is harmless.
 */
import {
  type BinaryNode,
  type GroupMetadata,
  isJidGroup,
  isLidUser,
  isPnUser,
  jidNormalizedUser,
  type proto,
  type WASocket,
} from "@whiskeysockets/baileys";
import { LRUCache } from "lru-cache";
import { atMost } from "../../../base/at_most.ts";
import { errorCode, errorName } from "../../../base/retry.ts";
import { within } from "../../../base/within.ts";
import type { Log, Runtime } from "../../../runtime.ts";
import { StoreError } from "../../../store/kv.ts";
import { NetworkRefusal, NetworkTimeout } from "../../connection.ts";
import type { Outgoing, SendOutcome, Unsent } from "../../outgoing.ts";
import { queryError, statusOf, TIMED_OUT } from "../stanza.ts";
import type { Addressing } from "./addressing.ts";
import { type Devices, KEPT_MS, NoDevice, rotateSenderKey } from "./devices.ts";
import { OriginalGone } from "./encode.ts";
import type { GroupCache } from "./group_cache.ts";
import { asLibraryReads, marksOf, reportingToken } from "./marks.ts";
import { UploadFailed } from "./media_upload.ts";
import type { Moves } from "./moves.ts";
import { RESTRICTED, type Restrictions } from "./restrictions.ts";

/** The server acknowledges within a second. After this time, the ack is considered lost. */
const ACK_MS = 20_000;
const DOUBTED_KEPT = 1_000;
/** The server has trouble or asks for fewer messages: the only refusals that a retry can change. */
const PASSING = new Set([408, 421, 429, 500, 502, 503, 504]);
export const OFFLINE: Unsent = { kind: "hold", detail: "The line is not connected." };
const MAY_START_NO_CHATS = "The network does not let this number start new chats for now (error 463).";

export interface RelayDeps {
  socket: WASocket;
  groups: GroupCache;
  devices: Pick<Devices, "forget" | "hashOf">;
  restrictions: Pick<Restrictions, "isRestricted" | "tokenFor">;
  addressing: Pick<Addressing, "acknowledged" | "refused" | "numberOf">;
  moves: Moves;
  /** Called when the network has acknowledged a message. */
  acknowledged: () => void;
  /** Called with the network's code when it has refused a message. */
  refused: (code: number) => void;
  runtime: Pick<Runtime, "clock" | "log">;
  isOpen: () => boolean;
}

/** Where a message goes: the chat, the line's own JID as the chat addresses it, and the audience of a status post. */
interface Route {
  jid: string;
  me: string;
  audience: readonly string[];
}

/** What the library writes around a message. */
type Stanza = Omit<Parameters<WASocket["relayMessage"]>[2], "messageId">;

/**
 * `isPartial`: the network knows of devices that the message was not encrypted for. `hasMoved`: the recipient's account
 * has another LID by now.
 */
type Ack = { error: number | null; isPartial: boolean; hasMoved: boolean } | "lost";

export class Relay {
  readonly #deps: RelayDeps;
  /** Messages that wait for their ack, by network id. */
  readonly #waiting = new Map<string, (ack: Ack) => void>();

  /** Groups whose devices the network has said to be others than the line knows. */
  readonly #doubted: LRUCache<string, true>;

  constructor(deps: RelayDeps) {
    this.#deps = deps;
    this.#doubted = new LRUCache(atMost(DOUBTED_KEPT, { forMs: KEPT_MS, clock: deps.runtime.clock }));
    keepNoRecent(deps.socket.messageRetryManager);
    deps.socket.ws.on("CB:ack,class:message", ({ attrs }: BinaryNode) => {
      this.#waiting.get(attrs.id ?? "")?.({
        error: attrs.error ? Number(attrs.error) : null,
        isPartial: attrs.phash !== undefined,
        hasMoved: attrs.refresh_lid === "true",
      });
    });
  }

  /** Sends the message once. Never throws. */
  async send(route: Route, message: Outgoing, content: proto.IMessage): Promise<SendOutcome> {
    const { socket, groups, runtime, isOpen } = this.#deps;
    if (!isOpen()) return OFFLINE;
    let stanza: Stanza;
    try {
      stanza = await this.#stanzaOf(route, message.networkId, content);
      if (isJidGroup(route.jid)) await rotateSenderKey(socket, await groups.metadata(route.jid));
      if (route.audience.length > 0) await rotateSenderKey(socket, audienceOf(route));
    } catch (error) {
      return isOpen() ? unsent(message, error, runtime.log) : OFFLINE;
    }
    return isOpen() ? await this.#relay(route.jid, { messageId: message.networkId, ...stanza }, content) : OFFLINE;
  }

  /** The connection has ended: the outcome of messages that wait for an ack is `unknown`. */
  abandon(): void {
    for (const settle of this.#waiting.values()) settle("lost");
  }

  /** Throws StoreError. */
  async #stanzaOf({ jid, me, audience }: Route, id: string, content: proto.IMessage): Promise<Stanza> {
    const { socket, groups, devices, restrictions, addressing } = this.#deps;
    const { attrs, nodes } = marksOf(content);
    const number = isLidUser(jid) ? await addressing.numberOf(jid) : jid;
    const reporting = await reportingToken(content, { id, me, to: jid });
    const { id: own, lid = own } = socket.authState.creds.me!;
    const phash = isJidGroup(jid) ? devices.hashOf(await groups.metadata(jid)) : null;
    return {
      // Without the number, phones show a LID as somebody unknown.
      additionalAttributes: {
        ...attrs,
        ...(isPnUser(number) && number !== jid ? { peer_recipient_pn: number } : {}),
        ...(phash === null ? {} : { phash }),
      },
      additionalNodes: [...await restrictions.tokenFor(jid), ...reporting, ...nodes],
      // The account's other devices show its posts, and let the owner delete them.
      ...(audience.length > 0 ? { statusJidList: [...audience, jidNormalizedUser(lid)] } : {}),
    };
  }

  async #relay(
    jid: string,
    stanza: Stanza & { messageId: string },
    content: proto.IMessage,
  ): Promise<SendOutcome> {
    const { socket, runtime, isOpen } = this.#deps;
    const { messageId } = stanza;
    const { promise, resolve } = Promise.withResolvers<Ack>();
    this.#waiting.set(messageId, resolve);
    try {
      await socket.relayMessage(jid, asLibraryReads(content), stanza);
    } catch (error) {
      if (surelyUnsent(error)) {
        this.#waiting.delete(messageId);
        return isOpen() ? { kind: "retry", detail: describe(error) } : OFFLINE;
      }
    }
    const ack = await within(runtime.clock, ACK_MS, promise);
    this.#waiting.delete(messageId);
    return await this.#outcomeOf(ack, jid);
  }

  /** A group's members and their devices are asked for again at most as often as their lists end anyway. */
  async #forgetDevices(jid: string): Promise<void> {
    const { groups, devices } = this.#deps;
    if (!isJidGroup(jid)) return await devices.forget(jid);
    if (this.#doubted.has(jid)) return;
    this.#doubted.set(jid, true);
    const group = await groups.cached(jid);
    groups.forget(jid);
    await Promise.all(group?.participants.map(({ id }) => devices.forget(id)) ?? []);
  }

  async #outcomeOf(ack: Ack | "late", jid: string): Promise<SendOutcome> {
    const { groups, restrictions, addressing, moves, acknowledged, refused } = this.#deps;
    if (ack === "late") return { kind: "unknown", detail: "The network did not acknowledge the message in time." };
    if (ack === "lost") return { kind: "unknown", detail: "The connection was lost before the acknowledgement." };
    const { error, isPartial, hasMoved } = ack;
    if (isPartial) await this.#forgetDevices(jid);
    if (error !== null) groups.forget(jid);
    // Awaited: the line's next message is for the new address.
    if (hasMoved) await moves.look(jid);
    if (error === null) {
      acknowledged();
      addressing.acknowledged(jid);
      return { kind: "sent", chat: jid };
    }
    refused(error);
    if (error === RESTRICTED && await restrictions.isRestricted()) {
      return { kind: "restricted", detail: MAY_START_NO_CHATS };
    }
    if (await addressing.refused(jid, error)) {
      return { kind: "retry", detail: `The network wants the recipient addressed otherwise (error ${error}).` };
    }
    if (PASSING.has(error)) return { kind: "retry", detail: `The network answered with error ${error}.` };
    return {
      kind: "refused",
      code: error === RESTRICTED ? "account_restricted" : "refused",
      detail: error === RESTRICTED ? MAY_START_NO_CHATS : `The network refused the message (error ${error}).`,
    };
  }
}

/** The audience of a post, as a group whose members hold the key of the last one. */
function audienceOf({ jid, audience }: Route): GroupMetadata {
  return { id: jid, participants: audience.map((id) => ({ id })), owner: undefined, subject: "" };
}

/** Returns the outcome of a message that certainly did not leave, on an open connection. */
export function unsent({ networkId, to }: Outgoing, error: unknown, log: Log): Unsent {
  const code = queryError(error);
  if (isJidGroup(to) && code !== null && [401, 403, 404].includes(code)) {
    return { kind: "refused", code: "group_not_accessible", detail: "The line is not in this group." };
  }
  if (error instanceof OriginalGone) {
    return { kind: "refused", code: "original_gone", detail: "The message to forward is not kept any more." };
  }
  log.warn({ networkId, error: errorName(error) }, "a message could not be prepared");
  return { kind: "retry", detail: describe(error) };
}

/**
 * Whether the library failed before it wrote the frame. The outcome is uncertain in two cases only: the library's key
 * transaction commits after the frame, and a write to the socket may fail or hang half-way.
 */
function surelyUnsent(error: unknown): boolean {
  if (error instanceof StoreError) return false;
  const code = errorCode(error);
  const socketFailed = typeof code === "string" && /^E[A-Z]/.test(code);
  return !socketFailed && statusOf(error) !== TIMED_OUT;
}

/** Describes the error in one sentence, without the library's own words, which may contain addresses or content. */
function describe(error: unknown): string {
  if (error instanceof NetworkRefusal || error instanceof NetworkTimeout) return error.message;
  if (error instanceof StoreError) return "The storage could not be used.";
  const code = queryError(error);
  if (code !== null) return `The network answered a query with error ${code}.`;
  if (error instanceof NoDevice) return "The recipient has no device with keys now.";
  if (error instanceof UploadFailed) return "The file could not be uploaded.";
  return "The message could not be prepared.";
}

/** The part of the library's manager that is repaired. */
type RecentMessages = Pick<NonNullable<WASocket["messageRetryManager"]>, "addRecentMessage">;

/**
 * Keeps the library from remembering messages. It holds the last 512 that a line sent or received for five minutes, to
 * answer retry receipts, which it does not get here (`resends.ts`).
 */
export function keepNoRecent(recent: RecentMessages | null): void {
  if (recent) recent.addRecentMessage = () => {};
}
