/**
 * Who people are, as the network tells it by the way: usernames beside the addresses in messages, receipts and changes
 * of groups, and notifications of usernames and addresses that change.
 */
import {
  type BinaryNode,
  getAllBinaryNodeChildren,
  getBinaryNodeChild,
  isLidUser,
  jidNormalizedUser,
} from "@whiskeysockets/baileys";
import { LRUCache } from "lru-cache";
import { atMost } from "../../../base/at_most.ts";
import { unlessMalformed } from "../../../base/retry.ts";
import type { Notice } from "../../incoming.ts";
import { plainJid, usernameIn } from "../jids.ts";
import { bytesIn, childrenOf } from "../stanza.ts";

type Identity = Extract<Notice, { kind: "person" | "profile" }>;

/** How many people's usernames a connection remembers to have told. */
const TOLD_KEPT = 5_000;

/** GraphQL notifications, by the names that WhatsApp Web has for them, and what is told by their data. */
const TOLD_BY = {
  LidChangeNotification: ({ xwa2_notify_lid_change: { old, new: lid } }) => person(old, { lid: lidIn(lid) }),
  UsernameSetNotification: ({ xwa2_notify_username_on_change: { lid, username } }) =>
    person(lid, { username: usernameIn(username).username }),
  UsernameDeleteNotification: ({ xwa2_notify_username_delete: { lid } }) => person(lid, { username: null }),
  AccountSyncUsernameNotification: () => PROFILE,
  // deno-lint-ignore no-explicit-any -- read within `identitiesIn`, which ignores what is malformed
} satisfies Record<string, (data: any) => Identity | null>;

export const IDENTITY_OPERATIONS = Object.keys(TOLD_BY);

const PROFILE: Identity = { kind: "profile", id: null, chat: "" };

/** Returns what a notification tells of people, and of the line's own account. Empty if it is about anything else. */
export function identitiesIn(stanza: BinaryNode): Identity[] {
  const { type } = stanza.attrs;
  if (type === "account_sync" && getBinaryNodeChild(stanza, "username")) return [PROFILE];
  if (type !== "mex") return [];
  return childrenOf(stanza, "update").flatMap((update) => {
    const read = Object.entries(TOLD_BY).find(([name]) => name === update.attrs.op_name)?.[1];
    return unlessMalformed(() => read?.(JSON.parse(bytesIn(update).toString()).data), null) ?? [];
  });
}

/** Returns a watch of frames, which tells of each username once a connection, and when it changes. */
export function makeUsernameWatch(tell: (identity: Identity) => void): (frame: BinaryNode) => void {
  const told = new LRUCache<string, string>(atMost(TOLD_KEPT));
  return (frame) => {
    for (const [jid, attribute] of namedIn(frame)) {
      const { username } = usernameIn(attribute);
      if (!jid || !username || told.get(jid) === username) continue;
      told.set(jid, username);
      tell({ kind: "person", id: null, chat: plainJid(jid), username });
    }
  };
}

/** Yields the addresses in a stanza, each with what is said to be its username. */
function* namedIn(stanza: BinaryNode): Generator<[jid: string | undefined, username: string | undefined]> {
  const { tag, attrs } = stanza;
  if (tag !== "message" && tag !== "receipt" && tag !== "notification") return;
  yield [attrs.participant ?? attrs.from, attrs.participant_username ?? attrs.username];
  yield [attrs.recipient, attrs.peer_recipient_username ?? attrs.recipient_username];
  if (attrs.type !== "w:gp2") return;
  const members = getAllBinaryNodeChildren(stanza).flatMap((change) => childrenOf(change, "participant"));
  for (const { attrs: { jid, username } } of members) yield [jid, username];
}

function person(
  lid: unknown,
  told: { lid?: string | undefined; username?: string | null | undefined },
): Identity | null {
  const chat = lidIn(lid);
  const known = Object.entries(told).filter(([, value]) => value !== undefined);
  return chat && known.length > 0 ? { kind: "person", id: null, chat, ...Object.fromEntries(known) } : null;
}

function lidIn(value: unknown): string | undefined {
  return typeof value === "string" && isLidUser(value) ? jidNormalizedUser(value) : undefined;
}
