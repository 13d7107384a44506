/** Requests about groups, chats and contacts of a session, and what they answer: what is refused, above all. */
import { type Case, nobodys, problem, wrong } from "../../support/api_table.ts";

const GROUP = "120363999999999999@g.us";
const NUMBER = "4917099999999";

type Row = [name: string, method: string, path: string, json: unknown, contains: readonly (string | RegExp)[]];

/** Each is a 400 that says where and why. */
const REFUSED: readonly Row[] = [
  ["a group without a name", "POST", "groups", { participants: [] }, wrong("name", /is required/)],
  ["a group with a name of blanks", "POST", "groups", { name: " ", participants: [] }, wrong("name")],
  ["a group whose name is too long", "POST", "groups", { name: "x".repeat(101), participants: [] }, wrong("name")],
  ["a group without a list of participants", "POST", "groups", { name: "x" }, wrong("participants", /is required/)],
  [
    "a participant without a country code",
    "POST",
    "groups",
    { name: "x", participants: ["0600111222"] },
    wrong("participants.0", /country code/),
  ],
  ["a group in a group", "POST", "groups", { name: "x", participants: [GROUP] }, wrong("participants.0")],
  [
    "a participant named twice",
    "POST",
    "groups",
    { name: "x", participants: [NUMBER, NUMBER] },
    wrong("participants", /twice/),
  ],
  [
    "more participants than a group takes",
    "POST",
    "groups",
    { name: "x", participants: Array.from({ length: 1_024 }, (_, i) => String(4_917_000_000_000 + i)) },
    wrong("participants"),
  ],
  ["a field that no group has", "POST", "groups", { name: "x", participants: [], topic: "y" }, wrong("topic", /known/)],
  ["a change of nothing", "PATCH", `groups/${GROUP}`, {}, [/holds nothing to change/]],
  ["messages that disappear after an hour", "PATCH", `groups/${GROUP}`, { ephemeral: 3_600 }, wrong("ephemeral")],
  ["a group's picture that is no base64", "PATCH", `groups/${GROUP}`, { picture: "%" }, wrong("picture", /base64/)],
  ["a group's picture that is no JPEG", "PATCH", `groups/${GROUP}`, { picture: "AAAA" }, wrong("picture", /JPEG/)],
  [
    "an action that there is not",
    "POST",
    `groups/${GROUP}/participants`,
    { action: "ban", participants: [NUMBER] },
    wrong("action"),
  ],
  [
    "nobody to add",
    "POST",
    `groups/${GROUP}/participants`,
    { action: "add", participants: [] },
    wrong("participants"),
  ],
  ["an invitation that is none", "POST", "groups/join", { invite: "https://a.example/x" }, wrong("invite", /link/)],
  ["an answer to nobody's request", "POST", `groups/${GROUP}/requests`, { action: "approve" }, wrong("participants")],
  ["a state that there is not", "POST", `chats/${NUMBER}/presence`, { state: "sleeping" }, wrong("state")],
  ["a presence without a state", "POST", `chats/${NUMBER}/presence`, {}, wrong("state")],
  ["a field that reading does not have", "POST", `chats/${NUMBER}/read`, { id: "x" }, wrong("id", /known/)],
  ["a profile without a change", "PATCH", "profile", {}, [/holds nothing to change/]],
  ["a profile whose name is too long", "PATCH", "profile", { name: "x".repeat(26) }, wrong("name")],
  ["a profile whose about is too long", "PATCH", "profile", { about: "x".repeat(140) }, wrong("about")],
  ["a profile's picture that is no JPEG", "PATCH", "profile", { picture: "AAAA" }, wrong("picture", /JPEG/)],
];

/** Each is a 404, whatever the method. */
const UNKNOWN: readonly [method: string, path: string, json?: unknown][] = [
  ["GET", `groups/${GROUP}`],
  ["DELETE", `groups/${GROUP}`],
  ["PATCH", `groups/${GROUP}`, { name: "x" }],
  ["PATCH", `groups/${GROUP}`, { ephemeral: 604_800 }],
  ["GET", "groups/family"],
  ["GET", `groups/${GROUP}/invite`],
  ["DELETE", `groups/${GROUP}/messages/3EB0`],
  ["GET", `groups/${GROUP}/requests`],
  ["DELETE", `groups/${GROUP}/invite`],
  ["GET", "contacts/family"],
  ["PUT", "contacts/family/block"],
  ["DELETE", "contacts/family/block"],
  ["POST", "chats/family/read", {}],
  ["POST", `chats/${NUMBER}/read`, { messageId: "3EB0" }],
];

export const groupCases: readonly Case[] = [
  ...REFUSED.map(([name, method, path, json, contains]): Case => ({
    name: `${name} is refused`,
    ask: ({ session }) => [method, `/v1/sessions/${session}/${path}`, { json }],
    status: 400,
    contains,
  })),
  ...UNKNOWN.map(([method, path, json]): Case => ({
    name: `${method} ${path} is not found`,
    ask: ({ session }) => [method, `/v1/sessions/${session}/${path}`, { json }],
    status: 404,
    contains: problem("not_found"),
  })),
  ...["groups", `groups/${GROUP}`, `contacts/${NUMBER}`, "blocklist", "profile"].map((path): Case => ({
    name: `${path.split("/")[0]} of nobody's session are not found`,
    ask: () => ["GET", `/v1/sessions/${nobodys("ses")}/${path}`],
    status: 404,
    contains: problem("not_found"),
  })),
  ...[undefined, {}, null].map((json): Case => ({
    name: `reading a chat needs no body: ${JSON.stringify(json)}`,
    ask: ({ session }) => ["POST", `/v1/sessions/${session}/chats/${NUMBER}/read`, { json }],
    status: 200,
    contains: ['"messageIds":[]'],
  })),
  {
    name: "an answer of the network says how old it is",
    ask: ({ session }) => ["GET", `/v1/sessions/${session}/groups`],
    status: 200,
    headers: { age: /^\d+$/ },
  },
  {
    name: "a number that is on no network has a card that says so",
    ask: ({ session }) => ["GET", `/v1/sessions/${session}/contacts/${NUMBER}`],
    status: 200,
    contains: ['"exists":false', '"name":null', '"business":null'],
    headers: { age: /^\d+$/ },
  },
];
