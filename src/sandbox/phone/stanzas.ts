/** Builds and reads the small stanzas of a phone: acknowledgements, receipts, typing and calls. */
import { jidNormalizedUser } from "@whiskeysockets/baileys";
import { type BinaryNode, element, elements, isGroup, isLid, seconds } from "../world/stanza.ts";
import type { Device } from "../world/uplink.ts";
import { bundleNodes, type KeyBundle } from "../world/key_store.ts";
import type { Clock } from "../../runtime.ts";
import { isOwn, type PhoneContext } from "./context.ts";

/** Returns the acknowledgement of a stanza, after which the network does not deliver it again. */
export function ack(stanza: BinaryNode): BinaryNode {
  const { id, from, participant, type, recipient } = stanza.attrs;
  return element("ack", { id, to: from, class: stanza.tag, participant, type, recipient });
}

/**
 * Returns the "delivered" receipt, which also acknowledges the message; of type `sender` for a copy of the owner's own
 * message.
 */
export function deliveryReceipt(message: BinaryNode, { self, own }: { self: Device; own: boolean }): BinaryNode {
  const { id, from, participant, recipient, category } = message.attrs;
  const type = category === "peer" ? "peer_msg" : own ? "sender" : undefined;
  return element("receipt", { id, to: from, from: ownForm(self, message), participant, recipient, type });
}

export function readReceipt(message: BinaryNode, { self, clock }: { self: Device; clock: Clock }): BinaryNode {
  const { id, from = "", participant } = message.attrs;
  const to = participant ? from : jidNormalizedUser(from);
  const t = seconds(clock.now());
  return element("receipt", { id, to, from: ownForm(self, message), participant, type: "read", t });
}

/** Returns a request to the sender to encrypt a message again, for a session made from the enclosed keys. */
export function retryReceipt(
  message: BinaryNode,
  { self, bundle, count }: { self: Device; bundle: KeyBundle; count: number },
): BinaryNode {
  const { id, from, participant, recipient, t } = message.attrs;
  const [registration, ...keys] = bundleNodes(bundle);
  return element("receipt", { id, to: from, from: ownForm(self, message), participant, recipient, type: "retry" }, [
    element("retry", { count: String(count), id, t, v: "1" }),
    registration!,
    element("keys", {}, keys),
  ]);
}

/** Returns the sender of a stanza as the receiver's owner sees it: by number, unless the sender hides it. */
export function shownAuthor({ attrs }: BinaryNode): string {
  return jidNormalizedUser(attrs.participant_pn ?? attrs.sender_pn) ||
    jidNormalizedUser(attrs.participant ?? attrs.from);
}

/** Returns the phone's address in the form in which the peer wrote: by LID or by number. */
function ownForm(self: Device, { attrs }: BinaryNode): string {
  return isLid(attrs.participant ?? attrs.from) ? self.lid : self.jid;
}

export function chatState(
  to: string,
  { from, state }: { from: string; state: "typing" | "recording" | "paused" },
): BinaryNode {
  const composing = element("composing", { media: state === "recording" ? "audio" : undefined });
  return element("chatstate", { to, from }, [state === "paused" ? element("paused") : composing]);
}

/** Returns the offer that makes a call ring. */
export function callOffer(
  to: string,
  { from, callId, video, clock }: { from: string; callId: string; video: boolean; clock: Clock },
): BinaryNode {
  return element("call", { to, from, id: callId, t: seconds(clock.now()) }, [
    element("offer", { "call-id": callId, "call-creator": from }, [
      element("audio", { enc: "opus", rate: "16000" }),
      ...(video ? [element("video", { enc: "h.264" })] : []),
    ]),
  ]);
}

/** What a phone sees somebody do in a chat, other than write. */
export interface ChatState {
  /** As in `InboxItem`. */
  from: string;
  chat: string;
  state: "typing" | "recording" | "paused";
  /** Unix ms. */
  timestamp: number;
}

/** Reads a `<chatstate>`; returns null for the owner's own, or for a state that no app shows. */
export function readChatState(stanza: BinaryNode, phone: PhoneContext): ChatState | null {
  const { from, participant } = stanza.attrs;
  const author = jidNormalizedUser(participant ?? from);
  if (!author || isOwn(phone, author)) return null;
  const known = shownAuthor(stanza);
  const state = stateOf(elements(stanza)[0]);
  if (!state) return null;
  return { from: known, chat: isGroup(from) ? from! : known, state, timestamp: phone.runtime.clock.now() };
}

function stateOf(state: BinaryNode | undefined): ChatState["state"] | null {
  if (state?.tag === "composing") return state.attrs.media === "audio" ? "recording" : "typing";
  return state?.tag === "paused" ? "paused" : null;
}
