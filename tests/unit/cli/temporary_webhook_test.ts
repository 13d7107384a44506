import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { openTemporaryWebhook, type WebhookRequest } from "../../../src/cli/temporary_webhook.ts";

Deno.test("a request that comes before the gateway has told the secret is checked with it all the same", async () => {
  const secret = "whsec_c2VjcmV0";
  const body = '{"event":"message.sent"}';
  const received = Promise.withResolvers<WebhookRequest>();
  const webhook = await openTemporaryWebhook({
    api: {
      async call(method, _path, asked) {
        if (method === "DELETE") return {};
        const signature = createHmac("sha256", secret).update(body).digest("hex");
        const { url } = asked as { url: string };
        const response = await fetch(url, { method: "POST", body, headers: { "x-webhook-signature": signature } });
        await response.body?.cancel();
        return { data: { id: "whk_1", secret } };
      },
    },
    events: null,
    sessionId: null,
    port: 0,
    forward: null,
    received: received.resolve,
  });
  const request = await received.promise;
  await webhook.end();
  assert.deepEqual([request.body, request.signature], [body, true]);
});
