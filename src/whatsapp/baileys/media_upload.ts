/** Uploading an encrypted file to the hosts that the network names. */
import { stat } from "node:fs/promises";
import {
  encodeBase64EncodedStringForUpload,
  MEDIA_PATH_MAP,
  type WAMediaUploadFunction,
  type WASocket,
} from "@whiskeysockets/baileys";
import type { MediaHost } from "./media_host.ts";

/** The upload function that the library asks for. It throws when no host took the file. */
export function uploadTo(host: MediaHost, socket: Pick<WASocket, "refreshMediaConn">): WAMediaUploadFunction {
  return async (path, { mediaType, fileEncSha256B64 }) => {
    const { size } = await stat(path);
    const token = encodeBase64EncodedStringForUpload(fileEncSha256B64);
    let failure = "the network named no media host";
    // A second round asks for new hosts and a new permit: the ones at hand may have run out.
    for (const renew of [false, true]) {
      const { hosts, auth } = await socket.refreshMediaConn(renew);
      for (const { hostname } of hosts) {
        const url = new URL(`https://${hostname}${MEDIA_PATH_MAP[mediaType]}/${token}`);
        url.searchParams.set("auth", auth);
        url.searchParams.set("token", token);
        try {
          const { status, body } = await host.post(url, { path, size });
          const place = status === 200 ? placeIn(body) : null;
          if (place) return place;
          failure = `the media host answered ${status}`;
        } catch (error) {
          failure = error instanceof Error ? error.message : String(error);
        }
      }
    }
    throw new Error(`upload failed: ${failure}`);
  };
}

function placeIn(body: string): { mediaUrl: string; directPath: string } | null {
  try {
    const { url, direct_path: directPath } = JSON.parse(body) as { url?: string; direct_path?: string };
    return directPath ? { mediaUrl: url ?? "", directPath } : null;
  } catch {
    return null;
  }
}
