/** A message that is sent on: the network's own copy of it goes, so that a file need not be uploaded again. */
import type { ForwardableKind } from "../../whatsapp/outgoing.ts";
import type { Kind, Preview } from "./kind.ts";

export interface ForwardContent {
  kind: "forward";
  /** What it shows itself as. */
  of: ForwardableKind;
  /** The line that sent or received it, and its id there. */
  source: { lineId: string; networkId: string };
  preview: Preview;
}

export const forward: Kind<ForwardContent> = {
  preview: ({ preview }) => preview,
  characters: ({ preview: { text, caption, filename } }) => [text, caption, filename].join("").length,
  body: ({ source }) => ({ kind: "forward", source }),
};
