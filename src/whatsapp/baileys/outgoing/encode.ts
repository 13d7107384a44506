/**
 * An outgoing body as the network's message. Built here and not by the library, whose own way reads files by address,
 * fetches previews of links in texts, and leaves encrypted copies in the system's temporary folder when it is killed.
 */
import { proto } from "@whiskeysockets/baileys";
import type { Runtime } from "../../../runtime.ts";
import type { OutgoingBody } from "../../connection.ts";
import { fileFacts } from "./file_facts.ts";
import { encryptFile } from "./media_encrypt.ts";
import type { Upload } from "./media_upload.ts";

/** What phones play as a voice note; any other audio arrives as a file to play. */
const VOICE = /^(audio|application)\/ogg\b/;
const VOICE_MIMETYPE = "audio/ogg; codecs=opus";
/** Receivers derive what goes with a message (a report, a reaction) from its secret, as all clients of today send it. */
const SECRET_BYTES = 32;

export interface EncodeTools {
  upload: Upload;
  runtime: Pick<Runtime, "clock" | "random">;
  /** Ends the upload. */
  signal: AbortSignal;
}

/** Encrypts and uploads the body's file. Throws when it can't be read, UploadFailed, and when the signal aborts. */
export async function encode(body: OutgoingBody, tools: EncodeTools): Promise<proto.IMessage> {
  const messageContextInfo = { messageSecret: tools.runtime.random.bytes(SECRET_BYTES) };
  return proto.Message.fromObject({ ...await contentOf(body, tools), messageContextInfo });
}

async function contentOf(body: OutgoingBody, { upload, runtime, signal }: EncodeTools): Promise<proto.IMessage> {
  if (body.kind === "text") return { extendedTextMessage: { text: body.text } };
  const { kind, path, filename, mimetype } = body;
  signal.throwIfAborted();
  const facts = await fileFacts(body);
  const encrypted = await encryptFile(path, kind, runtime.random);
  const { mediaKey, fileSha256, fileEncSha256, fileLength } = encrypted;
  const place = await upload(encrypted, { kind, signal });
  const mediaKeyTimestamp = Math.floor(runtime.clock.now() / 1000);
  const file = { ...place, mediaKey, fileSha256, fileEncSha256, fileLength, mediaKeyTimestamp, mimetype, ...facts };
  const caption = body.caption || undefined;
  switch (kind) {
    case "image":
      return { imageMessage: { ...file, caption } };
    case "video":
      return { videoMessage: { ...file, caption } };
    case "audio":
      return { audioMessage: VOICE.test(mimetype) ? { ...file, ptt: true, mimetype: VOICE_MIMETYPE } : file };
    case "document":
      return { documentMessage: { ...file, fileName: filename, title: filename, caption } };
  }
}
