/** The tools: a row each, which names the API's operation that it calls. Schemas, rules and errors are the API's. */
import type { Scope } from "../account/account.ts";

export interface Tool {
  name: string;
  /** The `operationId`. */
  operation: string;
  /** What a key needs to see it; the operation's own check decides. */
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

export const TOOLS: readonly Tool[] = [
  {
    name: "list_lines",
    operation: "listSessions",
    scope: "read",
    description: "Lists the WhatsApp lines (sessions) of the account, with their status and number.",
    takes: [],
  },
  {
    name: "line_health",
    operation: "getSessionHealth",
    scope: "read",
    description: "Tells how a line is doing: since when it is connected, what waits, whether WhatsApp restricts it.",
    takes: ["sessionId"],
  },
  {
    name: "list_chats",
    operation: "listChats",
    scope: "read",
    description: "Lists the chats of a line, newest first, with their last message and what is unread.",
    takes: ["sessionId", "q", "unread", ...PAGE],
    ofOthers: true,
  },
  {
    name: "read_chat",
    operation: "listChatMessages",
    scope: "read",
    description: "Returns the messages of one chat, newest first.",
    takes: ["sessionId", "chat", "limit", "before"],
    ofOthers: true,
  },
  {
    name: "find_contact",
    operation: "listContacts",
    scope: "read",
    description: "Finds people that a line knows, by a part of their name or number.",
    takes: ["sessionId", "q", ...PAGE],
    ofOthers: true,
  },
  {
    name: "check_number",
    operation: "checkNumber",
    scope: "read",
    description: "Asks whether a number is on WhatsApp. Do not ask about many numbers: WhatsApp takes that for spam.",
    takes: ["sessionId", "number"],
  },
  {
    name: "message_status",
    operation: "getMessage",
    scope: "read",
    description: "Tells what became of a message that was sent: queued, sent, delivered, read or failed, and why.",
    takes: ["messageId"],
  },
  {
    name: "list_queue",
    operation: "getQueue",
    scope: "read",
    description: "Lists the messages that wait on a line, in sending order.",
    takes: ["sessionId", "limit"],
  },
  {
    name: "list_templates",
    operation: "listTemplates",
    scope: "read",
    description: "Lists the account's message templates with their variables.",
    takes: [],
  },
  {
    name: "list_groups",
    operation: "listGroups",
    scope: "read",
    description: "Lists the groups that a connected line is in.",
    takes: ["sessionId"],
    ofOthers: true,
  },
  {
    name: "send_text",
    operation: "sendText",
    scope: "send",
    description: "Queues a text for a number or a group. The line paces its queue, so it may leave later.",
    takes: [...SEND, "text", "mentions"],
  },
  {
    name: "send_file",
    operation: "sendDocument",
    scope: "send",
    description: "Queues a file, which the gateway fetches from a URL.",
    takes: [...SEND, "fileUrl", "filename", "caption"],
    needs: ["fileUrl"],
  },
  {
    name: "send_choices",
    operation: "sendChoices",
    scope: "send",
    description: "Queues a text with options to choose from.",
    takes: [...SEND, "text", "footer", "options", "style"],
  },
  {
    name: "send_template",
    operation: "sendTemplate",
    scope: "send",
    description: "Queues a message made from a template.",
    takes: [...SEND, "template", "language", "variables"],
  },
  {
    name: "schedule_text",
    operation: "sendText",
    scope: "send",
    description: "Queues a text that leaves at a later time, at most 30 days ahead.",
    takes: [...SEND, "text", "cancelOnReply"],
    needs: ["sendAt"],
  },
  {
    name: "cancel_message",
    operation: "cancelMessage",
    scope: "send",
    description: "Cancels a message that is still queued.",
    takes: ["messageId"],
    idempotent: true,
  },
  {
    name: "mark_read",
    operation: "readChat",
    scope: "send",
    description: "Marks a chat as read, for the other person too.",
    takes: ["sessionId", "chat", "messageId"],
    idempotent: true,
  },
];
