/** An incoming message as the port gives it: a plain text, where a test does not say otherwise. */
import type { Incoming } from "../../src/whatsapp/incoming.ts";

const PLAIN: Incoming = {
  networkId: "3A",
  chat: "49@s.whatsapp.net",
  participant: null,
  fromMe: false,
  number: "49",
  pushName: null,
  timestamp: Date.UTC(2026, 0, 15, 12) / 1000,
  type: "conversation",
  text: "hola",
  media: null,
  quoted: null,
  mentions: [],
  isForwarded: false,
  viewOnce: false,
  ad: null,
  change: null,
  details: null,
  undecryptable: false,
};

export function plainIncoming(fields: Partial<Incoming> = {}): Incoming {
  return { ...PLAIN, ...fields };
}
