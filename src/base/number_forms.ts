/** Forms of one number that the network writes otherwise than people do: with or without a mobile prefix. */

const MOBILE_PREFIXES: readonly (readonly [RegExp, string])[] = [
  [/^521(\d{10})$/, "52$1"],
  [/^549(\d{10})$/, "54$1"],
  [/^(55\d{2})9(\d{8})$/, "$1$2"],
];

/** Returns whether both, digits with the country code, are one number, however Mexico, Argentina and Brazil write it. */
export function isSameNumber(one: string, other: string): boolean {
  return withoutPrefix(one) === withoutPrefix(other);
}

function withoutPrefix(digits: string): string {
  return MOBILE_PREFIXES.reduce((number, [form, plain]) => number.replace(form, plain), digits);
}
