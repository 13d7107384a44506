/** What a message says, and the few parts from which the rows of the kinds are made. */
import type { proto } from "@whiskeysockets/baileys";
import type { IncomingType } from "../../../incoming.ts";
import { writtenJid } from "../../jids.ts";

/** The fields of a media message that a download needs. */
export type MediaContent = Pick<
  proto.Message.IDocumentMessage,
  "url" | "directPath" | "mediaKey" | "fileSha256" | "fileEncSha256" | "fileLength" | "mimetype" | "fileName" | "title"
>;

/** Kinds of media as named in the network's key derivation. */
export type MediaKind = "image" | "video" | "audio" | "document" | "sticker";

export interface Said {
  type: IncomingType;
  /** What a person would read first. */
  text: string | null;
  media: { kind: MediaKind; file: MediaContent } | null;
  details: Record<string, unknown> | null;
}

export type Details = Record<string, unknown>;

export function plain(type: IncomingType, text: string | null | undefined, details: Details | null = null): Said {
  return { type, text: text || null, media: null, details: details && present(details) };
}

export function file(type: IncomingType, kind: MediaKind, from: MediaContent & { caption?: string | null }): Said {
  return { ...plain(type, from.caption), media: { kind, file: from } };
}

/** Omits members that are null, undefined, no number, empty strings, or lists and records without members. */
export function present(record: Details): Details {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => !isEmpty(value)));
}

export function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === "" || Number.isNaN(value)) return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}

/** Names the message that a key names. */
export function targetOf(key: proto.IMessageKey | null | undefined): Details | null {
  if (!key?.id) return null;
  return present({ messageId: key.id, fromMe: key.fromMe ?? false, participant: writtenJid(key.participant) });
}

/** Apps write far shorter lists, a thousand contacts at most; a million empty members would hold the thread. */
export const MOST_MEMBERS = 1_000;

/** The members of a list that are read. */
export function first<T>(list: readonly T[] | null | undefined, most = MOST_MEMBERS): IteratorObject<T> {
  return (list ?? []).values().take(most);
}

/** Joins what is shown one below the other. */
export function lines(words: Iterable<string | null | undefined>): string {
  return [...words].filter(Boolean).join("\n");
}

/** An amount in thousandths. */
export function amountOf(thousandths: number | { toNumber(): number } | null | undefined): number | undefined {
  return thousandths === null || thousandths === undefined ? undefined : Number(thousandths) / 1000;
}

/** A time, Unix seconds on the network, as ISO 8601; undefined if there is none, or none that a date can represent. */
export function timeOf(seconds: number | { toNumber(): number } | null | undefined): string | undefined {
  const date = new Date(Number(seconds ?? 0) * 1000);
  return Number(seconds ?? 0) > 0 && !Number.isNaN(date.getTime()) ? date.toISOString() : undefined;
}

export function placeOf(place: proto.Message.ILocationMessage): Details {
  const { degreesLatitude, degreesLongitude, name, address, url, comment } = place;
  return { latitude: degreesLatitude, longitude: degreesLongitude, name, address, url, comment };
}
