/** An outgoing body as the content that the library sends: files as streams from disk, never as addresses. */
import { createReadStream } from "node:fs";
import type { AnyMessageContent } from "@whiskeysockets/baileys";
import type { OutgoingBody } from "../connection.ts";
import { fileFacts } from "./file_facts.ts";

/** What phones play as a voice note; any other audio arrives as a file to play. */
const VOICE = /^(audio|application)\/ogg\b/;
const VOICE_MIMETYPE = "audio/ogg; codecs=opus";

/**
 * Builds the content. Opens the file when the content is used; facts about it (size of an image, pages, thumbnail) are
 * looked up and left out where it does not tell them.
 */
export async function encode(body: OutgoingBody): Promise<AnyMessageContent> {
  // `null` keeps the library from fetching addresses that it finds in the text.
  if (body.kind === "text") return { text: body.text, linkPreview: null };
  const { path, filename, mimetype } = body;
  const facts = await fileFacts(body);
  const media = { stream: createReadStream(path) };
  const caption = body.caption ? { caption: body.caption } : {};
  switch (body.kind) {
    case "image":
      // Null where none could be made: with undefined the library would try by itself.
      return { image: media, mimetype, ...caption, ...facts } as AnyMessageContent;
    case "video":
      return { video: media, mimetype, ...caption, ...facts } as AnyMessageContent;
    case "audio": {
      const ptt = VOICE.test(mimetype);
      return { audio: media, ptt, mimetype: ptt ? VOICE_MIMETYPE : mimetype, ...facts } as AnyMessageContent;
    }
    case "document":
      return { document: media, fileName: filename, mimetype, ...caption, ...facts } as AnyMessageContent;
  }
}
