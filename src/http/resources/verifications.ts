/** Verifications: a person proves that a number is theirs by a message from it. */
import { z } from "@hono/zod-openapi";
import { Problem } from "../../errors.ts";
import { qrDataUrl } from "../../line/line_row.ts";
import { type Verification as Kept, VERIFICATION_STATUSES } from "../../verification/rows.ts";
import { type Api, created, routesOf } from "../api/route.ts";
import { data, idOf, idParams, isoTimes, oneLine, PhoneNumber, rare, shownAs, Timestamp } from "../api/schemas.ts";
import type { Services } from "../api/services.ts";

const DEFAULT_TTL_SECONDS = 600;

const VerificationCreation = z.strictObject({
  purpose: oneLine(z.string().trim().min(1).max(60)).nullish().openapi({
    description: "What it is for, shown before the code in the text that the person sends.",
    example: "Log in to Acme",
  }),
  number: PhoneNumber.nullish().openapi({
    description: "The only number that passes. Any number does if it is left out.",
    example: "447700900123",
  }),
  ttl: z.int().min(60).max(86_400).nullish().openapi({
    description: `Seconds until it expires. Defaults to ${DEFAULT_TTL_SECONDS}.`,
    example: DEFAULT_TTL_SECONDS,
  }),
  sessionId: idOf("session", "ses").nullish().openapi(
    rare("The session that receives the code. Defaults to the oldest connected one."),
  ),
}).openapi("VerificationCreation");

const Verification = z.object({
  id: idOf("verification", "ver"),
  sessionId: idOf("session", "ses"),
  status: z.enum(VERIFICATION_STATUSES),
  code: z.string().openapi({ example: "7KQM2XPR" }),
  text: z.string().openapi({ description: "The text that the person sends.", example: "Log in to Acme: 7KQM2XPR" }),
  link: z.string().openapi({
    description: "Opens WhatsApp with the text, ready to be sent to the session's number.",
    example: "https://wa.me/447700900123?text=Log%20in%20to%20Acme%3A%207KQM2XPR",
  }),
  qr: z.string().describe("The link as a QR code: the data URL of a PNG image."),
  number: z.string().nullable().describe(
    "The number that sent the code; until then the one that was asked for. Null if it is not known.",
  ),
  chat: z.string().nullable().describe("JID of the chat that sent the code; null until then."),
  reason: z.string().nullable().describe("Why it failed: `expired`, `other_number`, `number_hidden`."),
  createdAt: Timestamp,
  expiresAt: Timestamp,
}).openapi("Verification");

const routes = routesOf("Verifications", {
  createVerification: {
    at: "POST /v1/verifications",
    scope: "send",
    summary: "Start a verification",
    description: "Nothing is sent: the person sends `text` to the session, by the link, the QR or by hand. Case and " +
      "blanks in the code do not matter. `verification.passed` then tells the number.",
    body: VerificationCreation.optional(),
    answers: { 201: data("The verification", Verification) },
    problems: ["not_found", "session_not_connected", "no_connected_session", "limit_reached"],
  },

  getVerification: {
    at: "GET /v1/verifications/{id}",
    scope: "send",
    summary: "Get a verification",
    description: "Kept for a day after its end.",
    params: idParams("verification", "ver"),
    answers: { 200: data("The verification", Verification) },
  },
});

export const verificationResource = { routes: Object.values(routes), add: addVerifications };

function addVerifications(api: Api, { verifications, lines }: Services): void {
  api.on(routes.createVerification, async ({ caller, body: { purpose, number, ttl, sessionId } = {} }) => {
    const { value: { id, phone } } = await lines.forSending(caller.account.id, sessionId ?? null);
    if (phone === null) throw new Problem("session_not_connected", "The session's number is not known yet.");
    const opened = await verifications.open(caller, {
      sessionId: id,
      phone,
      purpose: purpose ?? null,
      asked: number ?? null,
      ttlMs: (ttl ?? DEFAULT_TTL_SECONDS) * 1000,
    });
    return created({ data: await shown(opened) });
  });

  api.answer(routes.getVerification, ({ accountId, params: { id } }) => verifications.get(accountId, id), shown);
}

async function shown(kept: Kept): Promise<z.infer<typeof Verification>> {
  const { code, purpose, phone, asked, from, createdAt, expiresAt } = kept;
  const text = purpose === null ? code : `${purpose}: ${code}`;
  const link = `https://wa.me/${phone}?text=${encodeURIComponent(text)}`;
  return shownAs(Verification, kept, {
    text,
    link,
    qr: await qrDataUrl(link),
    number: from ? from.number : asked,
    chat: from?.chat ?? null,
    ...isoTimes({ createdAt, expiresAt }),
  });
}
