/** The tools: a row each, which names the API's operation that it calls. Schemas, rules and errors are the API's. */
import type { Scope } from "../account/account.ts";
import { keysOf } from "../base/typed_keys.ts";

export interface Tool {
  name: string;
  /** The `operationId`. */
  operation: string;
  scope: Extract<Scope, "read" | "send">;
  description: string;
  /** The parameters that are offered, of those that the operation has; the others would only lengthen the prompt. */
  takes: readonly string[];
  /** Of these, the ones that the tool needs although the operation does not. */
  needs?: readonly string[];
  /** Whether the answer holds what other people wrote. */
  ofOthers?: true;
  /** Whether calling it twice does no more than calling it once. */
  idempotent?: true;
}

/** By what the API calls a parameter of a path, how bodies call the same thing. */
export const ARGUMENTS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "/v1/sessions/{id}": { id: "sessionId" },
  "/v1/messages/{id}": { id: "messageId" },
};

const SEND = ["sessionId", "to", "replyTo", "tags", "sendAt"] as const;
const PAGE = ["limit", "after"] as const;

/** By the scope that a key needs to see them; the operation's own check decides. */
const BY_SCOPE: Readonly<Record<Tool["scope"], Readonly<Record<string, Omit<Tool, "name" | "scope">>>>> = {
  read: {
    list_lines: {
      operation: "listSessions",
      description: "Lists the WhatsApp lines (sessions) of the account, with their status and number.",
      takes: [],
    },
    line_health: {
      operation: "getSessionHealth",
      description: "Tells how a line is doing: since when it is connected, what waits, whether WhatsApp restricts it.",
      takes: ["sessionId"],
    },
    list_chats: {
      operation: "listChats",
      description: "Lists the chats of a line, newest first, with their last message and what is unread.",
      takes: ["sessionId", "q", "unread", ...PAGE],
      ofOthers: true,
    },
    read_chat: {
      operation: "listChatMessages",
      description: "Returns the messages of one chat, newest first.",
      takes: ["sessionId", "chat", "limit", "before"],
      ofOthers: true,
    },
    find_contact: {
      operation: "listContacts",
      description: "Finds people that a line knows, by a part of their name or number.",
      takes: ["sessionId", "q", ...PAGE],
      ofOthers: true,
    },
    check_number: {
      operation: "checkNumber",
      description: "Asks whether a number is on WhatsApp. Do not ask about many numbers: WhatsApp takes that for spam.",
      takes: ["sessionId", "number"],
    },
    message_status: {
      operation: "getMessage",
      description: "Tells what became of a message that was sent: queued, sent, delivered, read or failed, and why.",
      takes: ["messageId"],
    },
    list_queue: {
      operation: "getQueue",
      description: "Lists the messages that wait on a line, in sending order.",
      takes: ["sessionId", "limit"],
    },
    list_templates: {
      operation: "listTemplates",
      description: "Lists the account's message templates with their variables.",
      takes: [],
    },
    list_groups: {
      operation: "listGroups",
      description: "Lists the groups that a connected line is in.",
      takes: ["sessionId"],
      ofOthers: true,
    },
  },
  send: {
    send_text: {
      operation: "sendText",
      description: "Queues a text for a number or a group. The line paces its queue, so it may leave later.",
      takes: [...SEND, "text", "mentions"],
    },
    send_file: {
      operation: "sendDocument",
      description: "Queues a file, which the gateway fetches from a URL.",
      takes: [...SEND, "fileUrl", "filename", "caption"],
      needs: ["fileUrl"],
    },
    send_choices: {
      operation: "sendChoices",
      description: "Queues a text with options to choose from.",
      takes: [...SEND, "text", "footer", "options", "style"],
    },
    send_template: {
      operation: "sendTemplate",
      description: "Queues a message made from a template.",
      takes: [...SEND, "template", "language", "variables"],
    },
    schedule_text: {
      operation: "sendText",
      description: "Queues a text that leaves at a later time, at most 30 days ahead.",
      takes: [...SEND, "text", "cancelOnReply"],
      needs: ["sendAt"],
    },
    cancel_message: {
      operation: "cancelMessage",
      description: "Cancels a message that is still queued.",
      takes: ["messageId"],
      idempotent: true,
    },
    mark_read: {
      operation: "readChat",
      description: "Marks a chat as read, for the other person too.",
      takes: ["sessionId", "chat", "messageId"],
      idempotent: true,
    },
  },
};

export const TOOLS: readonly Tool[] = keysOf(BY_SCOPE).flatMap((scope) =>
  Object.entries(BY_SCOPE[scope]).map(([name, row]) => ({ name, scope, ...row }))
);
