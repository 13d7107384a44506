/** The content of messages (spec, "Sending messages"): the table of kinds, and the functions that use it. */
import { keysOf } from "../base/typed_keys.ts";
import type { StoredFile } from "../media/store.ts";
import type { OutgoingBody } from "../whatsapp/outgoing.ts";
import { choices, type ChoicesContent } from "./kinds/choices.ts";
import { FILE_KINDS, type FileContent, status, type StatusContent } from "./kinds/file.ts";
import {
  type Attachment,
  type Kind,
  PLAIN_KINDS,
  type PlainContent,
  type Preview,
  type RemoteFile,
} from "./kinds/plain.ts";
import { template, type TemplateContent } from "./kinds/template.ts";

export type OutgoingContent = PlainContent | FileContent | StatusContent | ChoicesContent | TemplateContent;

/** The kind as which a message is shown; of a forwarded one that of the original, of a template what it makes. */
export type MessageKind = Exclude<OutgoingContent["kind"], "forward" | "template">;

/** All kinds. A new kind gets a row in a table of `kinds/`, and its encoding in `whatsapp/baileys/outgoing/`. */
const KINDS = { ...PLAIN_KINDS, ...FILE_KINDS, status, choices, template };

const ROWS = keysOf(KINDS);

export const MESSAGE_KINDS = ROWS.filter((kind) => kind !== "forward" && kind !== "template");

function kindOf({ kind }: OutgoingContent): Kind<OutgoingContent> {
  return KINDS[kind];
}

export function typeOf(content: OutgoingContent): MessageKind {
  return content.kind === "forward" || content.kind === "template" ? content.of : content.kind;
}

/** Returns whether people answer the content by votes, which are kept with it. */
export function isAnswered(content: OutgoingContent): boolean {
  return ["poll", "choices"].includes(typeOf(content));
}

/** Returns what the history shows of the content; of a template once it is filled in. */
export function previewOf(content: OutgoingContent): Preview {
  return kindOf(content).preview(content);
}

/** Returns what the history shows of the content besides; null for kinds that are shown whole by their preview. */
export function detailsOf(content: OutgoingContent): Record<string, unknown> | null {
  return kindOf(content).details?.(content) ?? null;
}

/** Returns the UTF-16 code units of all texts in the content. */
export function charactersIn(content: OutgoingContent): number {
  return kindOf(content).characters(content);
}

/**
 * Returns what is handed to the connection. `pathOf` returns the path of a stored file. Throws if the file was not
 * fetched.
 */
export function bodyOf(content: OutgoingContent, pathOf: (fileId: string) => string): OutgoingBody {
  return kindOf(content).body(content, pathOf);
}

/** Returns the content's attachment; null for a kind without a file. */
export function attachmentOf(content: OutgoingContent): Attachment | null {
  return kindOf(content).attachment?.(content) ?? null;
}

/** Returns why a file that begins with these `HEAD_BYTES` cannot be sent as the content; null if it can. */
export function refusalOf(content: OutgoingContent, head: Uint8Array): string | null {
  return kindOf(content).refusal?.(head, content) ?? null;
}

/** Returns the content with its fetched file; a kind without a file stays as it was. */
export function withAttachment(content: OutgoingContent, fetched: Attachment<StoredFile>): OutgoingContent {
  return kindOf(content).withAttachment?.(content, fetched) ?? content;
}

/** Returns the content's file in the media store; null if it has none, or it is not fetched yet. */
export function storedFile(content: OutgoingContent): StoredFile | null {
  const file = attachmentOf(content)?.file;
  return file && "fileId" in file ? file : null;
}

/** As `storedFile`, but null also for a file that is not the message's own. */
export function ownFile(content: OutgoingContent): StoredFile | null {
  const file = storedFile(content);
  return file?.shared ? null : file;
}

/** Returns the content's file that is still to be fetched; null if there is none. */
export function remoteFile(content: OutgoingContent): RemoteFile | null {
  const file = attachmentOf(content)?.file;
  return file && "url" in file ? file : null;
}
