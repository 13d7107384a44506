import { LINE } from "../fields";
import { ask, type Resource } from "../operation";

export const line: Resource = {
  option: { name: "Line", value: "line" },
  operations: [
    {
      option: {
        name: "Check Number",
        value: "checkNumber",
        action: "Check a number",
        description: "Whether a number has a WhatsApp account",
      },
      fields: [LINE, {
        displayName: "Number",
        name: "number",
        type: "string",
        default: "",
        required: true,
        placeholder: "447700900123",
      }],
      run: (item) =>
        ask(item, {
          method: "POST",
          path: `/v1/sessions/${item.segment("sessionId")}/check-number`,
          body: { number: item.text("number") },
        }),
    },
    {
      option: { name: "Get Many", value: "getAll", action: "Get many lines", description: "Get the account's lines" },
      fields: [],
      run: (item) => ask(item, { method: "GET", path: "/v1/sessions" }),
    },
  ],
};
