/** Makes an inbox for a line. */
import type { Paloma } from "../../clients/typescript/src/index.ts";
import { webhookPath } from "./bridge.ts";
import type { Chatwoot } from "./chatwoot.ts";
import type { Link, Store } from "./store.ts";

export interface ConnectOptions {
  store: Store;
  chatwoot: Chatwoot;
  paloma: Paloma;
  sessionId: string;
  /** The bridge's address, as Chatwoot reaches it. */
  publicUrl: string;
}

/** Throws if the line has an inbox already. */
export async function connect({ store, chatwoot, paloma, sessionId, publicUrl }: ConnectOptions): Promise<Link> {
  const known = (await store.links()).find((link) => link.sessionId === sessionId);
  if (known) throw new Error(`${sessionId} has inbox ${known.inbox} already`);
  const { data: session } = await paloma.request("GET /sessions/{id}", { path: { id: sessionId } });
  if (await store.cursor.get() === null) {
    const { next } = await paloma.request("GET /events", { query: { after: "now", limit: 1 } });
    if (next !== null) await store.cursor.set(next);
  }
  const token = crypto.randomUUID();
  const url = publicUrl.replace(/\/+$/, "") + webhookPath(token);
  const inbox = await chatwoot.createInbox(session.name, url);
  const link = { sessionId, inbox: inbox.id, token, secret: inbox.secret || null };
  await store.addLink(link);
  return link;
}

/** What a person has to check then. */
export function checklist({ inbox, secret }: Link): string[] {
  return [
    `Chatwoot has the inbox ${inbox}. Add the agents who may answer: Settings › Inboxes › Collaborators.`,
    "Start the bridge: paloma chatwoot run",
    "Write to the line from another phone: a conversation appears. Answer it: the answer arrives, and gets its ticks.",
    secret
      ? "Chatwoot signs its webhooks; the bridge refuses others."
      : "This Chatwoot signs no webhooks, or the token is not an administrator's: keep the webhook's address secret.",
    "If answers take up to a minute, Chatwoot does not reach the bridge at the address of the webhook.",
  ];
}
