/** A status post: a text or file that an audience sees for a day, outside any chat. */
import type { PostedBody } from "../../whatsapp/outgoing.ts";
import { file, type FileContent } from "./file.ts";
import type { Kind } from "./kind.ts";
import { text, type TextContent } from "./plain.ts";

export interface StatusContent {
  kind: "status";
  of: TextContent | FileContent;
  /** Digits. */
  audience: string[];
}

function kindOf({ of }: StatusContent): Kind<StatusContent["of"]> {
  return of.kind === "text" ? text : file;
}

export const status: Kind<StatusContent> = {
  preview: (content) => kindOf(content).preview(content.of),
  characters: (content) => kindOf(content).characters(content.of) + content.audience.join("").length,
  body: (content, pathOf) => ({
    kind: "status",
    of: kindOf(content).body(content.of, pathOf) as PostedBody,
    audience: content.audience,
  }),
  attachment: ({ of }) => of.kind === "text" ? null : of,
  refusal: (_, { of }) => of.kind === "document" ? "must be an image, a video or a sound to be posted" : null,
  withAttachment(content, fetched) {
    const of = kindOf(content).withAttachment?.(content.of, fetched) ?? content.of;
    return { ...content, of };
  },
};
