/** Presence and read receipts, which a line shows to the other side of a chat. */
import { z } from "@hono/zod-openapi";
import { jidOf } from "../../line/chat_entries.ts";
import { type Api, routesOf } from "../api/route.ts";
import { data, Recipient } from "../api/schemas.ts";
import type { Services } from "../api/services.ts";
import { ofSession } from "./network_queries.ts";

const ofChat = { ...ofSession, params: ofSession.params.extend({ chat: Recipient }) };

const routes = routesOf("Chats", {
  setPresence: {
    at: "POST /v1/sessions/{id}/chats/{chat}/presence",
    ...ofChat,
    summary: "Show or clear a typing indicator",
    description: "WhatsApp shows the indicator for about 25 seconds. For a minute the session appears online, and " +
      "`presence.updated` reports who is online in this chat and who types in any. Meanwhile the owner's phone shows " +
      "no notifications.",
    body: z.strictObject({ state: z.enum(["typing", "recording", "paused"]) }).openapi("ChatStateChange"),
    answers: {
      200: data("The state was sent", z.object({ chat: z.string(), state: z.string() }).openapi("ChatState")),
    },
  },

  readChat: {
    at: "POST /v1/sessions/{id}/chats/{chat}/read",
    ...ofChat,
    summary: "Mark messages as read",
    description: "`chat` is the one from the event. Without `messageId`, marks everything received since the chat " +
      "was last read, up to the newest 500 messages. If read receipts are off in the session's privacy settings, the " +
      "sender is not notified.",
    body: z.strictObject({
      messageId: z.string().min(1).max(128).nullish().describe("`messageId` of a `message.received` event."),
    }).openapi("ReadRequest").nullish(),
    answers: {
      200: data(
        "The messages marked as read",
        z.object({ chat: z.string(), messageIds: z.array(z.string()) }).openapi("ReadMessages"),
      ),
    },
  },
});

export const chatResource = { routes: Object.values(routes), add: addChats };

function addChats(api: Api, { lines, unread }: Services): void {
  api.answer(routes.setPresence, async ({ accountId, params: { id, chat }, body: { state } }) => {
    const { chats } = await lines.connection(accountId, id);
    await chats.show(jidOf(chat), state);
    return { chat, state };
  });

  api.answer(routes.readChat, async ({ accountId, params: { id, chat }, body }) => {
    const { chats } = await lines.connection(accountId, id);
    const read = await unread.of(id, { chats: await chats.namesOf(jidOf(chat)), networkId: body?.messageId ?? null });
    await chats.read(read.messages);
    await read.done();
    return { chat, messageIds: read.messages.map(({ networkId }) => networkId) };
  });
}
