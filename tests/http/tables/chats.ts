/** Requests for the chats of a session, and what they answer. */
import { type Case, nobodys, problem, wrong } from "../../support/api_table.ts";

/** Nobody has written to it, or from it. */
const SILENT = "34600999001";

const REFUSED: readonly [query: string, field: string][] = [
  ["chats?after=nothing", "after"],
  ["chats?limit=101", "limit"],
  ["chats?unread=yes", "unread"],
  ["chats?wrote=yes", "wrote"],
  ["contacts?after=%00", "after"],
  [`chats/${SILENT}/messages?limit=0`, "limit"],
];

export const chatCases: readonly Case[] = [
  ...["chats", "chats?unread=true", "chats?wrote=true", "chats?q=nobody&limit=1", "contacts", "contacts?q=346"].map((
    path,
  ): Case => ({
    name: `${path} is a list with the way to its next page`,
    ask: ({ session }) => ["GET", `/v1/sessions/${session}/${path}`],
    status: 200,
    contains: [/^\{"data":\[/, /"next":(null|"[^"]+")\}$/],
    lacks: ["accountId"],
  })),
  ...[`chats/${SILENT}`, `chats/${SILENT}/messages`, `chats/${SILENT}@lid/messages`].map((path): Case => ({
    name: `${path}, in which nothing was said, is not found`,
    ask: ({ session }) => ["GET", `/v1/sessions/${session}/${path}`],
    status: 404,
    contains: problem("not_found"),
  })),
  ...["chats", `chats/${SILENT}`, `chats/${SILENT}/messages`, "contacts"].map((path): Case => ({
    name: `${path} of nobody's session is not found`,
    ask: () => ["GET", `/v1/sessions/${nobodys("ses")}/${path}`],
    status: 404,
    contains: problem("not_found"),
  })),
  ...REFUSED.map(([path, field]): Case => ({
    name: `${path} is refused`,
    ask: ({ session }) => ["GET", `/v1/sessions/${session}/${path}`],
    status: 400,
    contains: wrong(field),
  })),
];
