/** Contact cards. */
import { z } from "zod";
import { type Kind, kindRequest } from "./kind.ts";
import { label } from "./text.ts";

const MAX_CONTACTS = 50;

interface ContactCard {
  name: string;
  /** Digits. */
  phone: string;
  organization: string | null;
}

export interface ContactContent {
  kind: "contact";
  contacts: ContactCard[];
}

const Card = z.strictObject({
  name: label(200).meta({ example: "Anna Serra" }),
  phone: z.string().regex(/^\d{7,15}$/, "must be 7 to 15 digits with the country code, without + or spaces")
    .meta({ example: "34600111222" }),
  organization: label(200).nullish().meta({ example: "Acme" }),
}).meta({ id: "ContactCard" });

export const contact: Kind<ContactContent> = {
  request: kindRequest({
    summary: "Send contact cards",
    fields: { contacts: z.array(Card).min(1).max(MAX_CONTACTS) },
    contentOf: ({ contacts }) => ({
      kind: "contact",
      contacts: contacts.map(({ name, phone, organization }) => ({ name, phone, organization: organization ?? null })),
    }),
  }),
  preview: ({ contacts }) => ({ text: contacts.map(({ name }) => name).join(", "), caption: null, filename: null }),
  characters: ({ contacts }) =>
    contacts.reduce((sum, card) => sum + card.name.length + card.phone.length + (card.organization ?? "").length, 0),
  body: (content) => content,
};
