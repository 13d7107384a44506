/**
 * A phone's answer to a companion whose download failed: it uploads the file again and says, encrypted with a key derived
 * from the file's own, where it is now.
 */
import { proto } from "@whiskeysockets/baileys";
import { Buffer } from "node:buffer";
import { createCipheriv, hkdfSync } from "node:crypto";
import { type BinaryNode, child, element } from "../world/stanza.ts";
import { upload } from "./attachment.ts";
import type { PhoneContext } from "./context.ts";
import type { Received } from "./inbox.ts";

/** MediaRetryNotification.ResultType, as an error's code. */
const NOT_FOUND = String(proto.MediaRetryNotification.ResultType.NOT_FOUND);

/** The `mediaretry` notification for a `<receipt type="server-error">`. Throws AttachmentError when the upload fails. */
export async function reupload(
  phone: PhoneContext,
  request: BinaryNode,
  candidates: readonly Received[],
): Promise<BinaryNode> {
  const { id, from } = request.attrs;
  const asked = child(request, "rmr")?.attrs ?? {};
  const answer = (content: BinaryNode) => {
    const { jid, from_me, participant } = asked;
    const rmr = element("rmr", { jid, from_me, participant });
    return element("notification", { id, to: from, from: phone.self.jid, type: "mediaretry" }, [content, rmr]);
  };
  const found = candidates.find(({ file }) => file?.sealed);
  const mediaKey = found?.content.file?.attachment.mediaKey;
  if (!found?.file?.sealed || !mediaKey) return answer(element("error", { code: NOT_FOUND }));
  const { directPath } = await upload(found.file.sealed, phone);
  const notification = proto.MediaRetryNotification.encode({
    stanzaId: id,
    directPath,
    result: proto.MediaRetryNotification.ResultType.SUCCESS,
  }).finish();
  const iv = phone.runtime.random.bytes(12);
  const cipher = createCipheriv("aes-256-gcm", retryKey(mediaKey), iv).setAAD(Buffer.from(id ?? ""));
  const sealed = Buffer.concat([cipher.update(notification), cipher.final(), cipher.getAuthTag()]);
  return answer(element("encrypt", {}, [element("enc_p", {}, sealed), element("enc_iv", {}, iv)]));
}

function retryKey(mediaKey: Uint8Array): Buffer {
  return Buffer.from(hkdfSync("sha256", mediaKey, Buffer.alloc(0), "WhatsApp Media Retry Notification", 32));
}
