/** A poll. */
import { z } from "zod";
import { type Kind, kindRequest } from "./kind.ts";
import { label } from "./text.ts";

export interface PollContent {
  kind: "poll";
  question: string;
  options: string[];
  /** Whether one person may choose several. */
  multiple: boolean;
}

export const poll: Kind<PollContent> = {
  request: kindRequest({
    summary: "Send a poll",
    fields: {
      question: label(255).meta({ example: "When may we deliver?" }),
      options: z.array(label(100)).min(2).max(12)
        .refine((options) => new Set(options).size === options.length, "names an option twice")
        .meta({ uniqueItems: true, example: ["Morning", "Afternoon"] }),
      multiple: z.boolean().nullish().meta({
        description: "Whether one person may choose several options; false if left out",
      }),
    },
    contentOf: ({ question, options, multiple }) => ({ kind: "poll", question, options, multiple: multiple ?? false }),
  }),
  preview: ({ question }) => ({ text: question, caption: null, filename: null }),
  characters: ({ question, options }) => question.length + options.join("").length,
  body: (content) => content,
};
