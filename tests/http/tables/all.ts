/** The tables, by name; `session` is linked and connected when one begins, and the last one ends it. */
import type { Case } from "../../support/api_table.ts";
import { accountCases, eventCases, messageCases, webhookCases } from "./records.ts";
import { keyCases, routingCases } from "./routing.ts";
import { answerCases } from "./answers.ts";
import { kindCases } from "./kinds.ts";
import { chatCases } from "./chats.ts";
import { groupCases } from "./groups.ts";
import { bulkCases, documentCases, fileCases, textCases } from "./sends.ts";
import { sessionCases } from "./sessions.ts";

export const TABLES: Readonly<Record<string, readonly Case[]>> = {
  keys: keyCases,
  routing: [{ name: "a session is listed", ask: () => ["GET", "/v1/sessions"], status: 200 }, ...routingCases],
  text: textCases,
  kinds: kindCases,
  answers: answerCases,
  documents: documentCases,
  files: fileCases,
  bulk: bulkCases,
  messages: messageCases,
  webhooks: webhookCases,
  events: eventCases,
  account: accountCases,
  groups: groupCases,
  chats: chatCases,
  sessions: sessionCases,
};
