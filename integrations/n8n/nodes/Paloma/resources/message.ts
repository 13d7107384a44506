import type { IDataObject, INodeProperties } from "n8n-workflow";
import { CHOICES, choicesOf, FROM, idempotencyKeyOf, list, MESSAGE, OPTIONS, optionsOf, TEXT, TO } from "../fields";
import { downloadFile, sendFile } from "../files";
import { ask, type Item, keyOf, type Operation, type Resource } from "../operation";
import { sendAndWait } from "../send_and_wait";

/** Sends what `content` reads, beside the line and the options. */
function sending(
  kind: string,
  option: Operation["option"],
  fields: INodeProperties[],
  content: (item: Item) => IDataObject,
): Operation {
  return {
    option,
    fields: [FROM, ...fields, OPTIONS],
    run: (item) =>
      ask(item, {
        method: "POST",
        path: `/v1/messages/send/${kind}`,
        body: { sessionId: item.value("sessionId"), ...content(item), ...optionsOf(item) },
        idempotencyKey: idempotencyKeyOf(item),
      }),
  };
}

const named = (...names: string[]) => (item: Item): IDataObject =>
  Object.fromEntries(names.map((name) => [name, item.value(name)]));

const sends: Operation[] = [
  sending(
    "choices",
    {
      name: "Send Choices",
      value: "sendChoices",
      action: "Send choices",
      description: "Send a question with options; each answer is one event",
    },
    [TO, TEXT, CHOICES, {
      displayName: "Style",
      name: "style",
      type: "options",
      options: [
        { name: "Automatic", value: "auto", description: "Numbers for a person, a poll in a group" },
        { name: "Buttons", value: "buttons", description: "Shown by phones only, and not promised" },
        { name: "List", value: "list", description: "Shown by phones only, and not promised" },
        { name: "Numbers", value: "numbers", description: "A text with numbered options" },
        { name: "Poll", value: "poll", description: "At least two options" },
      ],
      default: "auto",
    }],
    (item) => ({ ...named("to", "text", "style")(item), options: choicesOf(item) }),
  ),
  sending(
    "contact",
    { name: "Send Contact", value: "sendContact", action: "Send contacts", description: "Send cards of contacts" },
    [TO, {
      displayName: "Contacts",
      name: "contacts",
      type: "fixedCollection",
      typeOptions: { multipleValues: true },
      placeholder: "Add Contact",
      default: {},
      required: true,
      options: [
        {
          displayName: "Contact",
          name: "entry",
          values: [
            { displayName: "Name", name: "name", type: "string", default: "" },
            { displayName: "Phone", name: "phone", type: "string", default: "", placeholder: "447700900123" },
            { displayName: "Organization", name: "organization", type: "string", default: "" },
          ],
        },
      ],
    }],
    (item) => ({
      to: item.text("to"),
      contacts: item.entries("contacts").map(({ organization, ...contact }) =>
        organization ? { ...contact, organization } : contact
      ),
    }),
  ),
  sendFile,
  sending(
    "forward",
    {
      name: "Send Forward",
      value: "sendForward",
      action: "Forward a message",
      description: "Forward a message that was sent or received",
    },
    [TO, MESSAGE],
    named("to", "messageId"),
  ),
  sending(
    "location",
    { name: "Send Location", value: "sendLocation", action: "Send a location", description: "Send a place on the map" },
    [
      TO,
      { displayName: "Latitude", name: "latitude", type: "number", default: 0, required: true },
      { displayName: "Longitude", name: "longitude", type: "number", default: 0, required: true },
      { displayName: "Place", name: "place", type: "string", default: "", description: "Name of the place" },
      { displayName: "Address", name: "address", type: "string", default: "" },
    ],
    (item) => ({ ...named("to", "latitude", "longitude", "address")(item), name: item.value("place") }),
  ),
  sending(
    "poll",
    { name: "Send Poll", value: "sendPoll", action: "Send a poll", description: "Send a poll; each vote is one event" },
    [
      TO,
      { displayName: "Question", name: "question", type: "string", default: "", required: true },
      {
        displayName: "Poll Options",
        name: "pollOptions",
        type: "string",
        typeOptions: { multipleValues: true, multipleValueButtonText: "Add Option" },
        default: [],
        required: true,
      },
      {
        displayName: "Multiple Answers",
        name: "multiple",
        type: "boolean",
        default: false,
        description: "Whether people may vote for several options",
      },
    ],
    (item) => ({ ...named("to", "question", "multiple")(item), options: item.value("pollOptions") }),
  ),
  sending(
    "reaction",
    { name: "Send Reaction", value: "sendReaction", action: "React to a message", description: "React with an emoji" },
    [MESSAGE, {
      displayName: "Emoji",
      name: "emoji",
      type: "string",
      default: "",
      description: "Left empty, the reaction is removed",
    }],
    (item) => ({ messageId: item.text("messageId"), emoji: item.text("emoji") }),
  ),
  sending(
    "status",
    { name: "Send Status", value: "sendStatus", action: "Post a status", description: "Post a text to the status" },
    [TEXT, {
      displayName: "Audience",
      name: "audience",
      type: "string",
      default: "",
      required: true,
      description: "Numbers of those who may see it, separated by commas",
    }],
    (item) => ({ text: item.text("text"), audience: list(item.text("audience")) }),
  ),
  sending(
    "template",
    {
      name: "Send Template",
      value: "sendTemplate",
      action: "Send a template",
      description: "Send a text that was written once, with variables",
    },
    [
      TO,
      {
        displayName: "Template Name or ID",
        name: "template",
        type: "options",
        typeOptions: { loadOptionsMethod: "getTemplates" },
        default: "",
        required: true,
        description:
          'Choose from the list, or specify an ID using an <a href="https://docs.n8n.io/code/expressions/">expression</a>',
      },
      {
        displayName: "Language",
        name: "language",
        type: "string",
        default: "",
        placeholder: "es_MX",
        description: "Left out, the text that was made first is sent",
      },
      {
        displayName: "Variables",
        name: "variables",
        type: "fixedCollection",
        typeOptions: { multipleValues: true },
        placeholder: "Add Variable",
        default: {},
        options: [
          {
            displayName: "Variable",
            name: "entry",
            values: [
              { displayName: "Name", name: "name", type: "string", default: "" },
              { displayName: "Value", name: "value", type: "string", default: "" },
            ],
          },
        ],
      },
    ],
    (item) => {
      const variables = item.entries<{ name: string; value: unknown }>("variables");
      return {
        ...named("to", "template", "language")(item),
        variables: Object.fromEntries(variables.map(({ name, value }) => [name, String(value)])),
      };
    },
  ),
  sending(
    "text",
    { name: "Send Text", value: "sendText", action: "Send a text", description: "Send a text" },
    [TO, TEXT],
    named("to", "text"),
  ),
];

const path = (item: Item) => `/v1/messages/${item.segment("messageId")}`;

export const message: Resource = {
  option: { name: "Message", value: "message" },
  operations: [
    {
      option: {
        name: "Delete for Everyone",
        value: "revoke",
        action: "Delete a message for everyone",
        description: "Delete a sent message on the recipients' phones",
      },
      fields: [MESSAGE],
      run: (item) => ask(item, { method: "POST", path: `${path(item)}/revoke`, idempotencyKey: keyOf(item) }),
    },
    downloadFile,
    {
      option: {
        name: "Edit",
        value: "edit",
        action: "Edit a message",
        description: "Change a text, also on the recipients' phones for 15 minutes",
      },
      fields: [MESSAGE, TEXT],
      run: (item) => ask(item, { method: "PATCH", path: path(item), body: { text: item.text("text") } }),
    },
    {
      option: {
        name: "Get",
        value: "get",
        action: "Get a message",
        description: "Get a message and what became of it",
      },
      fields: [MESSAGE],
      run: (item) => ask(item, { method: "GET", path: path(item) }),
    },
    sendAndWait,
    ...sends,
  ],
};
