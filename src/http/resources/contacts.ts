/** What the network tells about other numbers (spec, "Sessions"). */
import { z } from "@hono/zod-openapi";
import { type Api, ok, route } from "../api/route.ts";
import { idParams, PhoneNumber } from "../api/schemas.ts";
import type { Services } from "../api/services.ts";

const Check = z.object({
  exists: z.boolean().openapi({ description: "Whether the number has an account on the messaging app" }),
  jid: z.string().openapi({ example: "34600111222@s.whatsapp.net" }),
}).openapi("NumberCheck");

const base = { tag: "Sessions", access: "key", params: idParams("session", "ses") } as const;

const checkNumber = route({
  ...base,
  method: "post",
  path: "/v1/sessions/{id}/check-number",
  operationId: "checkNumber",
  summary: "Ask whether a number is on the messaging app",
  description: "When the network cannot be asked the answer is an error, never a guess.",
  body: z.strictObject({ number: PhoneNumber }).openapi("NumberToCheck"),
  answers: { 200: { description: "What the network says", schema: z.object({ data: Check }) } },
  problems: ["not_found", "session_not_connected", "network_error", "network_timeout"],
});

export const contactRoutes = [checkNumber];

export function addContacts(api: Api, { lines }: Pick<Services, "lines">): void {
  api.on(checkNumber, async ({ caller, params, body }) => {
    const { exists, jid } = await lines.checkNumber(caller.account.id, params.id, body.number);
    return ok({ data: { exists, jid } });
  });
}
