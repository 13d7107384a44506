/** A reaction to a message of the same chat. */
import { z } from "zod";
import type { MessageKey } from "../../whatsapp/outgoing.ts";
import type { Kind } from "./kind.ts";

export interface ReactionContent {
  kind: "reaction";
  /** "" takes an earlier one back. */
  emoji: string;
  target: MessageKey;
}

/** No flags, so that the reference can show it. */
const EMOJI = /\p{Extended_Pictographic}|\p{Regional_Indicator}{2}|[0-9#*]\u{fe0f}?\u{20e3}/u;

/** What people and apps count as one emoji is a grapheme. The segmenter is made when it is needed: it loads a locale. */
export const Emoji = z.string().max(64).refine(
  (text) => text === "" || (EMOJI.test(text) && [...new Intl.Segmenter().segment(text)].length === 1),
  "is not one emoji",
);

export const reaction: Kind<ReactionContent> = {
  preview: ({ emoji }) => ({ text: emoji, caption: null, filename: null }),
  characters: ({ emoji, target }) => emoji.length + target.networkId.length,
  body: (content) => content,
};
