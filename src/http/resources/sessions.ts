/** Sessions: the lines of an account (spec, "Sessions"). */
import { z } from "@hono/zod-openapi";
import { type Line, LINE_STATUSES } from "../../line/line.ts";
import type { Restriction as RestrictionOfLine } from "../../whatsapp/connection.ts";
import { madeOnce } from "../api/idempotency.ts";
import { type Api, created, ok, routesOf } from "../api/route.ts";
import {
  data,
  idOf,
  idParams,
  isoTime,
  isoTimeOrNull,
  isoTimes,
  oneLine,
  orNull,
  PhoneNumber,
  rare,
  shownAs,
  Timestamp,
} from "../api/schemas.ts";
import type { Services } from "../api/services.ts";

export const Restriction = z.object({
  kind: z.string().openapi({ description: "WhatsApp's name for the restriction.", example: "DEFAULT" }),
  until: Timestamp.nullable(),
}).openapi("Restriction", {
  description: "Set while WhatsApp does not allow the number to start new chats. Existing chats continue.",
});

const SessionStatus = z.enum(LINE_STATUSES).openapi("SessionStatus");

export const Session = z.object({
  _id: idOf("session", "ses"),
  name: z.string().openapi({ example: "Support line" }),
  status: SessionStatus,
  phone: z.string().nullable().openapi({
    description: "The linked phone number, digits only; null until linked.",
    example: "447700900123",
  }),
  lastUsed: Timestamp,
  createdAt: Timestamp,
  id: idOf("session", "ses").describe("The same as `_id`."),
  passkey: z.object({ stage: z.enum(["required", "confirm"]), expiresAt: Timestamp }).nullable().openapi({
    description: "Set while linking requires the account's passkey; see `GET /v1/sessions/{id}/passkey`.",
    example: null,
  }),
  restriction: orNull(Restriction).openapi({ example: null }),
  proxy: z.string().nullable().openapi({ description: "The session's proxy, without its credentials.", example: null }),
  reason: z.string().nullable().openapi({
    description: "Why the session is not connected, or why the last attempt to link it failed; null if there is no " +
      "problem.",
    example: null,
  }),
}).openapi("Session");

const Name = oneLine(
  z.string().min(1, { abort: true }).max(100).regex(/\S/, "must have a visible character"),
).openapi({ example: "Support line" });

const Proxy = z.string().min(1).max(512).nullish().openapi(rare(
  "Proxy for all traffic of the session: `socks5://user:password@host:port`, `http://…` or `https://…`; null for none.",
));

const LinkingResult = z.object({
  status: SessionStatus,
  qr: z.string().nullable().openapi({
    description: "The QR as the data URL of a PNG image; null when there is none to scan.",
    example: "data:image/png;base64,iVBORw0KGgo…",
  }),
  pairingCode: z.string().nullable().openapi({
    description: "Code to enter on the phone; null when linking by QR.",
    example: null,
  }),
}).openapi("LinkingResult");

const SessionCreation = z.strictObject({
  name: Name,
  // Whoever tries the form expects a QR.
  pairingPhone: PhoneNumber.nullish().openapi(
    rare("Phone number. If given, the session is linked by pairing code instead of QR."),
  ),
  proxy: Proxy,
}).openapi("SessionCreation");

const SessionChange = z.strictObject({ name: Name.nullish(), proxy: Proxy }).openapi("SessionChange");

const one = data("The session", Session);
const ofOne = { params: idParams("session", "ses") };
const changed = { 200: { ...one, description: "The session after the action" } };
const action = { ...ofOne, answers: changed };

const routes = routesOf("Sessions", {
  listSessions: {
    at: "GET /v1/sessions",
    summary: "List sessions",
    description: "Oldest first.",
    answers: { 200: data("All sessions of the account", z.array(Session)) },
  },

  createSession: {
    at: "POST /v1/sessions",
    summary: "Create a session",
    description: "Linking starts at once: get the QR or pairing code from `GET /v1/sessions/{id}/qr`. The plan " +
      "limits the number of sessions.",
    body: SessionCreation,
    repeats: "handler",
    answers: { 201: { ...one, description: "The new session" } },
    problems: ["session_limit_reached"],
  },

  getSession: {
    at: "GET /v1/sessions/{id}",
    ...ofOne,
    summary: "Get a session",
    answers: { 200: one },
  },

  updateSession: {
    at: "PATCH /v1/sessions/{id}",
    ...ofOne,
    summary: "Update a session",
    description: "Changes the name or the proxy. Omitted fields stay unchanged. Changing or removing the proxy " +
      "reconnects the session.",
    body: SessionChange,
    answers: changed,
  },

  getSessionQr: {
    at: "GET /v1/sessions/{id}/qr",
    ...ofOne,
    summary: "Get the QR or pairing code",
    description: "While the status is `qr`, the QR changes regularly: poll every few seconds until the status is " +
      "`connected`.",
    answers: { 200: { description: "The state of linking", schema: LinkingResult } },
  },

  getSessionStatus: {
    at: "GET /v1/sessions/{id}/status",
    ...ofOne,
    summary: "Get the status of a session",
    description: "The same record as `GET /v1/sessions/{id}`.",
    answers: { 200: one },
  },

  reconnectSession: {
    at: "POST /v1/sessions/{id}/reconnect",
    ...action,
    summary: "Reconnect a session",
    description: "If the session was logged out, this starts linking again with a new QR, or with a new pairing code " +
      "if it was created with a `pairingPhone`.",
  },

  disconnectSession: {
    at: "POST /v1/sessions/{id}/disconnect",
    ...action,
    summary: "Disconnect a session",
    description: "The device stays linked, so reconnecting needs no QR. Queued messages wait.",
  },

  logOutSession: {
    at: "POST /v1/sessions/{id}/logout",
    ...action,
    summary: "Log out a session",
    description: "Unlinks the device; linking it again takes a new QR or pairing code. Queued messages fail.",
  },

  deleteSession: {
    at: "DELETE /v1/sessions/{id}",
    ...ofOne,
    summary: "Delete a session",
    description: "Also unlinks the device from the phone. Queued messages fail.",
    answers: { 200: { ...one, description: "The session after the action: `logged_out`" } },
  },
});

export const sessionResource = { routes: Object.values(routes), add: addSessions };

function addSessions(api: Api, { lines, idempotency, budgets }: Services): void {
  api.answer(routes.listSessions, async ({ accountId }) => {
    return (await budgets.read(accountId, () => lines.list(accountId))).map(sessionOf);
  });

  api.on(routes.createSession, async ({ accountId, body: { name, pairingPhone, proxy }, repeat }) => {
    const answerTo = (line: Line) => created({ data: sessionOf(line) });
    return await madeOnce({ idempotency, repeat, answerTo }, (keep) => {
      const options = { name, pairingPhone: pairingPhone ?? null, proxy: proxy ?? null, commitWith: keep };
      return lines.create(accountId, options);
    });
  });

  api.answer(routes.updateSession, async ({ accountId, params, body: { name, proxy } }) => {
    const line = await lines.update(accountId, params.id, { name: name ?? undefined, proxy });
    return sessionOf(line);
  });

  api.on(routes.getSessionQr, async ({ accountId, params }) => {
    const { status, qr, pairingCode } = await lines.linking(accountId, params.id);
    return ok({ status, qr, pairingCode });
  });

  const answeredByLine: [typeof routes.getSession, (accountId: string, lineId: string) => Promise<Line>][] = [
    [routes.getSession, (...of) => lines.get(...of)],
    [routes.getSessionStatus, (...of) => lines.get(...of)],
    [routes.reconnectSession, (...of) => lines.want(...of, "connected")],
    [routes.disconnectSession, (...of) => lines.want(...of, "paused")],
    [routes.logOutSession, (...of) => lines.want(...of, "logged_out")],
    [routes.deleteSession, (...of) => lines.want(...of, "deleted")],
  ];
  for (const [route, act] of answeredByLine) {
    api.answer(route, ({ accountId, params }) => act(accountId, params.id), sessionOf);
  }
}

export function restrictionOf({ kind, until }: RestrictionOfLine): z.infer<typeof Restriction> {
  return { kind, until: isoTimeOrNull(until) };
}

/** Returns a line in the form of the API. */
export function sessionOf(line: Line): z.infer<typeof Session> {
  const { id, lastUsed, createdAt, passkey, restriction, proxy } = line;
  return shownAs(Session, line, {
    _id: id,
    ...isoTimes({ lastUsed, createdAt }),
    passkey: passkey && { stage: passkey.stage, expiresAt: isoTime(passkey.expiresAt) },
    restriction: restriction && restrictionOf(restriction),
    proxy: proxy?.shown ?? null,
  });
}
