import type { INodeProperties } from "n8n-workflow";
import { pages } from "../../shared/request";
import { LINE } from "../fields";
import { ask, type Item, keyOf, output, type Resource } from "../operation";

const CHAT: INodeProperties = {
  displayName: "Chat",
  name: "chat",
  type: "string",
  default: "={{ $json.data.chat }}",
  required: true,
  description: "The chat of an event or of the list, or a phone number",
};

/** All, or a number of them. */
const AMOUNT: INodeProperties[] = [
  {
    displayName: "Return All",
    name: "returnAll",
    type: "boolean",
    default: false,
    description: "Whether to return all results or only up to a given limit",
  },
  {
    displayName: "Limit",
    name: "limit",
    type: "number",
    typeOptions: { minValue: 1 },
    default: 50,
    displayOptions: { show: { returnAll: [false] } },
    description: "Max number of results to return",
  },
];

const amount = (item: Item) => item.value<boolean>("returnAll") ? Infinity : Number(item.value("limit"));
const path = (item: Item) => `/v1/sessions/${item.segment("sessionId")}/chats`;

export const chat: Resource = {
  option: { name: "Chat", value: "chat" },
  operations: [
    {
      option: {
        name: "Get Many",
        value: "getAll",
        action: "Get many chats",
        description: "Get the chats, the newest message first",
      },
      fields: [LINE, ...AMOUNT, {
        displayName: "Filters",
        name: "filters",
        type: "collection",
        placeholder: "Add Filter",
        default: {},
        options: [
          { displayName: "Search", name: "q", type: "string", default: "", description: "Part of a name or number" },
          {
            displayName: "Unread Only",
            name: "unread",
            type: "boolean",
            default: true,
            description: "Whether to get only chats with unread messages",
          },
        ],
      }],
      run: async (item) =>
        output(await pages(item.node, path(item), item.value("filters") ?? {}, "after", amount(item))),
    },
    {
      option: {
        name: "Get Messages",
        value: "getMessages",
        action: "Get the messages of a chat",
        description: "Read a chat, the newest message first",
      },
      fields: [LINE, CHAT, ...AMOUNT],
      run: async (item) =>
        output(await pages(item.node, `${path(item)}/${item.segment("chat")}/messages`, {}, "before", amount(item))),
    },
    {
      option: {
        name: "Mark Read",
        value: "markRead",
        action: "Mark a chat as read",
        description: "Mark everything that was received in a chat as read",
      },
      fields: [LINE, CHAT],
      run: (item) =>
        ask(item, {
          method: "POST",
          path: `${path(item)}/${item.segment("chat")}/read`,
          idempotencyKey: keyOf(item),
        }),
    },
  ],
};
