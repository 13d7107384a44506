/** A reaction to a message of the same chat. */
import type { MessageKey } from "../../whatsapp/outgoing.ts";
import type { Kind } from "./kind.ts";

export interface ReactionContent {
  kind: "reaction";
  /** "" takes an earlier one back. */
  emoji: string;
  target: MessageKey;
}

export const reaction: Kind<ReactionContent> = {
  preview: ({ emoji }) => ({ text: emoji, caption: null, filename: null }),
  characters: ({ emoji, target }) => emoji.length + target.networkId.length,
  body: (content) => content,
};
