/**
 * Phone numbers as people write them, read into digits with the country code. Lengths are those of libphonenumber's
 * numbering plans ("possible", not "valid": new ranges come faster than releases). The plans take some 20 ms to load: nothing that a
 * start waits for imports this.
 */
import {
  type CountryCode,
  getCountries,
  getCountryCallingCode,
  isSupportedCountry,
  Metadata,
  parsePhoneNumberFromString,
} from "libphonenumber-js/min";

/** The digits, or why the text is no number: a sentence's predicate. */
type NumberReading = { digits: string; why: null } | { digits: null; why: string };

/** Invisible marks, such as those of the direction of writing, come with numbers that are copied from address books. */
const MARKS = /\p{Cf}/gu;
const SEPARATORS = /[\s\p{Pd}\u2212./()]/gu;
/** International form begins with this, possibly in brackets. */
const INTERNATIONAL = /^[\s(]*(\+|00)/;
/** The national zero that some write behind the country code: +49 (0)155. */
const NATIONAL_ZERO = /\(\s*0\s*\)/;
/** E.164 has 15 digits at most; the network has none with fewer than 7. */
const DIGITS = /^\d{7,15}$/;
/** Old forms that the network itself still writes: Mexico with a 1, Argentina with a 9, Brazil without the ninth digit. */
const OF_THE_NETWORK = /^(521\d{10}|549\d{10}|55\d{10})$/;

/** Reads a number. `country` (ISO 3166) completes national ones, which begin with one 0; null: these are refused. */
export function readNumber(text: string, country: string | null): NumberReading {
  const visible = text.replaceAll(MARKS, "");
  const isInternational = INTERNATIONAL.test(visible);
  const whole = isInternational ? visible.replace(NATIONAL_ZERO, "") : visible;
  const number = whole.replaceAll(SEPARATORS, "").replace(/^(\+|00)/, "");
  if (!/^\d+$/.test(number)) return refused("must be a phone number with its country code, like 447700900123");
  if (!number.startsWith("0")) return checked(number);
  if (isInternational) return refused("has no country code: none begins with 0; write it like 447700900123");
  if (country === null || !isSupportedCountry(country)) {
    return refused("begins with 0: give the country code, like 447700900123, or set the account's country");
  }
  const national = parsePhoneNumberFromString(number, country);
  return national?.isPossible() ? checked(national.number.slice(1)) : refused(`is not a number of ${country}`);
}

/** Returns the digits of what may be a number or a part of one, for a search; null if it has other signs. */
export function partOfNumber(text: string): string | null {
  const digits = text.replaceAll(MARKS, "").replaceAll(SEPARATORS, "").replace(/^(\+|00)/, "");
  return /^\d+$/.test(digits) ? digits : null;
}

/** Whether numbering plans are known for the country, ISO 3166. */
export const isCountry: (code: string) => boolean = isSupportedCountry;

/** Returns the country of a number, ISO 3166; of several that share its code, the first. Null if it is of none. */
export function countryOf(digits: string): string | null {
  const number = parsePhoneNumberFromString(`+${digits}`);
  const country = number?.country ?? number?.getPossibleCountries()[0] ?? null;
  return country !== null && isSupportedCountry(country) ? country : null;
}

function checked(digits: string): NumberReading {
  if (!DIGITS.test(digits)) return refused("must have 7 to 15 digits with the country code, like 447700900123");
  if (OF_THE_NETWORK.test(digits) || isPossible(digits)) return { digits, why: null };
  return refused("has a length or a country code that no numbering plan has");
}

function refused(why: string): NumberReading {
  return { digits: null, why };
}

/** By country code, how many digits may follow; made at first use. A call of the library costs thirty times as much. */
let lengths: ReadonlyMap<string, ReadonlySet<number>> | null = null;

function isPossible(digits: string): boolean {
  lengths ??= lengthsOfPlans();
  const plans = lengths;
  return [1, 2, 3].some((size) => plans.get(digits.slice(0, size))?.has(digits.length - size));
}

/** Codes of no country: satellites and international networks. */
const NO_COUNTRY = ["800", "808", "870", "878", "881", "882", "883", "888", "979"];

function lengthsOfPlans(): Map<string, Set<number>> {
  const found = new Map<string, Set<number>>();
  const add = (code: string, plan: string) => {
    const metadata = new Metadata();
    metadata.selectNumberingPlan(plan as CountryCode);
    found.set(code, new Set([...found.get(code) ?? [], ...metadata.numberingPlan?.possibleLengths() ?? []]));
  };
  for (const country of getCountries()) add(getCountryCallingCode(country), country);
  for (const code of NO_COUNTRY) add(code, code);
  return found;
}
