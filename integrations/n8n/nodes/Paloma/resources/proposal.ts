import { MESSAGE } from "../fields";
import { ask, keyOf, type Resource } from "../operation";

/** Messages of a key that may only propose: they wait for a person. */
export const proposal: Resource = {
  option: { name: "Proposal", value: "proposal" },
  operations: [
    {
      option: {
        name: "Approve",
        value: "approve",
        action: "Approve a proposal",
        description: "Let a proposed message leave",
      },
      fields: [MESSAGE],
      run: (item) =>
        ask(item, {
          method: "POST",
          path: `/v1/messages/${item.segment("messageId")}/approve`,
          idempotencyKey: keyOf(item),
        }),
    },
    {
      option: {
        name: "Get Many",
        value: "getAll",
        action: "Get many proposals",
        description: "Get the messages that wait for approval, the oldest first",
      },
      fields: [{
        displayName: "Limit",
        name: "limit",
        type: "number",
        typeOptions: { minValue: 1, maxValue: 100 },
        default: 50,
        description: "Max number of results to return",
      }],
      run: (item) => ask(item, { method: "GET", path: "/v1/messages/proposals", qs: { limit: item.value("limit") } }),
    },
    {
      option: {
        name: "Refuse",
        value: "refuse",
        action: "Refuse a proposal",
        description: "Cancel a proposed message",
      },
      fields: [MESSAGE],
      run: (item) => ask(item, { method: "DELETE", path: `/v1/messages/${item.segment("messageId")}` }),
    },
  ],
};
