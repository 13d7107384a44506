/**
 * Edits as today's apps send them: sealed with the secret that is part of the original, which everybody in the chat
 * has.
 */
import { jidNormalizedUser, proto } from "@whiskeysockets/baileys";
import { unlessMalformed } from "../../base/retry.ts";
import type { Random } from "../../runtime.ts";
import { hkdf, openGcm, sealGcm } from "../world/crypto.ts";

const MESSAGE_EDIT = proto.Message.SecretEncryptedMessage.SecretEncType.MESSAGE_EDIT;
const IV_BYTES = 12;

/** The message that is edited. `author` is the editor too, named as in the chat. */
export interface Edited {
  id: string;
  secret: Uint8Array;
  author: string;
}

function keyFor({ id, secret, author }: Edited): Uint8Array {
  const jid = jidNormalizedUser(author);
  return hkdf(secret, "", `${id}${jid}${jid}Message Edit`);
}

export function sealEdit(
  edit: proto.IMessage,
  { key, ...edited }: Omit<Edited, "id"> & { key: proto.IMessageKey },
  random: Random,
): proto.IMessage {
  const encIv = random.bytes(IV_BYTES);
  const plain = proto.Message.encode(edit).finish();
  const encPayload = sealGcm(plain, { key: keyFor({ ...edited, id: key.id! }), iv: encIv });
  return { secretEncryptedMessage: { targetMessageKey: key, secretEncType: MESSAGE_EDIT, encPayload, encIv } };
}

/** Returns the edit in the clear; null if it was sealed for another message or by somebody else. */
export function openEdit(
  { encPayload, encIv }: proto.Message.ISecretEncryptedMessage,
  edited: Edited,
): proto.IMessage | null {
  return unlessMalformed(
    () => proto.Message.decode(openGcm(encPayload!, { key: keyFor(edited), iv: encIv! })),
    null,
  );
}
