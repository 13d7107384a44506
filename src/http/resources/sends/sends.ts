/**
 * Sending (spec, "Sending messages"). A kind whose body is JSON is one row of `KINDS`; a file that comes with the request
 * (`uploads.ts`) and many messages at once (`bulk.ts`) are read in ways of their own.
 */
import { z } from "@hono/zod-openapi";
import type { OutgoingContent } from "../../../message/content.ts";
import { text } from "../../../message/kinds/text.ts";
import { type Api, type Route, route } from "../../api/route.ts";
import { Recipient } from "../../api/schemas.ts";
import type { Services } from "../../api/services.ts";
import { addBulk, sendBulk } from "./bulk.ts";
import { sessionId, single, ttl } from "./fields.ts";
import { acknowledged, makeSender, type Sender, type SendOptions } from "./sender.ts";
import { addUploads, uploadRoutes } from "./uploads.ts";

const KINDS: readonly Kind[] = [
  kind({
    path: "/v1/messages/send/text",
    operationId: "sendText",
    summary: "Send a text",
    body: z.strictObject({ sessionId, to: Recipient, ...text.fields, ttl }).openapi(
      "TextMessage",
    ),
    contentOf: ({ text }) => ({ kind: "text", text }),
  }),
];

export const sendRoutes = [...KINDS.map(({ route }) => route), ...uploadRoutes, sendBulk];

export function addSends(api: Api, services: Services): void {
  const sender = makeSender(services);
  for (const { add } of KINDS) add(api, sender);
  addUploads(api, sender, services);
  addBulk(api, sender);
}

interface Kind {
  route: Route;
  add(api: Api, sender: Sender): void;
}

interface KindOptions<Body> extends Pick<Route, "path" | "operationId" | "summary" | "description" | "maxBytes"> {
  body: z.ZodType<Body>;
  contentOf(body: Body): OutgoingContent;
}

/** One message whose body is JSON. */
function kind<Body extends SendOptions & { to: string }>({ contentOf, ...declared }: KindOptions<Body>): Kind {
  const declaredRoute = route({ ...single, ...declared });
  return {
    route: declaredRoute,
    add(api, sender) {
      api.on(declaredRoute, async ({ caller, body, repeat }) => {
        const { sessionId, to, ttl } = body;
        return acknowledged(
          await sender.send(caller, { sessionId, ttl, items: [{ to, content: contentOf(body) }], repeat }),
        );
      });
    },
  };
}
