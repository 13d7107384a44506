/** Information of the network about other numbers (spec, "Sessions"), the blocklist, and the line's own profile. */
import { z } from "@hono/zod-openapi";
import { invalid } from "../../errors.ts";
import { type Api, ok, route } from "../api/route.ts";
import { data, PhoneNumber } from "../api/schemas.ts";
import type { Services } from "../api/services.ts";
import { changes, Jpeg, jpegOf, kept, keptAnswer, ofSession } from "./network.ts";

/** How long answers of the network are cached. */
const CARD_MAX_AGE_MS = 10 * 60_000;
const OWN_MAX_AGE_MS = 60_000;

const Check = z.object({
  exists: z.boolean().openapi({ description: "Whether the number has an account on the messaging app" }),
  jid: z.string().openapi({ example: "34600111222@s.whatsapp.net" }),
}).openapi("NumberCheck");

const text = z.string().nullable();
const pictureUrl = text.openapi({
  description: "On the network's host, for some days; null where there is none to see",
});
const Business = z.object({
  description: text,
  category: text,
  address: text,
  email: text,
  websites: z.array(z.string()),
});
const Contact = z.object({
  ...Check.shape,
  lid: text.openapi({ description: "The address that hides the number", example: "123456789012345@lid" }),
  name: text.openapi({ description: "As they called themselves when they last wrote since the line connected" }),
  about: text,
  pictureUrl,
  business: Business.nullable(),
}).openapi("Contact");
const Blocked = z.object({ jid: z.string(), number: text }).openapi("BlockedContact");
const Profile = z.object({
  name: text,
  about: text,
  picture: pictureUrl.openapi({ description: "The same as `pictureUrl`, under the name by which it is changed" }),
  pictureUrl,
}).openapi("Profile");

const ofLine = { ...ofSession, tag: "Contacts" } as const;
const ofNumber = { ...ofLine, params: ofLine.params.extend({ number: PhoneNumber }) } as const;

const checkNumber = route({
  ...ofSession,
  tag: "Sessions",
  method: "post",
  path: "/v1/sessions/{id}/check-number",
  operationId: "checkNumber",
  summary: "Ask whether a number is on the messaging app",
  description: "When the network cannot be asked the answer is an error, never a guess.",
  body: z.strictObject({ number: PhoneNumber }).openapi("NumberToCheck"),
  answers: { 200: data("What the network says", Check) },
});

const getContact = route({
  ...ofNumber,
  method: "get",
  path: "/v1/sessions/{id}/contacts/{number}",
  operationId: "getContact",
  summary: "What the network tells of a number",
  description: "What somebody's privacy settings hide is null. An answer is kept for ten minutes.",
  ...kept("The contact", Contact),
});

const block = route({
  ...ofNumber,
  method: "put",
  path: "/v1/sessions/{id}/contacts/{number}/block",
  operationId: "blockContact",
  summary: "Block a number",
  description: "It can no longer write to the line or call it. The line's own number cannot be blocked.",
  answers: { 200: data("It is blocked", z.object({ number: PhoneNumber, blocked: z.boolean() })) },
});
const unblock = route({
  ...ofNumber,
  method: "delete",
  path: "/v1/sessions/{id}/contacts/{number}/block",
  operationId: "unblockContact",
  summary: "Unblock a number",
  answers: { 200: data("It is not blocked", z.object({ number: PhoneNumber, blocked: z.boolean() })) },
});

const blocklist = route({
  ...ofLine,
  method: "get",
  path: "/v1/sessions/{id}/blocklist",
  operationId: "getBlocklist",
  summary: "Who is blocked",
  description: "An answer is kept for a minute, or until the gateway changes the list.",
  ...kept("The blocked", z.array(Blocked)),
});

const getProfile = route({
  ...ofLine,
  method: "get",
  path: "/v1/sessions/{id}/profile",
  operationId: "getProfile",
  summary: "The line's own profile",
  description: "An answer is kept for a minute, or until the gateway changes the profile.",
  ...kept("The profile", Profile),
});

const changeProfile = route({
  ...ofLine,
  method: "patch",
  path: "/v1/sessions/{id}/profile",
  operationId: "changeProfile",
  summary: "Change the line's name, about or picture",
  body: changes("ProfileChange", {
    name: z.string().trim().min(1).max(25).nullish().openapi({ example: "Bakery Madrid" }),
    about: z.string().max(139).nullish().openapi({ example: "Open from seven to three" }),
    picture: Jpeg.nullish(),
  }),
  maxBytes: 2 * 1024 * 1024,
  answers: { 200: data("The profile as it is now", Profile) },
});

export const contactResource = {
  routes: [checkNumber, getContact, block, unblock, blocklist, getProfile, changeProfile],
  add: addContacts,
};

function addContacts(api: Api, { lines, lookups }: Pick<Services, "lines" | "lookups">): void {
  api.on(checkNumber, async ({ caller, params, body }) => {
    const connection = await lines.connection(caller.account.id, params.id);
    const { exists, jid } = await connection.checkNumber(body.number);
    return ok({ data: { exists, jid } });
  });

  api.on(getContact, async ({ caller, params: { id, number } }) => {
    const { contacts } = await lines.connection(caller.account.id, id);
    const ask = () => contacts.card(number);
    return await keptAnswer(lookups, { lineId: id, about: `contact ${number}`, maxAgeMs: CARD_MAX_AGE_MS, ask });
  });

  for (const [declared, blocked] of [[block, true], [unblock, false]] as const) {
    api.on(declared, async ({ caller, params: { id, number } }) => {
      const { phone } = await lines.get(caller.account.id, id);
      if (blocked && number === phone) throw invalid("number", "is the line's own");
      const { contacts } = await lines.connection(caller.account.id, id);
      await (blocked ? contacts.block(number) : contacts.unblock(number));
      lookups.forget(id, "blocklist");
      return ok({ data: { number, blocked } });
    });
  }

  api.on(blocklist, async ({ caller, params: { id } }) => {
    const { contacts } = await lines.connection(caller.account.id, id);
    const ask = () => contacts.blocklist();
    return await keptAnswer(lookups, { lineId: id, about: "blocklist", maxAgeMs: OWN_MAX_AGE_MS, ask });
  });

  api.on(getProfile, async ({ caller, params: { id } }) => {
    const { contacts } = await lines.connection(caller.account.id, id);
    const ask = async () => bothNames(await contacts.profile());
    return await keptAnswer(lookups, { lineId: id, about: "profile", maxAgeMs: OWN_MAX_AGE_MS, ask });
  });

  api.on(changeProfile, async ({ caller, params: { id }, body: { picture, ...fields } }) => {
    const jpeg = jpegOf(picture);
    const { contacts } = await lines.connection(caller.account.id, id);
    try {
      await contacts.changeProfile({ ...fields, ...(jpeg === undefined ? {} : { picture: jpeg }) });
    } finally {
      // If the network refuses a field, those before it have been changed.
      lookups.forget(id, "profile");
    }
    return ok({ data: bothNames(await contacts.profile()) });
  });
}

/** Adds `picture`, the name used to change it, beside `pictureUrl`, the name that contacts have. */
function bothNames<T extends { pictureUrl: string | null }>(profile: T): T & { picture: string | null } {
  return { ...profile, picture: profile.pictureUrl };
}
