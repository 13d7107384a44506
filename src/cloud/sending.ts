/** `POST /{phone}/messages`: sends, and marks received messages as read. */
import { repeatable } from "../http/api/idempotency.ts";
import type { Services } from "../http/api/services.ts";
import { makeSends } from "../http/resources/sends/sends.ts";
import { requireScope } from "../account/keys.ts";
import type { Line } from "../line/line.ts";
import { chatOf } from "../message/message.ts";
import type { Accepted } from "../message/send_command.ts";
import { isGroup } from "../whatsapp/chats.ts";
import type { makeEmulatedCheck } from "./emulation.ts";
import { type Asked, type OfPhone, SUCCESS } from "./endpoint.ts";
import { unknownPhone, wrongParameter } from "./errors.ts";
import { type Fields, object, text } from "./fields.ts";
import { recipientOf, sendOf } from "./messages.ts";
import { userIdOf } from "./user_id.ts";

/** `check` refuses a send before it is accepted; it throws CloudError. */
export function sendingEndpoints(
  services: Services,
  check: ReturnType<typeof makeEmulatedCheck> | null,
): OfPhone {
  const { references, uploads, media, templates } = services;
  const sends = makeSends(services);

  async function send({ c, caller, line }: Asked & { line: Line }, message: Fields): Promise<Fields> {
    requireScope(caller, "send", "propose");
    const { input, to: person } = recipientOf(message);
    const sources = { account: caller.account, to: person, uploads, media, templates };
    const { send, replyTo, cloud } = await sendOf(message, sources);
    const template = message.type === "template" ? String(object(message, "template").name) : null;
    await check?.({ lineId: line.id, phone: line.phone ?? line.id, to: person, template });
    const isRepeatable = c.req.header("idempotency-key") !== undefined;
    const repeat = isRepeatable
      ? repeatable(c, { accountId: caller.account.id, parts: [JSON.stringify(message)] })
      : null;
    const isReaction = "kind" in send && send.kind === "reaction";
    const addressed = { sessionId: line.id, ...(isReaction ? {} : { to: person, replyTo }) };
    const request = {
      caller,
      repeat,
      cloud,
      // The line may have been linked to another number meanwhile.
      checkLine({ phone }: Line) {
        if (phone !== line.phone) throw unknownPhone();
      },
    };
    const accepted: Accepted = "content" in send
      ? await sends.content(send.content, { ...request, body: addressed })
      : await sends.json(send.kind, { ...request, body: { ...addressed, ...send.fields } });
    const { id, to } = accepted.messages[0]!;
    const chat = chatOf(to);
    return {
      messaging_product: "whatsapp",
      contacts: [{ input, wa_id: chat, ...(isGroup(chat) ? {} : { user_id: userIdOf(chat) }) }],
      messages: [{ id, message_status: "accepted" }],
    };
  }

  async function markRead({ caller, call, checkKey, line }: Asked & { line: Line }, message: Fields): Promise<Fields> {
    await checkKey();
    if (message.status !== "read") throw wrongParameter("status must be read");
    const messageId = text(message, "message_id", 128);
    const { chat } = await references.find(caller.account.id, messageId, { sessionId: line.id });
    const path = `/v1/sessions/${line.id}/chats/${encodeURIComponent(chat)}`;
    const typing = message.typing_indicator !== undefined && object(message, "typing_indicator");
    await call("POST", `${path}/read`, { messageId });
    if (typing) await call("POST", `${path}/presence`, { state: "typing" });
    return SUCCESS;
  }

  return {
    "POST messages": {
      scope: null,
      async handle(asked) {
        const message = await asked.body();
        return message.status === undefined ? await send(asked, message) : await markRead(asked, message);
      },
    },
  };
}
