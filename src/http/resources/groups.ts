/** Groups of a line (spec, "Sessions"): listing, creating, reading, changing and leaving them. */
import { z } from "@hono/zod-openapi";
import type { Lookups } from "../../line/lookups.ts";
import type {
  Group as PortGroup,
  MemberResult as PortMemberResult,
  WholeGroup as PortWholeGroup,
} from "../../whatsapp/chats.ts";
import { type Api, created, routesOf } from "../api/route.ts";
import { data, GroupJid, isoTime, Person, shownAs, Timestamp } from "../api/schemas.ts";
import type { Services } from "../api/services.ts";
import { changes, Jpeg, jpegOf, kept, makeKept, ofGroup, ofSession } from "./network_queries.ts";
import { MessageReference } from "./sends/fields.ts";

/** How long answers of the network are cached. Changes of groups invalidate them. */
const MAX_AGE_MS = 60_000;
/** The network's own limit, the line included. */
const MOST_PARTICIPANTS = 1_023;
/** The lifetimes of messages that the apps offer; 0: unlimited. */
const EPHEMERAL_SECONDS = [0, 86_400, 604_800, 7_776_000] as const;

const Group = z.object({
  id: z.string().openapi({ description: "JID of the group.", example: "120363025246125486@g.us" }),
  name: z.string().openapi({ example: "Family" }),
  description: z.string(),
  size: z.int().openapi({ description: "Number of participants.", example: 12 }),
  isAdmin: z.boolean().describe("Whether the session's number is an admin."),
  createdAt: Timestamp,
  community: z.object({
    id: z.string().describe("JID of the community."),
    isAnnouncement: z.boolean().describe("Whether its admins write to all of it here."),
  }).openapi("GroupCommunity").optional().describe("Absent outside of communities."),
}).openapi("Group");

const Participant = z.object({
  id: z.string().openapi({ description: "JID of the participant in this group.", example: "123456789012345@lid" }),
  number: z.string().nullable().describe("Phone number, digits only; null if WhatsApp does not reveal it."),
  username: z.string().optional().describe("Without an @; left out if WhatsApp told none."),
  isAdmin: z.boolean(),
}).openapi("GroupParticipant");

const WholeGroup = z.object({
  ...Group.shape,
  announce: z.boolean().describe("Whether only admins can send messages."),
  locked: z.boolean().describe("Whether only admins can change the group's name, description, picture and settings."),
  ephemeral: z.int().describe("Seconds after which messages disappear; 0 for never."),
  participants: z.array(Participant),
}).openapi("WholeGroup");

/** A list of people without duplicates. */
export function people({ least, most }: { least: number; most: number }) {
  return z.array(Person).min(least).max(most).refine(
    (all) => new Set(all).size === all.length,
    "must not name anyone twice",
  )
    .openapi({ uniqueItems: true });
}

/** The result for one of several participants. */
export const MemberResult = z.object({
  number: z.string().describe("The number as given in the request."),
  status: z.enum(["ok", "failed"]),
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
}).openapi("ParticipantResult");

const CreatedGroup = z.object({ ...WholeGroup.shape, results: z.array(MemberResult) }).openapi("CreatedGroup");

const name = z.string().trim().min(1).max(100).openapi({ example: "Family" });

const routes = routesOf("Groups", {
  listGroups: {
    at: "GET /v1/sessions/{id}/groups",
    ...ofSession,
    tag: "Sessions",
    summary: "List groups",
    description: "The session must be `connected`. Answers are cached for one minute, or until a group changes.",
    ...kept("The groups", z.array(Group)),
  },

  createGroup: {
    at: "POST /v1/sessions/{id}/groups",
    ...ofSession,
    summary: "Create a group",
    description: "The group is created even if some participants cannot be added; `results` has the outcome for " +
      "each. After a 504 it may have been created too: look for it before you repeat the request.",
    body: z.strictObject({ name, participants: people({ least: 0, most: MOST_PARTICIPANTS }) }).openapi(
      "GroupCreation",
    ),
    answers: { 201: data("The group", CreatedGroup) },
  },

  getGroup: {
    at: "GET /v1/sessions/{id}/groups/{gid}",
    ...ofGroup,
    summary: "Get a group",
    description: "Answers are cached for one minute, or until the group changes.",
    ...kept("The group", WholeGroup),
  },

  changeGroup: {
    at: "PATCH /v1/sessions/{id}/groups/{gid}",
    ...ofGroup,
    summary: "Update a group",
    description: "Fields are changed one at a time, in the order shown here. If WhatsApp refuses one, the changes " +
      "before it remain.",
    body: changes("GroupChange", {
      name: name.nullish(),
      description: z.string().max(2_048).nullish(),
      announce: z.boolean().nullish(),
      locked: z.boolean().nullish(),
      ephemeral: z.literal(EPHEMERAL_SECONDS).nullish().openapi({
        type: ["integer", "null"],
        enum: [...EPHEMERAL_SECONDS, null],
      }),
      picture: Jpeg.nullish(),
    }),
    maxBytes: 2 * 1024 * 1024,
    answers: { 200: data("The updated group", WholeGroup) },
  },

  leaveGroup: {
    at: "DELETE /v1/sessions/{id}/groups/{gid}",
    ...ofGroup,
    summary: "Leave a group",
    answers: { 200: data("The session has left the group", z.object({ id: GroupJid }).openapi("LeftGroup")) },
  },

  deleteGroupMessage: {
    at: "DELETE /v1/sessions/{id}/groups/{gid}/messages/{messageId}",
    ...ofGroup,
    summary: "Delete a group message for everyone",
    description: "Admins can delete messages that others sent within the last 30 days; `messageId` is the one from " +
      "the event. The session's own messages can also be deleted by their `msg_…` id, as with `POST " +
      "/v1/messages/{id}/revoke`. The response is sent once WhatsApp has acknowledged the deletion.",
    params: ofGroup.params.extend({ messageId: MessageReference }),
    answers: {
      200: data(
        "The message is deleted",
        z.object({ group: GroupJid, messageId: z.string() }).openapi("DeletedGroupMessage"),
      ),
    },
    problems: [...ofGroup.problems, "not_revocable"],
  },
});

export const groupResource = { routes: Object.values(routes), add: addGroups };

function addGroups(api: Api, services: Services): void {
  const { lines, lookups, amendments, references } = services;
  const keeps = makeKept(api, services, MAX_AGE_MS);
  keeps(routes.listGroups, () => "groups", async ({ groups }) => (await groups.list()).map(groupOf));
  keeps(
    routes.getGroup,
    ({ gid }) => `group ${gid}`,
    async ({ groups }, { gid }) => wholeGroupOf(await groups.get(gid)),
  );

  api.on(routes.createGroup, async ({ accountId, params: { id }, body }) => {
    const { groups } = await lines.connection(accountId, id);
    const { group, results } = await groups.create(body.name, body.participants);
    lookups.forget(id, "groups");
    return created({ data: { ...wholeGroupOf(group), results: results.map(memberResultOf) } });
  });

  api.answer(routes.changeGroup, async ({ accountId, params: { id, gid }, body: { picture, ...settings } }) => {
    const jpeg = jpegOf(picture);
    const { groups } = await lines.connection(accountId, id);
    try {
      await groups.change(gid, settings);
      if (jpeg !== undefined) await groups.setPicture(gid, jpeg);
    } finally {
      forgetGroup(lookups, id, gid);
    }
    return wholeGroupOf(await groups.get(gid));
  });

  api.answer(routes.leaveGroup, async ({ accountId, params: { id, gid } }) => {
    const { groups } = await lines.connection(accountId, id);
    await groups.leave(gid);
    forgetGroup(lookups, id, gid);
    return { id: gid };
  });

  api.answer(routes.deleteGroupMessage, async ({ accountId, params: { id, gid, messageId } }) => {
    await lines.connection(accountId, id);
    const referred = await references.find(accountId, messageId, { sessionId: id });
    await amendments.revokeInGroup({ lineId: id, gid }, referred);
    return { group: gid, messageId };
  });
}

/** Invalidates the cached answers about the group, and the cached list of groups. */
export function forgetGroup(lookups: Lookups, lineId: string, gid: string): void {
  lookups.forget(lineId, "groups");
  lookups.forget(lineId, `group ${gid}`);
}

function groupOf(group: PortGroup): z.infer<typeof Group> {
  return shownAs(Group, group, { createdAt: isoTime(group.createdAt) });
}

function wholeGroupOf(group: PortWholeGroup): z.infer<typeof WholeGroup> {
  return shownAs(WholeGroup, group, { createdAt: isoTime(group.createdAt) });
}

export function memberResultOf({ number, error }: PortMemberResult): z.infer<typeof MemberResult> {
  return { number, status: error === null ? "ok" : "failed", error };
}
