/** What the sends have in common: the fields of their bodies, their answers, and what may go wrong. */
import { z } from "@hono/zod-openapi";
import { idOf } from "../../api/schemas.ts";

export const DAY_SECONDS = 24 * 60 * 60;
export const MAX_TTL_SECONDS = 7 * DAY_SECONDS;

export const Session = z.string().min(1).max(100).openapi({
  description: "Sending line; if omitted, the first connected line of the account (the oldest)",
  example: "ses_01kf0m3e4v8s2q6w9x1y5z7abc",
});
export const sessionId = Session.nullish();
export const seconds = z.int().min(1).max(MAX_TTL_SECONDS);
export const ttl = seconds.nullish().openapi({
  description: "Seconds that the message may wait before it ends as failed (`expired`); 24 hours if left out",
  // None, nor for other members that few need: whoever tries the form as it stands sends what is shown.
  example: undefined,
});

const ack = { messageId: idOf("message", "msg"), status: z.literal("queued"), jobId: idOf("queue job", "job") };
const Acknowledgement = z.object(ack).openapi("Acknowledgement");
export const BulkAcknowledgement = z.object({
  bulkId: idOf("bulk", "blk"),
  total: z.int(),
  status: z.literal("queued"),
  messages: z.array(z.object({ index: z.int(), to: z.string(), ...ack })),
}).openapi("BulkAcknowledgement");

export const quotaHeaders = {
  "x-quota-daily-remaining": "Messages left this UTC day; absent where the plan sets no limit",
  "x-quota-monthly-remaining": "Messages left this UTC month; absent where the plan sets no limit",
};

/** A route that sends one message, but for its path, its body and its words. */
export const single = {
  method: "post",
  tag: "Messages",
  access: "key",
  repeats: "handler",
  checksKey: true,
  answers: { 202: { description: "Accepted: it is on disk", schema: Acknowledgement, headers: quotaHeaders } },
  problems: ["not_found", "session_not_connected", "no_connected_session", "quota_exceeded"],
} as const;
