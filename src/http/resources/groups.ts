/** Groups that a line is in (spec, "Sessions"). */
import { z } from "@hono/zod-openapi";
import { type Api, ok, route } from "../api/route.ts";
import { idParams, isoTime, Timestamp } from "../api/schemas.ts";
import type { Services } from "../api/services.ts";

const Group = z.object({
  id: z.string().openapi({ description: "Group JID", example: "120363025246125486@g.us" }),
  name: z.string().openapi({ example: "Family" }),
  description: z.string(),
  size: z.int().openapi({ description: "Number of participants", example: 12 }),
  isAdmin: z.boolean().openapi({ description: "Whether the connected number is admin" }),
  createdAt: Timestamp,
}).openapi("Group");

const base = { tag: "Sessions", access: "key", params: idParams("session", "ses") } as const;

const listGroups = route({
  ...base,
  method: "get",
  path: "/v1/sessions/{id}/groups",
  operationId: "listGroups",
  summary: "List the groups of the line",
  description: "The session must be `connected`.",
  answers: { 200: { description: "The groups", schema: z.object({ data: z.array(Group) }) } },
  problems: ["not_found", "session_not_connected", "network_error", "network_timeout"],
});

export const groupRoutes = [listGroups];

export function addGroups(api: Api, { lines }: Pick<Services, "lines">): void {
  api.on(listGroups, async ({ caller, params }) => {
    const groups = await lines.groups(caller.account.id, params.id);
    return ok({ data: groups.map((group) => ({ ...group, createdAt: isoTime(group.createdAt) })) });
  });
}
