/** A file as the network's messages name it: where it lies encrypted, by which key, and what is shown of it. */
import type { Inspect } from "../../../inspect/inspector.ts";
import type { Runtime } from "../../../runtime.ts";
import type { FileBody } from "../../outgoing.ts";
import { encryptFile } from "./media_encrypt.ts";
import type { Upload } from "./media_upload.ts";

/** What phones play as a voice note; any other audio arrives as a file to play. */
const VOICE = /^(audio|application)\/ogg\b/;
const VOICE_MIMETYPE = "audio/ogg; codecs=opus";

export interface FileTools {
  upload: Upload;
  runtime: Pick<Runtime, "clock" | "random">;
  inspect: Inspect;
  /** Ends the upload. */
  signal: AbortSignal;
}

/** Encrypts and uploads the file. Throws when it can't be read, UploadFailed, and when the signal aborts. */
export async function encodeFile(body: FileBody, { upload, runtime, inspect, signal }: FileTools) {
  const { kind, path, mimetype } = body;
  signal.throwIfAborted();
  const facts = await inspect(body, { signal });
  // A voice note is a sound to those who keep it.
  const media = kind === "voice" ? "audio" : kind;
  const encrypted = await encryptFile(path, media, runtime.random);
  const { mediaKey, fileSha256, fileEncSha256, fileLength } = encrypted;
  const place = await upload(encrypted, { kind: media, signal });
  const mediaKeyTimestamp = Math.floor(runtime.clock.now() / 1000);
  const voice = kind === "audio" && VOICE.test(mimetype) ? { ptt: true, mimetype: VOICE_MIMETYPE } : {};
  return {
    ...place,
    mediaKey,
    fileSha256,
    fileEncSha256,
    fileLength,
    mediaKeyTimestamp,
    mimetype,
    ...facts,
    ...voice,
  };
}
