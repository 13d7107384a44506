/** A poll. */
import type { Kind } from "./kind.ts";

export interface PollContent {
  kind: "poll";
  question: string;
  options: string[];
  /** Whether one person may choose several. */
  multiple: boolean;
}

export const poll: Kind<PollContent> = {
  preview: ({ question }) => ({ text: question, caption: null, filename: null }),
  characters: ({ question, options }) => question.length + options.join("").length,
  body: (content) => content,
};
