/** Information of the network about other numbers (spec, "Sessions"), the blocklist, and the line's own profile. */
import { z } from "@hono/zod-openapi";
import { invalid, Problem } from "../../errors.ts";
import { type Api, routesOf } from "../api/route.ts";
import { data, PhoneNumber, Username } from "../api/schemas.ts";
import type { LiveConnection } from "../../line/live.ts";
import type { Services } from "../api/services.ts";
import { changes, Jpeg, jpegOf, kept, makeKept, ofSession } from "./network_queries.ts";

/** How long answers of the network are cached. */
const CARD_MAX_AGE_MS = 10 * 60_000;
const OWN_MAX_AGE_MS = 60_000;

const Check = z.object({
  exists: z.boolean().describe("Whether the number is on WhatsApp."),
  jid: z.string().nullable().openapi({
    description: "Null for a username that nobody has.",
    example: "447700900123@s.whatsapp.net",
  }),
}).openapi("NumberCheck");

/** A person, by number or by username. */
const ToCheck = z.strictObject({
  number: PhoneNumber.nullish(),
  username: Username.nullish(),
  pin: z.string().regex(/^([0-9]{4}|[A-Z0-9]{6})$/, "must be four digits, or six capitals and digits").nullish()
    .describe("The key that the owner of the username demands."),
}).superRefine(({ number, username, pin }, context) => {
  const refuse = (path: string, message: string) => context.addIssue({ code: "custom", path: [path], message });
  if ((number == null) === (username == null)) refuse("number", "is required, or a username in its place");
  if (pin != null && username == null) refuse("pin", "is for a username");
}).openapi("NumberToCheck", { minProperties: 1 });

/**
 * Looks a username up, with or without an @ before it; `path` is its place in the request. Throws Problem
 * username_key_required, NetworkRefusal.
 */
export async function findUsername(
  { contacts }: Pick<LiveConnection, "contacts">,
  { username, pin = null, path }: { username: string; pin?: string | null | undefined; path: string },
): Promise<{ exists: boolean; jid: string | null }> {
  const { exists, jid, needsKey } = await contacts.find(username.replace("@", ""), pin);
  if (!needsKey) return { exists, jid };
  const detail = "Only those who know its key find somebody by this username.";
  throw new Problem("username_key_required", detail, { errors: [{ path, message: "can't be found without its key" }] });
}

const text = z.string().nullable();
const pictureUrl = text.describe(
  "Address of the picture on WhatsApp's servers, valid for a few days; null if there is none or it is " +
    "hidden.",
);
const Business = z.object({
  description: text,
  category: text,
  address: text,
  email: text,
  websites: z.array(z.string()),
});
const Contact = z.object({
  ...Check.shape,
  lid: text.openapi({ description: "The contact's JID that hides the number.", example: "123456789012345@lid" }),
  name: text.describe("The contact's public name, from their latest message since the session connected."),
  about: text,
  pictureUrl,
  business: Business.nullable(),
}).openapi("Contact");
const Blocked = z.object({ jid: z.string(), number: text }).openapi("BlockedContact");
const BlockState = z.object({ number: z.string().openapi({ example: "447700900123" }), blocked: z.boolean() }).openapi(
  "BlockState",
);
const Profile = z.object({
  name: text,
  username: text.openapi({ description: "Without an @; null if the account has none." }),
  about: text,
  picture: pictureUrl.describe("Same as `pictureUrl`, under the name used to change it."),
  pictureUrl,
}).openapi("Profile");

const ofNumber = { ...ofSession, params: ofSession.params.extend({ number: PhoneNumber }) };

const routes = routesOf("Contacts", {
  checkNumber: {
    at: "POST /v1/sessions/{id}/check-number",
    ...ofSession,
    tag: "Sessions",
    summary: "Check a number",
    description: "Checks whether a number is on WhatsApp, or whose a username is. If WhatsApp cannot be reached, the " +
      "response is an error, never a guess. If its owner demands a key, it is 409 `username_key_required` without it.",
    body: ToCheck,
    problems: [...ofSession.problems, "username_key_required"],
    answers: { 200: data("The result", Check) },
  },

  getContact: {
    at: "GET /v1/sessions/{id}/contacts/{number}",
    ...ofNumber,
    summary: "Get a contact",
    description: "Fields hidden by the contact's privacy settings are null. Answers are cached for ten minutes.",
    ...kept("The contact", Contact),
  },

  blockContact: {
    at: "PUT /v1/sessions/{id}/contacts/{number}/block",
    ...ofNumber,
    summary: "Block a number",
    description: "A blocked number can neither message nor call the session. The session's own number cannot be " +
      "blocked.",
    answers: { 200: data("The number is blocked", BlockState) },
  },

  unblockContact: {
    at: "DELETE /v1/sessions/{id}/contacts/{number}/block",
    ...ofNumber,
    summary: "Unblock a number",
    answers: { 200: data("The number is not blocked", BlockState) },
  },

  getBlocklist: {
    at: "GET /v1/sessions/{id}/blocklist",
    ...ofSession,
    summary: "List blocked numbers",
    description: "Answers are cached for one minute, or until the gateway changes the list.",
    ...kept("The blocked numbers", z.array(Blocked)),
  },

  getProfile: {
    at: "GET /v1/sessions/{id}/profile",
    ...ofSession,
    summary: "Get the profile",
    description: "The session's own profile. Answers are cached for one minute, or until the gateway changes the " +
      "profile.",
    ...kept("The profile", Profile),
  },

  changeProfile: {
    at: "PATCH /v1/sessions/{id}/profile",
    ...ofSession,
    summary: "Update the profile",
    body: changes("ProfileChange", {
      name: z.string().trim().min(1).max(25).nullish().openapi({ example: "Bakery Madrid" }),
      about: z.string().max(139).nullish().openapi({ example: "Open from seven to three" }),
      picture: Jpeg.nullish(),
    }),
    maxBytes: 2 * 1024 * 1024,
    answers: { 200: data("The updated profile", Profile) },
  },
});

export const contactResource = { routes: Object.values(routes), add: addContacts };

function addContacts(api: Api, services: Services): void {
  const { lines, lookups } = services;
  const keepsCard = makeKept(api, services, CARD_MAX_AGE_MS);
  keepsCard(
    routes.getContact,
    ({ number }) => `contact ${number}`,
    ({ contacts }, { number }) => contacts.card(number),
  );
  const keepsOwn = makeKept(api, services, OWN_MAX_AGE_MS);
  keepsOwn(routes.getBlocklist, () => "blocklist", ({ contacts }) => contacts.blocklist());
  keepsOwn(routes.getProfile, () => "profile", async ({ contacts }) => bothNames(await contacts.profile()));

  api.answer(routes.checkNumber, async ({ accountId, params, body }) => {
    const connection = await lines.connection(accountId, params.id);
    const { number, username, pin } = body;
    if (number != null) {
      const { exists, jid } = await connection.checkNumber(number);
      return { exists, jid };
    }
    return await findUsername(connection, { username: username!, pin, path: "username" });
  });

  for (const [declared, blocked] of [[routes.blockContact, true], [routes.unblockContact, false]] as const) {
    api.answer(declared, async ({ accountId, params: { id, number } }) => {
      const { phone } = await lines.get(accountId, id);
      if (blocked && number === phone) throw invalid("number", "is the line's own");
      const { contacts } = await lines.connection(accountId, id);
      await (blocked ? contacts.block(number) : contacts.unblock(number));
      lookups.forget(id, "blocklist");
      return { number, blocked };
    });
  }

  api.answer(routes.changeProfile, async ({ accountId, params: { id }, body: { picture, ...fields } }) => {
    const jpeg = jpegOf(picture);
    const { contacts } = await lines.connection(accountId, id);
    try {
      await contacts.changeProfile({ ...fields, ...(jpeg === undefined ? {} : { picture: jpeg }) });
    } finally {
      // If the network refuses a field, those before it have been changed.
      lookups.forget(id, "profile");
    }
    return bothNames(await contacts.profile());
  });
}

/** Adds `picture`, the name used to change it, beside `pictureUrl`, the name that contacts have. */
function bothNames<T extends { pictureUrl: string | null }>(profile: T): T & { picture: string | null } {
  return { ...profile, picture: profile.pictureUrl };
}
