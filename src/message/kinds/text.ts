/** Text. */
import type { Kind } from "./kind.ts";

export interface TextContent {
  kind: "text";
  text: string;
}

export const text: Kind<TextContent> = {
  preview: ({ text }) => ({ text, caption: null, filename: null }),
  characters: ({ text }) => text.length,
  body: (content) => content,
};
