/**
 * User ids of the official API: `CC.digits`, a country and digits that stay the same for a person. Here the digits are
 * those of the number, or of the `@lid` of a person whose number WhatsApp hides.
 */
import { countryOf } from "../base/phone_number.ts";

/** The country of people whose number is hidden. */
const HIDDEN = "ZZ";
/** The country of numbers that belong to none. */
const NONE = "XX";

/** Returns the user id of a person, given as digits or a JID. */
export function userIdOf(person: string): string {
  const digits = person.split(/[@:]/, 1)[0]!;
  return `${person.endsWith("@lid") ? HIDDEN : countryOf(digits) ?? NONE}.${digits}`;
}

/** Returns the person as a recipient: digits, or a JID; null if the text is no user id. */
export function personOf(userId: string): string | null {
  const [, country, digits] = /^([A-Z]{2})\.(\d{1,20})$/.exec(userId) ?? [];
  if (digits === undefined) return null;
  return country === HIDDEN ? `${digits}@lid` : digits;
}
