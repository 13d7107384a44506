/** Decrypts a message stanza: every ciphertext in it, and the sender keys that came with them. */
import { jidNormalizedUser, proto } from "@whiskeysockets/baileys";
import { type BinaryNode, childrenOf } from "../world/stanza.ts";
import { isOwn, lidForm, type PhoneContext } from "./context.ts";
import { signalAddress, unpad } from "./signal.ts";

type Decrypted =
  /** `destination` is the chat of a copy of the owner's own message. */
  | { kind: "message"; message: proto.IMessage; destination: string | null }
  /** The sessions have moved on: it was decrypted before. */
  | { kind: "read_before" }
  /** The session or sender key is missing or damaged: a retry receipt helps. */
  | { kind: "failed"; error: unknown };

export async function decryptStanza(phone: PhoneContext, stanza: BinaryNode): Promise<Decrypted> {
  const { from = "", participant } = stanza.attrs;
  const author = participant ?? from;
  const whole: proto.IMessage = {};
  let destination: string | null = null;
  try {
    for (const { attrs, content } of childrenOf(stanza, "enc")) {
      if (!(content instanceof Uint8Array)) throw new Error("a ciphertext is missing");
      const plaintext = await decrypt(phone, { type: attrs.type, body: content, author, group: from });
      const message = proto.Message.decode(unpad(plaintext));
      // Only the owner's own devices may say what the owner wrote elsewhere.
      const copy = isOwn(phone, author) ? message.deviceSentMessage : null;
      if (copy) destination = jidNormalizedUser(copy.destinationJid ?? undefined) || null;
      const inner = copy?.message ?? message;
      await learnSenderKey(phone, inner, author);
      Object.assign(whole, inner);
    }
  } catch (error) {
    return readBefore(error) ? { kind: "read_before" } : { kind: "failed", error };
  }
  return { kind: "message", message: whole, destination };
}

async function decrypt(
  { uplink, sessions, senderKeys }: PhoneContext,
  { type, body, author, group }: { type: string | undefined; body: Uint8Array; author: string; group: string },
): Promise<Uint8Array> {
  switch (type) {
    case "pkmsg":
    case "msg":
      return await sessions.decrypt(signalAddress(lidForm(uplink, author)), { type, body });
    case "skmsg":
      return await senderKeys.decrypt({ group, device: author }, body);
    default:
      throw new Error(`unknown ciphertext type ${type}`);
  }
}

async function learnSenderKey({ senderKeys }: PhoneContext, message: proto.IMessage, author: string): Promise<void> {
  const { groupId, axolotlSenderKeyDistributionMessage: key } = message.senderKeyDistributionMessage ?? {};
  if (groupId && key) await senderKeys.learn({ group: groupId, device: author }, key);
}

/** How libsignal and the group cipher report a message whose key was used up. */
function readBefore(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return error.name === "MessageCounterError" || error.message.startsWith("Received message with old counter");
}
