/** Uploading an encrypted file to the hosts that the network names. */
import { Buffer } from "node:buffer";
import { MEDIA_PATH_MAP, type WASocket } from "@whiskeysockets/baileys";
import type { MediaKind } from "../incoming/content.ts";
import type { EncryptedFile } from "./media_encrypt.ts";
import type { MediaHost } from "../media_host.ts";

/** Where an uploaded file lies, as its message says it. */
interface MediaPlace {
  url: string;
  directPath: string;
}

/** No host took the file; trying again may work. */
export class UploadFailed extends Error {
  override name = "UploadFailed";
}

export type Upload = (file: EncryptedFile, options: { kind: MediaKind; signal: AbortSignal }) => Promise<MediaPlace>;

/** Uploads go by the socket's permit. Throws UploadFailed, and the signal's reason when it aborts. */
export function uploadTo(host: MediaHost, socket: Pick<WASocket, "refreshMediaConn">): Upload {
  return async (file, { kind, signal }) => {
    const token = Buffer.from(file.fileEncSha256).toString("base64url");
    let failure = "the network named no media host";
    // A second round asks for new hosts and a new permit: the ones at hand may have run out.
    for (const renew of [false, true]) {
      const { hosts, auth } = await socket.refreshMediaConn(renew);
      for (const { hostname } of hosts) {
        signal.throwIfAborted();
        const url = new URL(`https://${hostname}${MEDIA_PATH_MAP[kind]}/${token}`);
        url.searchParams.set("auth", auth);
        url.searchParams.set("token", token);
        try {
          const content = { content: file.content(), length: file.encryptedLength };
          const { status, body } = await host.post(url, content, signal);
          const place = status === 200 ? placeIn(body) : null;
          if (place) return place;
          failure = `the media host answered ${status}`;
        } catch (error) {
          failure = error instanceof Error ? error.message : String(error);
        }
      }
    }
    signal.throwIfAborted();
    throw new UploadFailed(failure);
  };
}

function placeIn(body: string): MediaPlace | null {
  try {
    const { url, direct_path: directPath }: { url?: string; direct_path?: string } = JSON.parse(body);
    return directPath ? { url: url ?? "", directPath } : null;
  } catch {
    return null;
  }
}
