/** The passkey of an account that is being linked: the challenge to sign, and its signature. */
import { z } from "@hono/zod-openapi";
import { unlessMalformed } from "../../base/retry.ts";
import type { PasskeyAssertion, PasskeyRequest } from "../../whatsapp/connection.ts";
import { type Api, routesOf } from "../api/route.ts";
import { data, idParams, isoTime, Timestamp } from "../api/schemas.ts";
import type { Services } from "../api/services.ts";
import { Session, sessionOf } from "./sessions.ts";

/** Bytes in the encoding of WebAuthn's JSON. */
const Base64Url = z.string().max(16_384).regex(/^[A-Za-z0-9_-]+$/, "must be base64url");

const Request = z.object({
  stage: z.enum(["required", "confirm"]).describe(
    "`required`: sign the challenge. `confirm`: compare the code with the one on the phone.",
  ),
  options: z.record(z.string(), z.unknown()).nullable().openapi({
    description: "WhatsApp's WebAuthn request options (`challenge`, `rpId`, `allowCredentials`, …), to pass to " +
      "`navigator.credentials.get({ publicKey })` on https://web.whatsapp.com; null in stage `confirm`.",
    example: { challenge: "3q2-7w…", rpId: "whatsapp.com", userVerification: "required" },
  }),
  code: z.string().nullable().openapi({
    description: "The code, `XXXX-XXXX`, in stage `confirm`; otherwise null.",
    example: null,
  }),
  expiresAt: Timestamp.describe("When this challenge is replaced by a new one or by a new QR."),
}).openapi("PasskeyRequest");

export const Assertion = z.strictObject({
  id: Base64Url,
  rawId: Base64Url,
  type: z.literal("public-key"),
  authenticatorAttachment: z.string().max(100).nullish(),
  response: z.strictObject({
    clientDataJSON: Base64Url.refine(isClientData, "must be the client data of a signature"),
    authenticatorData: Base64Url,
    signature: Base64Url,
    userHandle: Base64Url.nullish(),
  }),
  clientExtensionResults: z.unknown().optional().describe("Output of WebAuthn extensions, passed on unchanged."),
}).openapi("PasskeyAssertion", { description: "A WebAuthn credential as returned by `PublicKeyCredential.toJSON()`." });

const ofOne = { params: idParams("session", "ses") };
const answers = { 200: data("The session after the action", Session) };

const routes = routesOf("Sessions", {
  getSessionPasskey: {
    at: "GET /v1/sessions/{id}/passkey",
    ...ofOne,
    summary: "Get the passkey request",
    description: "Some WhatsApp accounts can be linked only with their passkey. While it is required, the session's " +
      "`passkey` is not null. A person signs the challenge on https://web.whatsapp.com, to which the passkey is " +
      "bound; the gateway never holds the passkey.",
    answers: { 200: data("The request", Request) },
  },

  signSessionPasskey: {
    at: "POST /v1/sessions/{id}/passkey",
    ...ofOne,
    summary: "Submit the signed challenge",
    description: "If the signature is refused, a new challenge or a new QR follows.",
    body: z.strictObject({ assertion: Assertion }).openapi("PasskeySignature"),
    answers,
    problems: ["passkey_not_requested", "passkey_refused", "network_timeout"],
  },

  confirmSessionPasskey: {
    at: "POST /v1/sessions/{id}/passkey/confirm",
    ...ofOne,
    summary: "Confirm the code",
    answers,
    problems: ["passkey_not_requested", "passkey_refused", "network_timeout"],
  },
});

export const passkeyResource = { routes: Object.values(routes), add: addPasskey };

function addPasskey(api: Api, { lines }: Services): void {
  api.answer(routes.getSessionPasskey, ({ accountId, params }) => lines.passkey(accountId, params.id), requestOf);

  api.answer(routes.signSessionPasskey, async ({ accountId, params, body: { assertion } }) => {
    return sessionOf(await lines.signPasskey(accountId, params.id, assertionOf(assertion)));
  });

  api.answer(routes.confirmSessionPasskey, async ({ accountId, params }) => {
    return sessionOf(await lines.confirmPasskey(accountId, params.id));
  });
}

/** Returns the assertion as the network accepts it, without optional members that are null. */
export function assertionOf(assertion: z.infer<typeof Assertion>): PasskeyAssertion {
  const { id, rawId, type, authenticatorAttachment, response, clientExtensionResults } = assertion;
  const { clientDataJSON, authenticatorData, signature, userHandle } = response;
  return {
    id,
    rawId,
    type,
    ...(authenticatorAttachment ? { authenticatorAttachment } : {}),
    response: { clientDataJSON, authenticatorData, signature, ...(userHandle ? { userHandle } : {}) },
    clientExtensionResults: { ...Object(clientExtensionResults) },
  };
}

/** Returns the request to the account's passkey in the form of the API. */
export function requestOf(request: PasskeyRequest): z.infer<typeof Request> {
  const { stage, expiresAt } = request;
  return {
    stage,
    options: request.stage === "required" ? request.options : null,
    code: request.stage === "confirm" ? request.code : null,
    expiresAt: isoTime(expiresAt),
  };
}

/** Whether the text is a browser's client data for a signature; the network checks which passkey signed. */
function isClientData(text: string): boolean {
  return unlessMalformed(() => {
    const { type, challenge } = JSON.parse(atob(text.replaceAll("-", "+").replaceAll("_", "/")));
    return type === "webauthn.get" && typeof challenge === "string";
  }, false);
}
