/** Signals between phones without a message: typing, presence and calls. */
import { jidNormalizedUser } from "@whiskeysockets/baileys";
import type { Clock } from "../../runtime.ts";
import { isGroup } from "../world/address.ts";
import type { Device } from "../world/device.ts";
import type { ChatState } from "../world/inbox.ts";
import { type BinaryNode, element, elements, seconds } from "../world/stanza.ts";
import { isOwn, type PhoneContext } from "./context.ts";

export function chatState(
  to: string,
  { self, state }: { self: Device; state: "typing" | "recording" | "paused" },
): BinaryNode {
  const composing = element("composing", { media: state === "recording" ? "audio" : undefined });
  return element("chatstate", { to, from: self.jid }, [state === "paused" ? element("paused") : composing]);
}

/** A call that rings. */
export function callOffer(
  to: string,
  { self, callId, video, clock }: { self: Device; callId: string; video: boolean; clock: Clock },
): BinaryNode {
  return element("call", { to, from: self.jid, id: callId, t: seconds(clock) }, [
    element("offer", { "call-id": callId, "call-creator": self.jid }, [
      element("audio", { enc: "opus", rate: "16000" }),
      ...(video ? [element("video", { enc: "h.264" })] : []),
    ]),
  ]);
}

/** What a `<chatstate>` or `<presence>` says about somebody else; null for other stanzas. */
export function readChatState(stanza: BinaryNode, phone: PhoneContext): ChatState | null {
  const { from, participant, type } = stanza.attrs;
  const author = jidNormalizedUser(participant ?? from);
  if (!author || isOwn(phone, author)) return null;
  const known = phone.uplink.pnOf(author) ?? author;
  const state = stanza.tag === "presence" ? presenceOf(type) : stateOf(elements(stanza)[0]);
  if (!state) return null;
  return { from: known, chat: isGroup(from) ? from! : known, state, timestamp: phone.runtime.clock.now() };
}

function presenceOf(type: string | undefined): ChatState["state"] | null {
  return type === undefined || type === "available" ? "available" : type === "unavailable" ? type : null;
}

function stateOf(state: BinaryNode | undefined): ChatState["state"] | null {
  if (state?.tag === "composing") return state.attrs.media === "audio" ? "recording" : "typing";
  return state?.tag === "paused" ? "paused" : null;
}
