import assert from "node:assert/strict";
import { readNumber } from "../../../src/base/phone_number.ts";

const READ: [text: string, country: string | null, digits: string][] = [
  ["447700900123", null, "447700900123"],
  ["+447700900123", null, "447700900123"],
  ["00447700900123", null, "447700900123"],
  ["+44 7700 900-123", null, "447700900123"],
  ["+44 (0)7700 900123", null, "447700900123"],
  ["0044 ( 0 ) 7700/900.123", null, "447700900123"],
  ["(+44) 7700 900123", null, "447700900123"],
  ["\u202a+44 7700 900123\u202c", null, "447700900123"],
  ["+44\u00a07700\u2011900\u2011123", null, "447700900123"],
  ["07700 900123", "GB", "447700900123"],
  ["(0155) 501-00002", "DE", "4915550100002"],
  ["06 1234 5678", "IT", "390612345678"],
  ["06 12 34 56 78", "FR", "33612345678"],
  ["447700900123", "DE", "447700900123"],
  ["+34 600 111 222", "DE", "34600111222"],
  // What the network writes.
  ["5215512345678", null, "5215512345678"],
  ["5491123456789", null, "5491123456789"],
  ["551187654321", null, "551187654321"],
  ["882161234567", null, "882161234567"],
];

for (const [text, country, digits] of READ) {
  Deno.test(`${JSON.stringify(text)}${country ? ` in ${country}` : ""} is ${digits}`, () => {
    assert.deepEqual(readNumber(text, country), { digits, why: null });
  });
}

const REFUSED: [text: string, country: string | null, why: RegExp][] = [
  ["", null, /must be a phone number/],
  ["+", null, /must be a phone number/],
  ["Ana", null, /must be a phone number/],
  ["44+7700900123", null, /must be a phone number/],
  ["447700900123 ext. 5", null, /must be a phone number/],
  ["٤٤٧٧٠٠٩٠٠١٢٣", null, /must be a phone number/],
  ["07700900123", null, /begins with 0: .*account's country/],
  ["07700900123", "XX", /begins with 0/],
  ["0", "DE", /is not a number of DE/],
  ["06 1", "FR", /is not a number of FR/],
  ["+07700900123", "GB", /none begins with 0/],
  ["0007700900123", null, /none begins with 0/],
  ["12345", null, /7 to 15 digits/],
  ["4477009001234567", null, /7 to 15 digits/],
  ["1212555", null, /no numbering plan/],
  ["447700900123456", null, /no numbering plan/],
  ["999123456789", null, /no numbering plan/],
  ["34600111222333", null, /no numbering plan/],
];

for (const [text, country, why] of REFUSED) {
  Deno.test(`${JSON.stringify(text)}${country ? ` in ${country}` : ""} is refused`, () => {
    const reading = readNumber(text, country);
    assert.equal(reading.digits, null);
    assert.match(reading.why!, why);
  });
}
