import { LINE, MESSAGE, PRIORITY, SEND_AT } from "../fields";
import { ask, type Item, keyOf, type Resource } from "../operation";

const path = (item: Item) => `/v1/sessions/${item.segment("sessionId")}/queue`;

export const queue: Resource = {
  option: { name: "Queue", value: "queue" },
  operations: [
    {
      option: {
        name: "Cancel",
        value: "cancel",
        action: "Cancel a message",
        description: "Cancel a message that still waits",
      },
      fields: [MESSAGE],
      run: (item) => ask(item, { method: "DELETE", path: `/v1/messages/${item.segment("messageId")}` }),
    },
    {
      option: {
        name: "Cancel by Tag",
        value: "cancelByTag",
        action: "Cancel messages by their tag",
        description: "Cancel all waiting messages that have a tag",
      },
      fields: [{ displayName: "Tag", name: "tag", type: "string", default: "", required: true }],
      run: (item) => ask(item, { method: "DELETE", path: "/v1/messages", qs: { tag: item.text("tag") } }),
    },
    {
      option: {
        name: "Get Many",
        value: "getAll",
        action: "Get many waiting messages",
        description: "Get the waiting messages in the order of their departure",
      },
      fields: [LINE, {
        displayName: "Limit",
        name: "limit",
        type: "number",
        typeOptions: { minValue: 1, maxValue: 1000 },
        default: 50,
        description: "Max number of results to return",
      }],
      run: (item) => ask(item, { method: "GET", path: path(item), qs: { limit: item.value("limit") } }),
    },
    {
      option: { name: "Pause", value: "pause", action: "Pause a queue", description: "Hold back what waits on a line" },
      fields: [LINE],
      run: (item) => ask(item, { method: "POST", path: `${path(item)}/pause`, idempotencyKey: keyOf(item) }),
    },
    {
      option: {
        name: "Reschedule",
        value: "reschedule",
        action: "Reschedule a message",
        description: "Change when a waiting message leaves",
      },
      fields: [MESSAGE, SEND_AT, {
        ...PRIORITY,
        options: [...PRIORITY.options!, { name: "Unchanged", value: "" }],
        default: "",
      }],
      run(item) {
        const sendAt = item.value("sendAt");
        const body = { priority: item.value("priority"), sendAt: sendAt && item.moment(sendAt) };
        return ask(item, { method: "PATCH", path: `/v1/messages/${item.segment("messageId")}`, body });
      },
    },
    {
      option: { name: "Resume", value: "resume", action: "Resume a queue", description: "Let a paused queue go on" },
      fields: [LINE],
      run: (item) => ask(item, { method: "POST", path: `${path(item)}/resume`, idempotencyKey: keyOf(item) }),
    },
  ],
};
