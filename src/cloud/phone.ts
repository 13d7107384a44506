/** A phone number's endpoints beside messages and media: what it is, its profile, and whom it blocks. */
import type { Line } from "../line/line.ts";
import { type OfPhone, SUCCESS } from "./endpoint.ts";
import { CloudError, errorBody, wrongParameter } from "./errors.ts";
import { type Fields, list, selected, text } from "./fields.ts";
import { personOf, userIdOf } from "./user_id.ts";

/** Fields of a profile that a linked line does not have. */
const NOT_OF_A_LINE = ["address", "description", "email", "websites", "vertical", "profile_picture_handle"];

export const PHONE_ENDPOINTS: OfPhone = {
  "GET ": {
    scope: "read",
    handle: ({ line, query }) => Promise.resolve(selected(phoneNumberOf(line), query("fields"))),
  },
  "POST register": { scope: "manage", handle: () => Promise.resolve(SUCCESS) },
  "POST deregister": { scope: "manage", handle: () => Promise.resolve(SUCCESS) },
  "GET whatsapp_business_profile": {
    scope: null,
    async handle({ line, call, query }) {
      const { data } = await call("GET", `/v1/sessions/${line.id}/profile`);
      const { about, pictureUrl } = data as { about: string | null; pictureUrl: string | null };
      const profile = {
        messaging_product: "whatsapp",
        about: about ?? "",
        // A client demands it.
        vertical: "UNDEFINED",
        ...(pictureUrl === null ? {} : { profile_picture_url: pictureUrl }),
      };
      return { data: [selected(profile, query("fields") && `messaging_product,${query("fields")}`)] };
    },
  },
  "POST whatsapp_business_profile": {
    scope: null,
    async handle({ line, call, body }) {
      const given = await body();
      const impossible = NOT_OF_A_LINE.find((name) => given[name] !== undefined);
      if (impossible) throw wrongParameter(`${impossible} is not part of the profile of a linked number`);
      await call("PATCH", `/v1/sessions/${line.id}/profile`, { about: text(given, "about") });
      return SUCCESS;
    },
  },
  "GET block_users": {
    scope: null,
    async handle({ line, call }) {
      const { data } = await call("GET", `/v1/sessions/${line.id}/blocklist`);
      const blocked = data as { jid: string; number: string | null }[];
      return { data: blocked.map(({ jid, number }) => shownUser(number ?? jid)) };
    },
  },
  "POST block_users": blocking("PUT", "added_users"),
  "DELETE block_users": blocking("DELETE", "removed_users"),
};

function shownUser(person: string): Fields {
  return { messaging_product: "whatsapp", wa_id: person, user_id: userIdOf(person) };
}

/** Blocks or unblocks each of the users; those that fail are listed with their errors. */
function blocking(method: "PUT" | "DELETE", done: string): OfPhone[string] {
  return {
    scope: null,
    async handle({ c, line, call, body }) {
      const users = list(await body(), "block_users");
      const changed: Fields[] = [];
      const failed: Fields[] = [];
      for (const user of users) {
        const input = text(user, user.user === undefined ? "user_id" : "user");
        try {
          const path = `/v1/sessions/${line.id}/contacts/${encodeURIComponent(personOf(input) ?? input)}/block`;
          const { data } = await call(method, path);
          const { number } = data as { number: string };
          changed.push({ input, wa_id: number, user_id: userIdOf(number) });
        } catch (error) {
          if (!(error instanceof CloudError) || users.length === 1) throw error;
          failed.push({ input, errors: [errorBody(error, c.get("requestId")).error] });
        }
      }
      return {
        messaging_product: "whatsapp",
        block_users: { [done]: changed, ...(failed.length > 0 ? { failed_users: failed } : {}) },
      };
    },
  };
}

/** Returns a line as a phone number. */
export function phoneNumberOf({ id, phone, name, status }: Line): Fields {
  return {
    id: phone ?? id,
    display_phone_number: phone === null ? "" : `+${phone}`,
    verified_name: name,
    quality_rating: "UNKNOWN",
    platform_type: "CLOUD_API",
    throughput: { level: "STANDARD" },
    code_verification_status: "VERIFIED",
    name_status: "APPROVED",
    status: status === "connected" ? "CONNECTED" : "DISCONNECTED",
    account_mode: "LIVE",
    is_official_business_account: false,
  };
}
