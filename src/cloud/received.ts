/** Messages of a line's chats in the shape of the official API: each type of ours as one of its types. */
import type { EventData } from "../event/event.ts";
import type { FileRecord } from "../media/rows.ts";
import type { Message } from "../message/message.ts";
import type { IncomingType } from "../whatsapp/incoming.ts";
import { errorInEvent } from "./errors.ts";
import type { Fields } from "./fields.ts";
import { mediaIdOf } from "./media_id.ts";

type Received = EventData<"message.received">;

/** What the store knows about what a message names. */
export interface Known {
  file(fileId: string): Promise<FileRecord | null>;
  message(messageId: string): Promise<Message | null>;
  /** Resolves to the id by which clients know the message. */
  idOf(networkId: string): Promise<string>;
}

type Row = (data: Received, known: Known) => Fields | Promise<Fields>;

const ROWS: Readonly<Record<IncomingType, Row>> = {
  conversation: text,
  extendedTextMessage: text,
  imageMessage: fileOf("image"),
  videoMessage: fileOf("video"),
  audioMessage: fileOf("audio"),
  documentMessage: fileOf("document"),
  stickerMessage: fileOf("sticker"),
  reactionMessage: async ({ text, details }, known) => {
    const { messageId } = (details?.target ?? {}) as { messageId?: string };
    const of = { message_id: messageId === undefined ? "" : await known.idOf(messageId) };
    return { type: "reaction", reaction: text ? { ...of, emoji: text } : of };
  },
  locationMessage: location,
  liveLocationMessage: location,
  contactMessage: contacts,
  contactsArrayMessage: contacts,
  pollCreationMessage: () => unsupported("poll_creation"),
  buttonsResponseMessage: tapped("button_reply"),
  listResponseMessage: tapped("list_reply"),
  unknown: other,
};

/** Returns the message's type, with the member that the type names. */
export async function contentOf(data: Received, known: Known): Promise<Fields> {
  return data.choice ? await chosen(data.choice, known) : await ROWS[data.type](data, known);
}

/** Returns the answer to choices as the kind of answer to what was sent: a button, a list or a template's button. */
export async function chosen({ messageId, id, label }: NonNullable<Received["choice"]>, known: Known): Promise<Fields> {
  const asked = await known.message(messageId);
  if (asked?.content.kind === "template") return button(id, label);
  const options = asked?.content.kind === "choices" ? asked.content.options : [];
  const { description = null } = options.find((option) => option.id === id) ?? {};
  const isList = asked?.manner?.cloud
    ? asked.manner.cloud.interactive === "list"
    : options.length > MOST_BUTTONS || description !== null;
  if (!isList) return interactive("button_reply", { id, title: label });
  return interactive("list_reply", { id, title: label, ...(description === null ? {} : { description }) });
}

/** More options than this are a list. */
const MOST_BUTTONS = 3;

function interactive(kind: string, reply: Fields): Fields {
  return { type: "interactive", interactive: { type: kind, [kind]: reply } };
}

function button(payload: unknown, text: unknown): Fields {
  return { type: "button", button: { payload, text } };
}

function text({ text }: Received): Fields {
  return { type: "text", text: { body: text ?? "" } };
}

function fileOf(type: "image" | "video" | "audio" | "document" | "sticker"): Row {
  return async ({ media, text, details }, known) => {
    const fileId = media?.url && /\/media\/(med_[0-9a-z]+)\?/.exec(media.url)?.[1];
    const file = fileId ? await known.file(fileId) : null;
    if (!media || !fileId || !file) {
      const why = media?.reason ?? "the file is no longer there";
      return { type: "unsupported", errors: [errorInEvent(131052, `The file could not be downloaded: ${why}.`)] };
    }
    const shown: Fields = {
      id: mediaIdOf(fileId),
      mime_type: media.mimetype,
      sha256: Uint8Array.fromHex(file.sha256).toBase64(),
      ...(text === null ? {} : { caption: text }),
    };
    if (type === "document") shown.filename = media.filename;
    if (type === "audio") shown.voice = details?.voice === true;
    if (type === "sticker") shown.animated = false;
    return { type, [type]: shown };
  };
}

function location({ details }: Received): Fields {
  const { latitude, longitude, name, address, url } = details ?? {};
  return { type: "location", location: given({ latitude, longitude, name, address, url }) };
}

interface ReceivedCard {
  name: string | null;
  phones: string[];
}

function contacts({ details }: Received): Fields {
  const cards = (details?.contacts ?? []) as ReceivedCard[];
  const shown = cards.map(({ name, phones }) => ({
    name: { formatted_name: name ?? "", first_name: name ?? "" },
    phones: (phones ?? []).map((phone) => ({ phone: `+${phone}`, wa_id: phone, type: "CELL" })),
  }));
  return { type: "contacts", contacts: shown };
}

/** A tap on what was not sent as choices. */
function tapped(kind: "button_reply" | "list_reply"): Row {
  return ({ text, details }) => {
    const { selectedId, description } = details ?? {};
    return interactive(kind, given({ id: selectedId ?? "", title: text ?? "", description }));
  };
}

function other({ text, details = {} }: Received): Fields {
  const { kind, order, selectedId, flow, form, undecryptable } = details as Record<string, unknown>;
  if (order) {
    const { id } = order as { id?: string };
    return { type: "order", order: { catalog_id: id ?? "", text: text ?? "", product_items: itemsOf(order) } };
  }
  if (kind === "templateButtonReplyMessage") return button(selectedId ?? "", text ?? "");
  if (selectedId !== undefined) return interactive("button_reply", { id: selectedId, title: text ?? "" });
  if (flow !== undefined) {
    return interactive("nfm_reply", { name: flow, body: text ?? "", response_json: JSON.stringify(form ?? {}) });
  }
  return unsupported(undecryptable ? "undecryptable" : String(kind ?? "unknown"));
}

/** WhatsApp tells linked devices the sum of an order, not its items. */
function itemsOf(order: object): Fields[] {
  const { id = "", itemCount = 1, total = 0, currency = "" } = order as Record<string, unknown>;
  return [{ product_retailer_id: id, quantity: itemCount, item_price: total, currency }];
}

function unsupported(type: string): Fields {
  const error = errorInEvent(131051, "The message is of a type that is not supported.");
  return { type: "unsupported", unsupported: { type }, errors: [error] };
}

/** Returns what a message refers to: the one that it replies to, and whether it was forwarded. */
export async function contextOf(
  { quoted, isForwarded, choice }: Received,
  { line, other, known }: { line: string; other: string; known: Known },
): Promise<Fields> {
  const forwarded = isForwarded ? { forwarded: true } : {};
  const id = quoted ? await known.idOf(quoted.messageId) : choice?.messageId;
  if (id === undefined) return isForwarded ? { context: forwarded } : {};
  const from = !quoted || quoted.fromMe ? line : quoted.participant?.replace(/(:\d+)?@s\.whatsapp\.net$/, "") ?? other;
  return { context: { from, id, ...forwarded } };
}

/** Returns the ad through which the chat was started. */
export function referralOf({ ad }: Received): Fields {
  if (!ad) return {};
  const { sourceUrl, sourceId, sourceType, title, body, mediaUrl, clickId } = ad;
  const referral = given({
    source_url: sourceUrl,
    source_id: sourceId,
    source_type: sourceType,
    headline: title,
    body,
    image_url: mediaUrl,
    ctwa_clid: clickId,
  });
  return { referral };
}

function given(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
