/**
 * Calls, changes of groups and of people, and presence. The network is told that a call or change was received only once the receiver has
 * committed it (promise 4). The library would acknowledge it at once, so these stanzas are withheld from it.
 */
import {
  areJidsSameUser,
  type BinaryNode,
  getAllBinaryNodeChildren,
  getBinaryNodeChild,
  getBinaryNodeChildren,
  isJidGroup,
  isLidUser,
  type WASocket,
} from "@whiskeysockets/baileys";
import { detached } from "../../../base/retry.ts";
import { KeyedQueue } from "../../../base/keyed_queue.ts";
import type { Runtime } from "../../../runtime.ts";
import type { GroupNow, MembersChange, Notice, PresenceState } from "../../incoming.ts";
import { memberOf } from "../chats/groups.ts";
import { numberIn, plainJid } from "../jids.ts";
import { LONGEST_ID, withhold } from "../stanza.ts";
import { identitiesIn } from "./identities.ts";
import type { PhoneOf } from "./numbers.ts";

const MEMBER_CHANGES: readonly MembersChange[] = ["add", "remove", "promote", "demote", "leave"];
const SETTINGS = new Set([
  "create",
  "subject",
  "description",
  "announcement",
  "not_announcement",
  "locked",
  "unlocked",
  "ephemeral",
  "not_ephemeral",
  "membership_approval_mode",
]);

interface NoticesOptions {
  socket: Pick<WASocket, "ws" | "sendMessageAck">;
  /** The group in its current state. Throws if the network does not return it. */
  groupNow: (id: string) => Promise<GroupNow>;
  phoneOf: PhoneOf;
  receive: (notice: Notice) => Promise<void>;
  /** Called when a group changes, before anything else is done about it. */
  changed: (group: string) => void;
  /** Called when a person has another LID than before. Throws StoreError. */
  moved: (old: string, lid: string) => Promise<void>;
  runtime: Pick<Runtime, "log">;
}

export function takeNotices({ socket, groupNow, phoneOf, receive, changed, moved, runtime }: NoticesOptions): void {
  const { ws } = socket;
  const chats = new KeyedQueue();

  /**
   * Reports what a stanza says, then acknowledges it. A stanza that is not committed is delivered again at the next
   * login.
   */
  function take(stanza: BinaryNode, noticesOf: (stanza: BinaryNode) => Promise<Notice[]>): void {
    const taken = chats.add(stanza.attrs.from ?? "", async () => {
      for (const notice of await noticesOf(stanza)) await receive(notice);
      await socket.sendMessageAck(stanza);
    });
    void detached(taken, (failure) => runtime.log.warn({ tag: stanza.tag, ...failure }, "a notice was not handled"));
  }

  async function numberOf(jid: string, chat: string, phone?: string): Promise<string | null> {
    return numberIn(jid, phone) ?? (isLidUser(jid) ? numberIn(await phoneOf(plainJid(jid), chat)) : null);
  }

  async function callOf(stanza: BinaryNode): Promise<Notice[]> {
    const [offer] = getAllBinaryNodeChildren(stanza);
    const { from = "" } = stanza.attrs;
    const { "call-id": callId, "call-creator": creator = from, caller_pn: phone, "group-jid": group } = offer!.attrs;
    const chat = plainJid(group ?? from);
    const number = await numberOf(plainJid(creator), chat, phone);
    return [{ kind: "call", id: `call ${callId}`, chat, callId: callId!, number, video: hasVideo(offer!) }];
  }

  async function groupOf(id: string): Promise<GroupNow> {
    return await groupNow(id).catch(() => ({ id }));
  }

  async function changesOf(stanza: BinaryNode): Promise<Notice[]> {
    const { attrs } = stanza;
    const chat = attrs.from!;
    const notices: Notice[] = [];
    for (const [index, change] of getAllBinaryNodeChildren(stanza).entries()) {
      const id = `group ${attrs.id} ${index}`;
      if (SETTINGS.has(change.tag)) notices.push({ kind: "group", id, chat, group: await groupOf(chat) });
      const made = MEMBER_CHANGES.find((tag) => tag === change.tag);
      if (!made) continue;
      const nodes = getBinaryNodeChildren(change, "participant");
      const participants = await Promise.all(nodes.map(async (node) => {
        const member = memberOf(node);
        return { ...member, number: member.number ?? await numberOf(member.id, chat) };
      }));
      const action = actionOf(made, participants, attrs);
      notices.push({ kind: "members", id, chat, group: await groupOf(chat), action, participants });
    }
    return notices;
  }

  async function showPresence(stanza: BinaryNode): Promise<void> {
    const { from = "", participant = from } = stanza.attrs;
    const state = stateOf(stanza);
    const chat = plainJid(from);
    const number = await numberOf(plainJid(participant), chat);
    if (state) await receive({ kind: "presence", id: null, chat, number, state });
  }

  withhold(ws, "CB:call", (stanza) => {
    const [offer] = getAllBinaryNodeChildren(stanza);
    const { "call-id": callId = "" } = offer?.attrs ?? {};
    const isNamed = callId !== "" && callId.length <= LONGEST_ID;
    const isOffer = (offer?.tag === "offer" || offer?.tag === "offer_notice") && isNamed;
    if (isOffer) take(stanza, callOf);
    return isOffer;
  });
  withhold(ws, "CB:notification", (stanza) => {
    const isOfGroup = stanza.attrs.type === "w:gp2" && isJidGroup(stanza.attrs.from) === true;
    if (isOfGroup) {
      changed(stanza.attrs.from!);
      take(stanza, changesOf);
    }
    const identities = identitiesIn(stanza);
    if (identities.length > 0) {
      take(stanza, async () => {
        for (const { chat, ...told } of identities) if ("lid" in told) await moved(chat, told.lid!);
        return identities;
      });
    }
    return isOfGroup || identities.length > 0;
  });
  for (const tag of ["presence", "chatstate"]) {
    // Presence is neither acknowledged nor delivered again.
    ws.on(`CB:${tag}`, (stanza: BinaryNode) => {
      void detached(showPresence(stanza), (failure) => runtime.log.debug(failure, "a presence was not reported"));
    });
  }
}

function hasVideo(offer: BinaryNode): boolean {
  return getBinaryNodeChild(offer, "video") !== undefined || offer.attrs.media === "video";
}

/** A member who removes only themselves has left. */
function actionOf(
  tag: MembersChange,
  participants: readonly { id: string; number: string | null }[],
  { participant, participant_pn }: Record<string, string>,
): MembersChange {
  const [only] = participants;
  const isActor = (jid: string | undefined) => jid !== undefined && areJidsSameUser(jid, only!.id);
  const left = tag === "remove" && participants.length === 1 && (isActor(participant) || isActor(participant_pn));
  return left ? "leave" : tag;
}

function stateOf(stanza: BinaryNode): PresenceState | null {
  if (stanza.tag === "presence") return stanza.attrs.type === "unavailable" ? "offline" : "online";
  const [state] = getAllBinaryNodeChildren(stanza);
  if (state?.tag === "paused") return "paused";
  if (state?.tag !== "composing") return null;
  return state.attrs.media === "audio" ? "recording" : "typing";
}
