/** Texts of a body: what is said, what names something, and one emoji. */
import { z } from "@hono/zod-openapi";

/** Most characters of a text or a caption. */
const MAX_TEXT = 65_536;

/** Text of 1 to 65,536 characters (code points, as JSON Schema counts them). */
export const Text = textOf(1).meta({ minLength: 1, maxLength: MAX_TEXT });

/** What goes with an image, a video or a document. */
export const Caption = textOf(0).meta({ maxLength: MAX_TEXT, example: "Your invoice" });

/** A short text with something to be seen: a name, a question. */
export function label(maxLength: number) {
  return textOf(1, maxLength).refine((text) => text.trim() !== "", "is blank").meta({ minLength: 1, maxLength });
}

function textOf(minimum: number, maximum = MAX_TEXT) {
  return z.string()
    .refine((text) => text.length >= minimum, "is empty")
    .refine((text) => !isLonger(text, maximum), {
      // Formatted when it is asked for: the first use of a locale takes 15 ms.
      error: () => `has more than ${maximum.toLocaleString("en")} characters`,
    })
    .refine((text) => text.isWellFormed(), "holds half of a surrogate pair, which is no character");
}

function isLonger(text: string, characters: number): boolean {
  if (text.length <= characters) return false;
  if (text.length > 2 * characters) return true;
  let count = 0;
  for (const _ of text) count++;
  return count > characters;
}

/** No flags, so that the reference can show it. */
const EMOJI = /\p{Extended_Pictographic}|\p{Regional_Indicator}{2}|[0-9#*]\u{fe0f}?\u{20e3}/u;

/** What people and apps count as one emoji is a grapheme. The segmenter is made when it is needed: it loads a locale. */
export const Emoji = z.string().max(64).refine(
  (text) => text === "" || (EMOJI.test(text) && [...new Intl.Segmenter().segment(text)].length === 1),
  "is not one emoji",
);
