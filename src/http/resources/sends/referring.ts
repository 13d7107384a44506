/** Sends that refer to another message: reactions and forwards. */
import { z } from "@hono/zod-openapi";
import { invalid } from "../../../errors.ts";
import type { ForwardContent, ReactionContent } from "../../../message/kinds/plain.ts";
import { type Api, route } from "../../api/route.ts";
import { Recipient } from "../../api/schemas.ts";
import type { Services } from "../../api/services.ts";
import { Emoji, manner, MessageReference, options, sessionId, single } from "./fields.ts";
import { assertSeen } from "./manner.ts";
import { acknowledged, type Sender } from "./sender.ts";

const sendReaction = route({
  ...single,
  path: "/v1/messages/send/reaction",
  operationId: "sendReaction",
  summary: "React to a message",
  description:
    "Goes out on the line and in the chat of the message. Where several lines of the account know the id of " +
    "an event, `sessionId` says which one; else it is the oldest.",
  body: z.strictObject({
    sessionId,
    messageId: MessageReference,
    emoji: Emoji.meta({ description: "One emoji; an empty string takes the reaction back", example: "👍" }),
    ...manner,
    ...options,
  }).openapi("ReactionMessage"),
});

const sendForward = route({
  ...single,
  path: "/v1/messages/send/forward",
  operationId: "sendForward",
  summary: "Send a message on",
  description: "Texts, files, locations and contact cards that a line of the account sent within 14 days or received " +
    "within 30. Goes out on the line of the message unless `sessionId` names another. Its `type` is what was sent on. A link keeps the preview that it has.",
  body: z.strictObject({ sessionId, to: Recipient, messageId: MessageReference, ...manner, ...options }).openapi(
    "ForwardMessage",
  ),
});

export const referring = { routes: [sendReaction, sendForward], add: addReferring };

function addReferring(api: Api, sender: Sender, { references }: Pick<Services, "references">): void {
  api.on(sendReaction, async ({ caller, body, repeat }) => {
    const { sessionId, messageId, emoji } = body;
    const referred = await references.find(caller.account.id, messageId, { sessionId: sessionId ?? null });
    if (sessionId && sessionId !== referred.lineId) throw invalid("sessionId", "is not the session of the message");
    assertSeen(referred, "messageId");
    const content: ReactionContent = { kind: "reaction", emoji, target: referred.key };
    const items = [{ to: referred.chat, content, manner: body }];
    return acknowledged(await sender.send(caller, { ...body, sessionId: referred.lineId }, { items, repeat }));
  });

  api.on(sendForward, async ({ caller, body, repeat }) => {
    const { sessionId, to, messageId } = body;
    // The message may be forwarded on another line than its own.
    const referred = await references.find(caller.account.id, messageId, { sessionId: null });
    assertSeen(referred, "messageId");
    const { lineId, key: { networkId }, kind, preview } = referred;
    if (kind === null) throw invalid("messageId", "is a message that cannot be sent on");
    const content: ForwardContent = { kind: "forward", of: kind, source: { lineId, networkId }, preview };
    const items = [{ to, content, manner: body }];
    return acknowledged(await sender.send(caller, { ...body, sessionId: sessionId ?? lineId }, { items, repeat }));
  });
}
