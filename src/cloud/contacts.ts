/** The official API's contacts as contact cards: all that the phone's address book can take goes along. */
import { vcardText } from "../base/vcard.ts";
import type { OutgoingContent } from "../message/content.ts";
import { wrongParameter } from "./errors.ts";
import { type Fields, list, listIn, object, objectIn, text, textIn } from "./fields.ts";

const MAX_CONTACTS = 50;
/** Most characters of all cards together. */
const MAX_CHARACTERS = 65_536;

/** Returns the content. Throws CloudError. */
export function contactsOf(value: unknown): OutgoingContent {
  const cards = list({ contacts: value }, "contacts");
  if (cards.length === 0 || cards.length > MAX_CONTACTS) {
    throw wrongParameter(`contacts must be 1 to ${MAX_CONTACTS} of them`);
  }
  const contacts = cards.map(cardOf);
  if (contacts.reduce((sum, { lines }) => sum + lines.join("").length, 0) > MAX_CHARACTERS) {
    throw wrongParameter(`contacts may have ${MAX_CHARACTERS} characters at most`);
  }
  return { kind: "contact", contacts };
}

function cardOf(card: Fields) {
  const names = object(card, "name");
  const org = objectIn(card, "org");
  const name = text(names, "formatted_name", 200);
  const part = (name: string) => textIn(names, name) ?? "";
  const parts = ["last_name", "first_name", "middle_name", "prefix", "suffix"].map(part);
  const phones = listIn(card, "phones").map((phone) => {
    const digits = (textIn(phone, "wa_id") ?? "").replaceAll(/\D/g, "");
    const shown = textIn(phone, "phone") ?? `+${digits}`;
    return { digits: digits || shown.replaceAll(/\D/g, ""), shown, type: typeOf(phone) };
  });
  const organization = textIn(org, "company") ?? null;
  const company = [organization ?? "", textIn(org, "department") ?? ""];
  const birthday = textIn(card, "birthday");
  const title = textIn(org, "title");
  const lines = [
    `N:${(parts.join("") === "" ? [name, "", "", "", ""] : parts).map(vcardText).join(";")}`,
    ...(company.join("") === "" ? [] : [`ORG:${company.map(vcardText).join(";").replace(/;$/, "")}`]),
    ...(title ? [`TITLE:${vcardText(title)}`] : []),
    ...(birthday ? [`BDAY:${vcardText(birthday)}`] : []),
    ...phones.map(({ digits, shown, type }) => `TEL${type};waid=${digits}:${vcardText(shown)}`),
    ...listIn(card, "emails").map((email) => `EMAIL${typeOf(email)}:${vcardText(textIn(email, "email") ?? "")}`),
    ...listIn(card, "urls").map((url) => `URL${typeOf(url)}:${vcardText(textIn(url, "url") ?? "")}`),
    ...listIn(card, "addresses").map(addressOf),
  ];
  return { name, phone: phones[0]?.digits ?? "", organization, lines };
}

function addressOf(address: Fields): string {
  const parts = ["street", "city", "state", "zip", "country"].map((name) => vcardText(textIn(address, name) ?? ""));
  return `ADR${typeOf(address)}:;;${parts.join(";")}`;
}

/** Returns the parameter of a property's type: a word such as `HOME`. */
function typeOf(of: Fields): string {
  const type = textIn(of, "type") ?? "";
  return /^[A-Za-z-]{1,20}$/.test(type) ? `;type=${type.toUpperCase()}` : "";
}
