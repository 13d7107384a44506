/** The small stanzas of a phone: acknowledgements, receipts, typing and calls. */
import { jidNormalizedUser } from "@whiskeysockets/baileys";
import { isGroup, isLid } from "../world/address.ts";
import type { Device, KeyBundle } from "../world/device.ts";
import type { Clock } from "../../runtime.ts";
import type { ChatState } from "../world/inbox.ts";
import { bundleNodes } from "../world/key_store.ts";
import { type BinaryNode, element, elements, seconds } from "../world/stanza.ts";
import { isOwn, type PhoneContext } from "./context.ts";

/** Tells the network that a stanza needs no second delivery. */
export function ack(stanza: BinaryNode): BinaryNode {
  const { id, from, participant, type, recipient } = stanza.attrs;
  return element("ack", { id, to: from, class: stanza.tag, participant, type, recipient });
}

/** "Delivered", which also acknowledges the message; for a copy of the owner's own message the type `sender`. */
export function deliveryReceipt(message: BinaryNode, { self, own }: { self: Device; own: boolean }): BinaryNode {
  const { id, from, participant, recipient, category } = message.attrs;
  const type = category === "peer" ? "peer_msg" : own ? "sender" : undefined;
  return element("receipt", { id, to: from, from: ownForm(self, message), participant, recipient, type });
}

export function readReceipt(message: BinaryNode, { self, clock }: { self: Device; clock: Clock }): BinaryNode {
  const { id, from = "", participant } = message.attrs;
  const to = participant ? from : jidNormalizedUser(from);
  return element("receipt", { id, to, from: ownForm(self, message), participant, type: "read", t: seconds(clock) });
}

/** Asks the sender to encrypt a message anew, for a session made from the enclosed keys. */
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

/** The sender of a stanza as its owner lets others see it: by number, unless it hides that. */
export function shownAuthor({ attrs }: BinaryNode): string {
  return jidNormalizedUser(attrs.participant_pn ?? attrs.sender_pn) ||
    jidNormalizedUser(attrs.participant ?? attrs.from);
}

/** Own address in the form in which the other side wrote: by lid, or by number. */
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

/** A call that rings. */
export function callOffer(
  to: string,
  { from, callId, video, clock }: { from: string; callId: string; video: boolean; clock: Clock },
): BinaryNode {
  return element("call", { to, from, id: callId, t: seconds(clock) }, [
    element("offer", { "call-id": callId, "call-creator": from }, [
      element("audio", { enc: "opus", rate: "16000" }),
      ...(video ? [element("video", { enc: "h.264" })] : []),
    ]),
  ]);
}

/** What a `<chatstate>` says about somebody else; null for one of the owner, or of a state that no app shows. */
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
