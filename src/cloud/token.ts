/** `GET /debug_token`: what a key of the account may do. */
import { type Caller, SCOPES } from "../account/account.ts";
import type { Services } from "../http/api/services.ts";
import type { OfAccount } from "./endpoint.ts";
import type { Fields } from "./fields.ts";

export function debugToken({ callers, keys }: Services): OfAccount {
  return {
    "GET debug_token": {
      scope: null,
      async handle({ caller, query }) {
        const token = query("input_token");
        const told = token === undefined ? caller : await callers.authenticate(token) ?? await keys.authenticate(token);
        // Another account's key is told from none by nobody.
        if (told?.account.id !== caller.account.id) return { data: NOT_VALID };
        return { data: describe(told) };
      },
    },
  };
}

const NOT_VALID = { is_valid: false, scopes: [], error: { code: 190, message: "Invalid OAuth access token" } };

function describe({ account, key }: Caller): Fields {
  const scopes = key?.scopes ?? SCOPES;
  return {
    app_id: account.id,
    application: account.name,
    type: "SYSTEM_USER",
    is_valid: true,
    expires_at: 0,
    data_access_expires_at: 0,
    user_id: key?.id ?? account.id,
    scopes: [
      ...(scopes.includes("send") || scopes.includes("propose") ? ["whatsapp_business_messaging"] : []),
      ...(scopes.includes("manage") ? ["whatsapp_business_management"] : []),
    ],
  };
}
