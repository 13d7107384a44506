/** Every resource of the API: what it declares, for the reference, and what serves it. */
import type { Api, Route } from "../api/route.ts";
import type { Services } from "../api/services.ts";
import { accountRoutes, addAccount } from "./account.ts";
import { addBulks, bulkRoutes } from "./bulks.ts";
import { addContacts, contactRoutes } from "./contacts.ts";
import { addChats, chatRoutes } from "./chats.ts";
import { addData, dataRoutes } from "./data.ts";
import { addDeliveries, deliveryRoutes } from "./deliveries.ts";
import { addEvents, eventRoutes } from "./events.ts";
import { addGroupMembers, groupMemberRoutes } from "./group_members.ts";
import { addGroups, groupRoutes } from "./groups.ts";
import { addHealth, healthRoutes } from "./health.ts";
import { addKeys, keyRoutes } from "./keys.ts";
import { addMedia, mediaRoutes } from "./media.ts";
import { addMessages, messageRoutes } from "./messages.ts";
import { addOptOuts, optOutRoutes } from "./opt_outs.ts";
import { addQueue, queueRoutes } from "./queue.ts";
import { addSends, sendRoutes } from "./sends/sends.ts";
import { addPasskey, passkeyRoutes } from "./passkey.ts";
import { addSessionHealth, sessionHealthRoutes } from "./session_health.ts";
import { addSessions, sessionRoutes } from "./sessions.ts";
import { addWebhooks, webhookRoutes } from "./webhooks.ts";

interface Resource {
  routes: readonly unknown[];
  add(api: Api, services: Services): void;
}

/** In the order of the reference. */
const RESOURCES: readonly Resource[] = [
  { routes: sessionRoutes, add: addSessions },
  { routes: passkeyRoutes, add: addPasskey },
  { routes: sessionHealthRoutes, add: addSessionHealth },
  { routes: contactRoutes, add: addContacts },
  { routes: groupRoutes, add: addGroups },
  { routes: groupMemberRoutes, add: addGroupMembers },
  { routes: chatRoutes, add: addChats },
  { routes: queueRoutes, add: addQueue },
  { routes: sendRoutes, add: addSends },
  { routes: messageRoutes, add: addMessages },
  { routes: bulkRoutes, add: addBulks },
  { routes: webhookRoutes, add: addWebhooks },
  { routes: deliveryRoutes, add: addDeliveries },
  { routes: eventRoutes, add: addEvents },
  { routes: mediaRoutes, add: addMedia },
  { routes: accountRoutes, add: addAccount },
  { routes: keyRoutes, add: addKeys },
  { routes: optOutRoutes, add: addOptOuts },
  { routes: dataRoutes, add: addData },
  { routes: healthRoutes, add: addHealth },
];

/** Every route that the gateway serves to its clients. */
export const ROUTES = RESOURCES.flatMap(({ routes }) => routes) as readonly Route[];

export function addResources(api: Api, services: Services): void {
  for (const { add } of RESOURCES) add(api, services);
}
