/** Members of a group: participants, the invite link, requests to join. */
import { z } from "@hono/zod-openapi";
import { type Api, routesOf } from "../api/route.ts";
import { data, GroupJid } from "../api/schemas.ts";
import type { Services } from "../api/services.ts";
import { forgetGroup, MemberResult, memberResultOf, people } from "./groups.ts";
import { kept, makeKept, ofGroup, ofSession } from "./network_queries.ts";

const MAX_AGE_MS = 15_000;
const aboutInvite = ({ gid }: { gid: string }) => `group ${gid} invite`;
/** Most participants in one request to the network. */
const AT_ONCE = 1_023;

const Invite = z.object({
  invite: z.string().openapi({ example: "https://chat.whatsapp.com/AbCdEfGhIjKlMnOpQrStUv" }),
}).openapi("InviteLink");
const some = people({ least: 1, most: AT_ONCE });
const results = data("The result for each participant", z.array(MemberResult));

const routes = routesOf("Groups", {
  changeParticipants: {
    at: "POST /v1/sessions/{id}/groups/{gid}/participants",
    ...ofGroup,
    summary: "Add, remove, promote or demote participants",
    body: z.strictObject({ action: z.enum(["add", "remove", "promote", "demote"]), participants: some })
      .openapi("ParticipantsChange"),
    answers: { 200: results },
  },

  getInvite: {
    at: "GET /v1/sessions/{id}/groups/{gid}/invite",
    ...ofGroup,
    summary: "Get the invite link",
    ...kept("The invite link", Invite),
  },

  revokeInvite: {
    at: "DELETE /v1/sessions/{id}/groups/{gid}/invite",
    ...ofGroup,
    summary: "Replace the invite link",
    answers: { 200: data("The new invite link; the old one no longer works", Invite) },
  },

  joinGroup: {
    at: "POST /v1/sessions/{id}/groups/join",
    ...ofSession,
    summary: "Join a group",
    body: z.strictObject({
      invite: z.string().regex(
        /^(https:\/\/chat\.whatsapp\.com\/)?[A-Za-z0-9_-]{10,40}(\?[^\s]{0,200})?$/,
        "must be a link https://chat.whatsapp.com/… or its code",
      ).openapi({ example: "https://chat.whatsapp.com/AbCdEfGhIjKlMnOpQrStUv" }),
    }).openapi("Invitation"),
    answers: {
      200: data(
        "`joined`, or `asked` if an admin has to approve it",
        z.object({ id: GroupJid, status: z.enum(["joined", "asked"]) }).openapi("JoinedGroup"),
      ),
    },
  },

  listRequests: {
    at: "GET /v1/sessions/{id}/groups/{gid}/requests",
    ...ofGroup,
    summary: "List join requests",
    ...kept(
      "The pending requests",
      z.array(z.object({ id: z.string(), number: z.string().nullable() }).openapi("JoinRequest")),
    ),
  },

  answerRequests: {
    at: "POST /v1/sessions/{id}/groups/{gid}/requests",
    ...ofGroup,
    summary: "Approve or reject join requests",
    body: z.strictObject({ action: z.enum(["approve", "reject"]), participants: some }).openapi("RequestsAnswer"),
    answers: { 200: results },
  },
});

export const groupMemberResource = { routes: Object.values(routes), add: addGroupMembers };

function addGroupMembers(api: Api, services: Services): void {
  const { lines, lookups } = services;
  const keeps = makeKept(api, services, MAX_AGE_MS);
  keeps(routes.getInvite, aboutInvite, async ({ groups }, { gid }) => ({ invite: await groups.invite(gid) }));
  keeps(routes.listRequests, ({ gid }) => `group ${gid} requests`, ({ groups }, { gid }) => groups.requests(gid));

  api.answer(routes.changeParticipants, async ({ accountId, params: { id, gid }, body: { action, participants } }) => {
    const { groups } = await lines.connection(accountId, id);
    const results = await groups.changeMembers(gid, action, participants);
    forgetGroup(lookups, id, gid);
    return results.map(memberResultOf);
  });

  api.answer(routes.revokeInvite, async ({ accountId, params: { id, gid } }) => {
    const { groups } = await lines.connection(accountId, id);
    const invite = await groups.renewInvite(gid);
    lookups.forget(id, aboutInvite({ gid }));
    return { invite };
  });

  api.answer(routes.joinGroup, async ({ accountId, params: { id }, body: { invite } }) => {
    const { groups } = await lines.connection(accountId, id);
    const joined = await groups.join(invite);
    forgetGroup(lookups, id, joined.id);
    return joined;
  });

  api.answer(routes.answerRequests, async ({ accountId, params: { id, gid }, body: { action, participants } }) => {
    const { groups } = await lines.connection(accountId, id);
    const results = await groups.answerRequests(gid, action, participants);
    forgetGroup(lookups, id, gid);
    return results.map(memberResultOf);
  });
}
