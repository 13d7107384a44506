/** Other people's status posts as they reach a line, in the two forms that older clients cannot handle. */
import { proto } from "@whiskeysockets/baileys";
import type { Runtime } from "../../runtime.ts";
import { STATUS_CHAT } from "./address.ts";
import type { Account } from "./directory.ts";
import { type BinaryNode, element, messageId, seconds } from "./stanza.ts";

/** `stanza`: a top-level `<status>`; `undecryptable`: a message to `status@broadcast` under a key that nobody has. */
export const STATUS_FORMS = ["stanza", "undecryptable"] as const;
export type StatusForm = (typeof STATUS_FORMS)[number];

export function statusPost(poster: Account, form: StatusForm, { clock, random }: Runtime): BinaryNode {
  const id = messageId(random);
  const t = seconds(clock);
  const notify = poster.name;
  if (form === "stanza") {
    const message = proto.Message.encode({ conversation: "What I did today" }).finish();
    return element("status", { id, t, from: poster.lid, type: "text", notify }, [element("plaintext", {}, message)]);
  }
  const attributes = {
    id,
    t,
    from: STATUS_CHAT,
    participant: poster.lid,
    participant_pn: poster.jid,
    type: "text",
    notify,
  };
  return element("message", attributes, [element("enc", { v: "2", type: "skmsg" }, random.bytes(96))]);
}
