import type { IDataObject, INodeProperties } from "n8n-workflow";
import { type Item, keyOf } from "./operation";

const LINES = {
  displayName: "Line Name or ID",
  name: "sessionId",
  type: "options" as const,
  typeOptions: { loadOptionsMethod: "getLines" },
  default: "",
};

/** The line to send from. */
export const FROM: INodeProperties = {
  ...LINES,
  description:
    'The line to send from; the oldest connected one if left out. Choose from the list, or specify an ID using an <a href="https://docs.n8n.io/code/expressions/">expression</a>.',
};

/** The line that is asked or told. */
export const LINE: INodeProperties = {
  ...LINES,
  required: true,
  description:
    'Choose from the list, or specify an ID using an <a href="https://docs.n8n.io/code/expressions/">expression</a>',
};

export const TO: INodeProperties = {
  displayName: "To",
  name: "to",
  type: "string",
  default: "",
  required: true,
  placeholder: "447700900123",
  description: "A phone number with country code, or the ID of a chat or group from an event",
};

export const MESSAGE: INodeProperties = {
  displayName: "Message ID",
  name: "messageId",
  type: "string",
  default: "",
  required: true,
  placeholder: "msg_…",
  description: "The ID that a send returned, or the messageId of an event",
};

export const TEXT: INodeProperties = {
  displayName: "Text",
  name: "text",
  type: "string",
  typeOptions: { rows: 4 },
  default: "",
  required: true,
};

export const CHOICES: INodeProperties = {
  displayName: "Choices",
  name: "choices",
  type: "fixedCollection",
  typeOptions: { multipleValues: true, sortable: true },
  placeholder: "Add Choice",
  default: {},
  required: true,
  options: [
    {
      displayName: "Choice",
      name: "entry",
      values: [
        { displayName: "Label", name: "label", type: "string", default: "" },
        {
          displayName: "ID",
          name: "id",
          type: "string",
          default: "",
          description: "What the answer names; the choice's number if left out",
        },
      ],
    },
  ],
};

/** The choices as the API takes them. */
export function choicesOf(item: Item): IDataObject[] {
  return item.entries<{ id: string; label: string }>("choices").map(({ id, label }) => id ? { id, label } : { label });
}

export const PRIORITY: INodeProperties = {
  displayName: "Priority",
  name: "priority",
  type: "options",
  options: [
    { name: "High", value: "high" },
    { name: "Low", value: "low" },
    { name: "Normal", value: "normal" },
  ],
  default: "normal",
};

export const SEND_AT: INodeProperties = {
  displayName: "Send At",
  name: "sendAt",
  type: "dateTime",
  default: "",
  description: "The earliest departure, at most 30 days ahead",
};

/** What every send takes. */
export const OPTIONS: INodeProperties = {
  displayName: "Options",
  name: "options",
  type: "collection",
  placeholder: "Add Option",
  default: {},
  options: [
    {
      displayName: "Cancel on Reply",
      name: "cancelOnReply",
      type: "boolean",
      default: false,
      description: "Whether the message is cancelled if the chat writes before it leaves",
    },
    {
      displayName: "Idempotency Key",
      name: "idempotencyKey",
      type: "string",
      default: "",
      placeholder: "invoice-1042",
      description:
        "For 24 hours a send with the same key and content is made once. Left out, a retry of this node within the same execution sends nothing twice.",
    },
    {
      displayName: "Link Preview",
      name: "linkPreview",
      type: "boolean",
      default: true,
      description: "Whether the first link of a text is shown with title and picture",
    },
    {
      displayName: "Mentions",
      name: "mentions",
      type: "string",
      default: "",
      description: 'Numbers, separated by commas, each written as @number in the text; "all" in a group',
    },
    PRIORITY,
    {
      displayName: "Reply To",
      name: "replyTo",
      type: "string",
      default: "",
      description: "ID of a message of the same chat, which is quoted",
    },
    SEND_AT,
    {
      displayName: "Tags",
      name: "tags",
      type: "string",
      default: "",
      description: "Words of your own, separated by commas: events carry them, and Cancel by Tag finds them",
    },
    {
      displayName: "Time to Live",
      name: "ttl",
      type: "number",
      typeOptions: { minValue: 1 },
      default: 3600,
      description: "Seconds after which a message that could not leave fails",
    },
    {
      displayName: "Typing",
      name: "typing",
      type: "number",
      typeOptions: { minValue: 0, maxValue: 20000 },
      default: 2000,
      description: 'Milliseconds of "typing…" before the message leaves',
    },
    {
      displayName: "View Once",
      name: "viewOnce",
      type: "boolean",
      default: false,
      description: "Whether the image, video or audio can be opened once only",
    },
  ],
};

/** A list of words that was written with commas. */
export function list(text: unknown): string[] {
  return String(text).split(",").map((word) => word.trim()).filter(Boolean);
}

/** The options as the API takes them, without the idempotency key. */
export function optionsOf(item: Item): IDataObject {
  const options = Object.entries(item.value<IDataObject>("options") ?? {});
  const given = options.filter(([name, value]) => name !== "idempotencyKey" && value !== "");
  return Object.fromEntries(given.map(([name, value]) => {
    if (name === "mentions" || name === "tags") return [name, list(value)];
    return [name, name === "sendAt" ? item.moment(value) : value];
  }));
}

/** The key that the user gave, or one that a retry has too. */
export function idempotencyKeyOf(item: Item): string {
  return (item.value<IDataObject>("options")?.idempotencyKey as string) || keyOf(item);
}
