/** What can be sent (spec, "Sending messages"): the table of kinds, and what the rest of the house asks it. */
import { keysOf } from "../base/typed_keys.ts";
import type { StoredFile } from "../media/store.ts";
import type { OutgoingBody } from "../whatsapp/outgoing.ts";
import { FILE_KINDS, type FileContent } from "./kinds/file.ts";
import type { Attachment, Kind, Preview, RemoteFile } from "./kinds/kind.ts";
import { PLAIN_KINDS, type PlainContent } from "./kinds/plain.ts";
import { status, type StatusContent } from "./kinds/status.ts";

export type OutgoingContent = PlainContent | FileContent | StatusContent;

/** As what a message shows itself: one that is sent on as what was sent on. */
export type MessageKind = Exclude<OutgoingContent["kind"], "forward">;

/** A new kind has its row in a table of `kinds/`, and its encoding in `whatsapp/baileys/outgoing/`. */
const KINDS = { ...PLAIN_KINDS, ...FILE_KINDS, status };

const ROWS = keysOf(KINDS);

export const MESSAGE_KINDS = ROWS.filter((kind) => kind !== "forward");

function kindOf({ kind }: OutgoingContent): Kind<OutgoingContent> {
  return KINDS[kind];
}

export function typeOf(content: OutgoingContent): MessageKind {
  return content.kind === "forward" ? content.of : content.kind;
}

/** What the history shows of it. */
export function previewOf(content: OutgoingContent): Preview {
  return kindOf(content).preview(content);
}

/** UTF-16 units of all texts in it. */
export function charactersIn(content: OutgoingContent): number {
  return kindOf(content).characters(content);
}

/** As the connection takes it; `pathOf` says where a stored file lies. Throws when its file was not fetched yet. */
export function bodyOf(content: OutgoingContent, pathOf: (fileId: string) => string): OutgoingBody {
  return kindOf(content).body(content, pathOf);
}

/** Null for a kind without a file. */
export function attachmentOf(content: OutgoingContent): Attachment | null {
  return kindOf(content).attachment?.(content) ?? null;
}

/** Why a file that begins like this cannot be sent as the content; null when it can. */
export function refusalOf(content: OutgoingContent, head: Uint8Array): string | null {
  return kindOf(content).refusal?.(head, content) ?? null;
}

/** Of a file, for `refusalOf`. */
export const HEAD_BYTES = 512;

/** The content with the file that was fetched for it; of a kind that has none, as it was. */
export function withAttachment(content: OutgoingContent, fetched: Attachment<StoredFile>): OutgoingContent {
  return kindOf(content).withAttachment?.(content, fetched) ?? content;
}

/** The file of the content that lies in the media store; null when there is none, or not yet. */
export function storedFile(content: OutgoingContent): StoredFile | null {
  const file = attachmentOf(content)?.file;
  return file && "fileId" in file ? file : null;
}

/** The content's file that has yet to be fetched; null when there is none. */
export function remoteFile(content: OutgoingContent): RemoteFile | null {
  const file = attachmentOf(content)?.file;
  return file && "url" in file ? file : null;
}
