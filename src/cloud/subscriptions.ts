/** `subscribed_apps`: an application's webhooks in the official shape, which are the account's of that format. */
import { type Asked, type OfAccount, SUCCESS } from "./endpoint.ts";
import { type Fields, text } from "./fields.ts";

const MAX_URL = 2_048;
const MAX_TOKEN = 512;

type Known = { id: string; url: string; format: string };

export const SUBSCRIPTIONS: OfAccount = {
  "GET subscribed_apps": {
    scope: null,
    async handle(asked) {
      const { account: { id, name } } = asked.caller;
      const of = { whatsapp_business_api_data: { id, name, link: "" } };
      return { data: (await subscribed(asked)).map(({ url }) => ({ ...of, override_callback_uri: url })) };
    },
  },
  "POST subscribed_apps": {
    scope: "manage",
    async handle(asked) {
      const given = asked.c.req.header("content-length") === "0" ? {} : await asked.body();
      if (given.override_callback_uri === undefined) return SUCCESS;
      const url = text(given, "override_callback_uri", MAX_URL);
      const verifyToken = text(given, "verify_token", MAX_TOKEN);
      const known = (await subscribed(asked)).find((webhook) => webhook.url === url);
      if (known) {
        await asked.call("PUT", `/v1/webhooks/${known.id}`, { url, active: true });
        return SUCCESS;
      }
      const { data } = await asked.call("POST", "/v1/webhooks", { url, format: "cloud", verifyToken });
      return { ...SUCCESS, secret: (data as { secret: string }).secret };
    },
  },
  "DELETE subscribed_apps": {
    scope: "manage",
    async handle(asked) {
      for (const { id } of await subscribed(asked)) await asked.call("DELETE", `/v1/webhooks/${id}`);
      return SUCCESS;
    },
  },
};

async function subscribed({ call }: Pick<Asked, "call">): Promise<Known[]> {
  const { data } = await call("GET", "/v1/webhooks") as Fields & { data: Known[] };
  return data.filter(({ format }) => format === "cloud");
}
