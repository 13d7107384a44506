/**
 * What agents may do: people of an account who answer chats, and see neither keys, webhooks and lines nor other people.
 * Whatever is not listed here is refused.
 */
import { unlessMalformed } from "../../base/retry.ts";
import { ROUTES } from "../../http/resources/resources.ts";
import { Refusal } from "../refusal.ts";

/** The operations of the public API. */
const OPERATIONS: ReadonlySet<string> = new Set([
  "listSessions",
  "listChats",
  "getChat",
  "listChatMessages",
  "readChat",
  "setPresence",
  "listContacts",
  "getContact",
  "checkNumber",
  "listGroups",
  "sendText",
  "sendLocation",
  "sendContact",
  "sendPoll",
  "sendChoices",
  "sendFile",
  "sendDocument",
  "sendSticker",
  "sendVoice",
  "sendReaction",
  "sendForward",
  "sendTemplate",
  "listMessageHistory",
  "getMessage",
  "getMessageStatus",
  "listProposals",
  "approveMessage",
  "editMessage",
  "cancelMessage",
  "listTemplates",
  "getTemplate",
]);

interface Known {
  method: string;
  pattern: RegExp;
  /** The number of parameters: of several routes that match, the one with the fewest answers. */
  params: number;
  operationId: string;
}

const known: readonly Known[] = ROUTES.map(({ method, path, operationId }) => ({
  method: method.toUpperCase(),
  pattern: new RegExp(`^${path.replaceAll(".", "\\.").replaceAll(/\{\w+\}/g, "[^/]+")}$`),
  params: path.split("{").length - 1,
  operationId,
}));

/** Throws Refusal not_permitted unless agents may call this operation of the public API. */
export function assertForAgents(method: string, pathname: string): void {
  // As the router decodes it.
  const path = unlessMalformed(() => decodeURI(pathname), pathname);
  const [found] = known.filter((route) => route.method === method && route.pattern.test(path))
    .sort((a, b) => a.params - b.params);
  if (!found || !OPERATIONS.has(found.operationId)) throw onlyOwners();
}

export const onlyOwners = () => new Refusal("not_permitted", "Only owners of the account may do this.");
