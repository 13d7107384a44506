/** Contact cards. */
import type { Kind } from "./kind.ts";

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

export const contact: Kind<ContactContent> = {
  preview: ({ contacts }) => ({ text: contacts.map(({ name }) => name).join(", "), caption: null, filename: null }),
  characters: ({ contacts }) =>
    contacts.reduce((sum, card) => sum + card.name.length + card.phone.length + (card.organization ?? "").length, 0),
  body: (content) => content,
};
