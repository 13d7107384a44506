/** The official API's messages as sends of ours: a type is a row of the table. */
import type { Account } from "../account/account.ts";
import { percentDecoded } from "../base/addresses.ts";
import { safeFilename } from "../media/filename.ts";
import type { MediaStore } from "../media/store.ts";
import type { Uploads } from "../media/uploads.ts";
import { HEAD_BYTES } from "../base/file_types.ts";
import { type OutgoingContent, refusalOf } from "../message/content.ts";
import { askedContent } from "../message/kinds/file.ts";
import type { SendManner } from "../message/message.ts";
import type { Templates } from "../message/templates/templates.ts";
import type { FileKind } from "../whatsapp/outgoing.ts";
import { contactsOf } from "./contacts.ts";
import { CloudError, wrongParameter } from "./errors.ts";
import { type Fields, isTrue, list, number, object, objectIn, text, textIn } from "./fields.ts";
import { fileIdOf } from "./media_id.ts";
import { templateOf } from "./template_sends.ts";
import { personOf } from "./user_id.ts";

/** A kind of `/v1/messages/send` with its fields, or a content that is made here. */
type Send =
  & ({ kind: string; fields: Fields } | { content: OutgoingContent })
  & Pick<NonNullable<SendManner["cloud"]>, "interactive">;

/** What a send may refer to. */
interface Sources {
  account: Pick<Account, "id">;
  /** The recipient. */
  to: string;
  uploads: Pick<Uploads, "find">;
  media: Pick<MediaStore, "head">;
  templates: Pick<Templates, "for">;
}

type MakeSend = (part: Fields, sources: Sources) => Send | Promise<Send>;

/** Types by name, in the order of the reference. Each gets the message's member of its name. */
const TYPES: Readonly<Record<string, MakeSend>> = {
  text: ({ body, preview_url }) => ({ kind: "text", fields: { text: body, linkPreview: isTrue(preview_url) } }),
  image: (part, sources) => file("image", part, sources),
  video: (part, sources) => file("video", part, sources),
  audio: (part, sources) => file(isTrue(part.voice) ? "voice" : "audio", part, sources),
  document: (part, sources) => file("document", part, sources),
  sticker: (part, sources) => file("sticker", part, sources),
  location: ({ latitude, longitude, name, address }) => ({
    kind: "location",
    fields: { latitude: number(latitude), longitude: number(longitude), name, address },
  }),
  contacts: ({ contacts }) => ({ content: contactsOf(contacts) }),
  reaction: ({ message_id, emoji }) => ({ kind: "reaction", fields: { messageId: message_id, emoji: emoji ?? "" } }),
  interactive,
  template: async (part, sources) => ({ content: await templateOf(part, sources) }),
};

/** Members of a message beside the one that its type names. Others would change it, and are refused. */
const COMMON = new Set([
  "messaging_product",
  "recipient_type",
  "to",
  "recipient",
  "type",
  "context",
  "biz_opaque_callback_data",
]);

const MAX_CALLBACK_DATA = 512;

/** Returns the recipient of the message, as the client wrote it and as a send takes it. Throws CloudError. */
export function recipientOf({ to, recipient }: Fields): { input: string; to: string } {
  const given = to ?? recipient;
  const input = typeof given === "number" ? String(given) : given;
  if (typeof input !== "string" || input === "") throw wrongParameter("to is required");
  return { input, to: personOf(input) ?? input };
}

/** Returns the send, and what is kept with it for its statuses and answers. Throws CloudError. */
export async function sendOf(
  message: Fields,
  sources: Sources,
): Promise<{ send: Send; replyTo: unknown; cloud: SendManner["cloud"] }> {
  if (message.messaging_product !== "whatsapp") throw wrongParameter("messaging_product must be whatsapp");
  const type = message.type ?? "text";
  const makeSend = typeof type === "string" && Object.hasOwn(TYPES, type) ? TYPES[type] : undefined;
  if (!makeSend) throw new CloudError(131051, `The type ${String(type).slice(0, 50)} is not supported.`);
  const unknown = Object.keys(message).find((name) => name !== type && !COMMON.has(name));
  if (unknown) throw wrongParameter(`${unknown.slice(0, 50)} is not supported for the type ${type}`);
  const callbackData = textIn(message, "biz_opaque_callback_data", MAX_CALLBACK_DATA);
  const send = await makeSend(type === "contacts" ? message : object(message, String(type)), sources);
  const { interactive } = send;
  const cloud = { ...(callbackData ? { callbackData } : {}), ...(interactive ? { interactive } : {}) };
  return {
    send,
    replyTo: objectIn(message, "context").message_id,
    cloud: Object.keys(cloud).length > 0 ? cloud : undefined,
  };
}

/** Kinds that show a caption. */
const CAPTIONED: readonly FileKind[] = ["image", "video", "document"];

async function file(kind: FileKind, part: Fields, { account, uploads, media }: Sources): Promise<Send> {
  const caption = textIn(part, "caption");
  if (caption && !CAPTIONED.includes(kind)) throw wrongParameter(`caption is not supported for the type ${kind}`);
  const given = safeFilename(textIn(part, "filename", 255) ?? "") ?? undefined;
  if ((part.id === undefined) === (part.link === undefined)) {
    throw wrongParameter("either id or link is required, and not both");
  }
  if (part.link !== undefined) {
    const link = text(part, "link", 2_048);
    if (!/^https?:\/\//i.test(link) || !URL.canParse(link)) throw wrongParameter("link must be an http or https URL");
    const filename = given ?? safeFilename(percentDecoded(new URL(link).pathname.split("/").at(-1) ?? "")) ?? "file";
    const remote = { url: link, ...(given ? { filename: given } : {}) };
    return { content: askedContent(kind, remote, { filename, mimetype: "", caption }) };
  }
  const unknown = () => new CloudError(131053, "There is no media with this id.");
  const fileId = fileIdOf(String(part.id));
  if (fileId === null) throw unknown();
  const { size, sha256, mimetype, filename } = await uploads.find(account.id, fileId).catch(() => {
    throw unknown();
  });
  const kept = { fileId, size, sha256, shared: true } as const;
  const content = askedContent(kind, kept, { filename: given ?? filename, mimetype, caption });
  const refusal = refusalOf(content, await media.head(fileId, HEAD_BYTES));
  if (refusal) throw new CloudError(131053, `The media ${refusal}.`);
  return { content };
}

function interactive(part: Fields): Send {
  const header = objectIn(part, "header");
  if (header.type !== undefined && header.type !== "text") throw wrongParameter("interactive.header must be a text");
  const body = objectIn(part, "body").text;
  const headed = header.text === undefined ? body : `*${header.text}*\n\n${body}`;
  const footer = objectIn(part, "footer").text;
  const action = object(part, "action");
  switch (part.type) {
    case "button": {
      const options = list(action, "buttons").map((button) => {
        const { id, title } = object(button, "reply");
        return { id, label: title };
      });
      return { kind: "choices", fields: { text: headed, footer, options }, interactive: "button" };
    }
    case "list": {
      const rows = list(action, "sections").flatMap((section) => list(section, "rows"));
      // One client writes "" for none.
      const options = rows.map(({ id, title, description }) => ({
        id,
        label: title,
        description: description || undefined,
      }));
      return { kind: "choices", fields: { text: headed, footer, options }, interactive: "list" };
    }
    case "cta_url": {
      const { display_text, url } = object(action, "parameters");
      const lines = [headed, `${display_text}: ${url}`, footer].filter((line) => line !== undefined);
      return { kind: "text", fields: { text: lines.join("\n\n") } };
    }
    default:
      throw new CloudError(131051, "interactive.type must be button, list or cta_url.");
  }
}
