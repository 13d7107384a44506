/** All resources of the API: their routes, for the reference, and their handlers. */
import type { Api, Route } from "../api/route.ts";
import type { Services } from "../api/services.ts";
import { accountResource } from "./account.ts";
import { bulkResource } from "./bulks.ts";
import { contactResource } from "./contacts.ts";
import { chatResource } from "./chats.ts";
import { chatHistoryResource } from "./chat_history.ts";
import { dataResource } from "./data.ts";
import { deliveryResource } from "./deliveries.ts";
import { eventResource } from "./events.ts";
import { groupMemberResource } from "./group_members.ts";
import { groupResource } from "./groups.ts";
import { healthResource } from "./health.ts";
import { keyResource } from "./keys.ts";
import { mediaResource } from "./media.ts";
import { messageResource } from "./messages.ts";
import { optOutResource } from "./opt_outs.ts";
import { queueResource } from "./queue.ts";
import { sendResource } from "./sends/sends.ts";
import { passkeyResource } from "./passkey.ts";
import { sessionHealthResource } from "./session_health.ts";
import { sessionResource } from "./sessions.ts";
import { templateResource } from "./templates.ts";
import { verificationResource } from "./verifications.ts";
import { webhookResource } from "./webhooks.ts";

interface Resource {
  routes: readonly Route[];
  add(api: Api, services: Services): void;
}

/** In the order of the reference. */
const RESOURCES: readonly Resource[] = [
  sessionResource,
  passkeyResource,
  sessionHealthResource,
  contactResource,
  groupResource,
  groupMemberResource,
  chatHistoryResource,
  chatResource,
  queueResource,
  sendResource,
  messageResource,
  bulkResource,
  templateResource,
  verificationResource,
  webhookResource,
  deliveryResource,
  eventResource,
  mediaResource,
  accountResource,
  keyResource,
  optOutResource,
  dataResource,
  healthResource,
];

/** Every route that the gateway offers to clients. */
export const ROUTES = RESOURCES.flatMap(({ routes }) => routes);

export function addResources(api: Api, services: Services): void {
  for (const { add } of RESOURCES) add(api, services);
}
