/** Calls `/cloud` of a stage's gateway as a client of the official API does. */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import { userIdOf } from "../../src/cloud/user_id.ts";
import type { Stage } from "./stage.ts";

export interface CloudAnswer {
  status: number;
  body: Json;
  headers: Headers;
}

export type CloudClient = ReturnType<typeof cloudClient>;

/** Returns the client of one line; `phone` is the line's id in paths. */
export function cloudClient(stage: Stage, phone: string, key = stage.apiKey) {
  const origin = new URL(stage.gateway.baseUrl).origin;

  async function ask(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<CloudAnswer> {
    const response = await fetch(`${origin}/cloud${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, ...headers },
      ...(body === undefined
        ? {}
        : { body: typeof body === "string" || body instanceof FormData ? body : JSON.stringify(body) }),
    });
    return { status: response.status, body: await response.json() as Json, headers: response.headers };
  }

  return {
    ask,
    /** Sends the message to a number; resolves to its id. */
    async send(to: string, message: Json): Promise<string> {
      const base = { messaging_product: "whatsapp", recipient_type: "individual", to: `+${to}` };
      const { status, body } = await ask("POST", `/v21.0/${phone}/messages`, { ...base, ...message });
      assert.equal(status, 200, JSON.stringify([message, body]));
      assert.deepEqual(body.contacts, [{ input: `+${to}`, wa_id: to, user_id: userIdOf(to) }]);
      assert.equal(body.messages[0].message_status, "accepted");
      return body.messages[0].id as string;
    },
    /** Uploads a file; resolves to its media id. */
    async upload(content: Uint8Array<ArrayBuffer>, name: string, type: string): Promise<string> {
      const { status, body } = await ask("POST", `/v21.0/${phone}/media`, uploadForm(content, name, type));
      assert.equal(status, 200, JSON.stringify(body));
      assert.match(body.id, /^\d+$/);
      return body.id;
    },
    /** Downloads from the url of a media id. */
    download: (url: string, headers: Record<string, string> = { authorization: `Bearer ${key}` }) =>
      fetch(url, { headers }),
  };
}

export function uploadForm(content: Uint8Array<ArrayBuffer>, name: string, type: string): FormData {
  const form = new FormData();
  form.set("messaging_product", "whatsapp");
  form.set("type", type);
  form.set("file", new Blob([content], { type }), name);
  return form;
}
