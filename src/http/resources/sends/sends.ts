/**
 * Sending (spec, "Sending messages"). What is asked for in JSON is a row of `kinds.ts`; a file that comes with the
 * request (`uploads.ts`) and many messages at once (`bulk.ts`) are read in ways of their own.
 */
import { z } from "@hono/zod-openapi";
import { type Api, route } from "../../api/route.ts";
import { Recipient } from "../../api/schemas.ts";
import type { Services } from "../../api/services.ts";
import { addBulk, sendBulk } from "./bulk.ts";
import { manner, options, sessionId, single } from "./fields.ts";
import { KIND_REQUESTS } from "./kinds.ts";
import { addReferring, referringRoutes } from "./referring.ts";
import { acknowledged, makeSender } from "./sender.ts";
import { addStatusPosts, sendStatus } from "./status_posts.ts";
import { addUploads, uploadRoutes } from "./uploads.ts";

const KIND_SENDS = KIND_REQUESTS.map(({ kind, summary, fields, contentOf }) => {
  const name = kind[0]!.toUpperCase() + kind.slice(1);
  const declared = route({
    ...single,
    path: `/v1/messages/send/${kind}`,
    operationId: `send${name}`,
    summary,
    body: z.strictObject({ sessionId, to: Recipient, ...fields, ...manner, ...options }).openapi(`${name}Message`),
  });
  return { route: declared, contentOf };
});

export const sendRoutes = [
  ...KIND_SENDS.map(({ route }) => route),
  ...uploadRoutes,
  ...referringRoutes,
  sendStatus,
  sendBulk,
];

export function addSends(api: Api, services: Services): void {
  const sender = makeSender(services);
  for (const { route, contentOf } of KIND_SENDS) {
    api.on(route, async ({ caller, body, repeat }) => {
      const items = [{ to: body.to, content: contentOf(body), manner: body }];
      return acknowledged(await sender.send(caller, body, { items, repeat }));
    });
  }
  addUploads(api, sender, services);
  addReferring(api, sender, services);
  addStatusPosts(api, sender, services);
  addBulk(api, sender);
}
