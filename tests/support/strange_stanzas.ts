/** Notifications, stanzas and receipts of every type that clients of the network know, and variations of them. */
import { Buffer } from "node:buffer";
import type { Random } from "../../src/runtime.ts";
import { type BinaryNode, element } from "../../src/sandbox/world/stanza.ts";

const NOTIFICATIONS: Readonly<Record<string, readonly string[]>> = {
  "account_sync": ["devices", "picture", "privacy", "blocklist", "disappearing_mode", "status", "tos"],
  "devices": ["add", "remove", "update"],
  "fbid:devices": ["update"],
  "encrypt": ["count", "identity", "digest"],
  "server_sync": ["collection"],
  "picture": ["set", "delete", "request", "set_avatar"],
  "privacy_token": ["tokens"],
  "link_code_companion_reg": ["link_code_companion_reg"],
  "companion_reg_refresh": ["companion_reg_refresh", "pair-device-rotate-qr"],
  "passkey_prologue_request": ["passkey_request_options"],
  "crsc_continuation": ["primary_ephemeral_identity"],
  "mediaretry": ["encrypt", "error", "rmr"],
  "newsletter": ["live_updates", "set_settings", "reaction", "view", "update"],
  "mex": ["update"],
  "status": ["set"],
  "contacts": ["update", "add", "remove", "sync", "modify"],
  "business": ["remove", "profile", "verified_name", "product_catalog", "privacy", "hosted_biz_opt_out"],
  "disappearing_mode": ["disappearing_mode"],
  "w:gp2": [
    "create",
    "add",
    "remove",
    "leave",
    "promote",
    "demote",
    "subject",
    "description",
    "announcement",
    "not_announcement",
    "locked",
    "unlocked",
    "ephemeral",
    "not_ephemeral",
    "invite",
    "modify",
    "link",
    "unlink",
    "delete",
    "membership_approval_mode",
    "membership_approval_request",
    "created_membership_requests",
    "revoked_membership_requests",
    "member_add_mode",
    "growth_locked",
    "suspended",
  ],
  "w:growth": ["invite"],
  "registration": ["wa_old_registration", "device_logout"],
  "psa": ["message"],
  "pay": ["transaction"],
  "server": ["log"],
  "hosted": ["device"],
  "waffle": ["state"],
  "cabp": ["update"],
  "feature": ["feature"],
  "profilepicture": ["set"],
};
const RECEIPTS = [
  "",
  "sender",
  "inactive",
  "delivery",
  "read",
  "read-self",
  "played",
  "played-self",
  "view",
  "retry",
  "enc_rekey_retry",
  "peer_msg",
  "hist_sync",
  "server-error",
];
const CALLS = [
  "offer",
  "offer_notice",
  "accept",
  "preaccept",
  "transport",
  "relaylatency",
  "relay",
  "terminate",
  "reject",
  "enc_rekey",
  "mute_v2",
  "group_update",
  "heartbeat",
];
/** What is told and asks for no answer. */
const TELLINGS: readonly BinaryNode[] = [
  "dirty",
  "edge_routing",
  "offline_preview",
  "downgrade_webclient",
  "thread_metadata",
  "gpia",
  "client_expiration",
].map((tag) =>
  element("ib", { from: "s.whatsapp.net" }, [
    element(tag, { type: "groups", timestamp: "1", count: "0", t: "1800000000" }),
  ])
);
const CIPHERS = ["pkmsg", "msg", "skmsg", "msmsg", "frskmsg", "none"];
const TOP = ["status", "appdata", "error", "survey", "interop", "stats"];

export interface Cast {
  /** JIDs: the line, somebody else, and a group. */
  line: string;
  peer: string;
  group: string;
  random: Random;
}

/** Without end: each type once before any comes again, each with content that makes less and less sense. */
export function* strangeStanzas(cast: Cast): Generator<BinaryNode, never> {
  for (let round = 0;; round++) {
    for (const [type, tags] of Object.entries(NOTIFICATIONS)) {
      for (const tag of tags) yield notification(type, tag, round, cast);
    }
    for (const type of RECEIPTS) yield receipt(type, round, cast);
    for (const tag of CALLS) yield call(tag, cast);
    for (const type of CIPHERS) yield message(type, round, cast);
    for (const tag of TOP) yield { ...top(tag, cast) };
    yield* TELLINGS;
    yield element("presence", { from: cast.peer, type: "unavailable", last: "deny" });
    yield element("chatstate", { from: cast.peer }, [element("composing", { media: "audio" })]);
  }
}

/** Whether the network keeps it until it is acknowledged. */
export const asksForAck = ({ tag }: BinaryNode) => !["ib", "presence", "chatstate"].includes(tag);

/** With something of it left out, doubled, lengthened or made of other bytes. */
export function mutated(stanza: BinaryNode, random: Random): BinaryNode {
  const keep = new Set(["id", "from"]);
  const attrs = { ...stanza.attrs };
  const names = Object.keys(attrs).filter((name) => !keep.has(name));
  const name = names[random.between(0, Math.max(0, names.length - 1))];
  let content = stanza.content;
  switch (random.between(0, 6)) {
    case 0:
      if (name) delete attrs[name];
      break;
    case 1:
      if (name) attrs[name] = ["", "-1", "99999999999999999999", "\u0000", "x".repeat(2_000)][random.between(0, 4)]!;
      break;
    case 2:
      content = undefined;
      break;
    case 3:
      content = Buffer.from(random.bytes(random.between(0, 300)));
      break;
    case 4:
      if (Array.isArray(content)) content = [...content, ...content];
      break;
    case 5:
      if (Array.isArray(content)) content = content.map((node) => mutated(node, random));
      break;
    default:
      if (content instanceof Uint8Array && content.length > 0) {
        const at = random.between(0, content.length - 1);
        content = Buffer.from(content.with(at, content[at]! ^ (1 << random.between(0, 7))));
      } else if (Array.isArray(content) && content.length > 0) {
        const at = random.between(0, content.length - 1);
        content = content.with(at, mutated(content[at]!, random));
      }
  }
  return { tag: stanza.tag, attrs, content };
}

const idOf = ({ random }: Cast) => Buffer.from(random.bytes(8)).toString("hex").toUpperCase();
const AT = "1790000000";

/** First as clients know them, then empty, then of bytes, then with an attribute that is none. */
function inside(tag: string, round: number, { line, peer, random }: Cast): BinaryNode {
  const device = element("device", { jid: peer.replace("@", ":7@"), "key-index": "2" });
  const participant = element("participant", { jid: peer, type: "admin" });
  const attrs = {
    jid: peer,
    name: "regular",
    version: "1",
    value: "3",
    id: "0",
    hash: "AAAA",
    type: "trusted_contact",
    op_name: random.between(0, 1) ? "MessageCappingInfoNotification" : "NotificationOfTomorrow",
    stage: "refresh_code",
  };
  switch (round % 4) {
    case 0:
      return element(tag, attrs, [
        device,
        participant,
        element("token", { ...attrs, t: AT, jid: line }, random.bytes(16)),
      ]);
    case 1:
      return element(tag);
    case 2:
      return element(tag, {}, random.bytes(random.between(1, 200)));
    default:
      return element(tag, { value: "NaN", jid: "nobody", t: "never" }, [element(tag)]);
  }
}

function notification(type: string, tag: string, round: number, cast: Cast): BinaryNode {
  const inGroup = type === "w:gp2";
  const { line, peer, group } = cast;
  const own = ["account_sync", "server_sync", "link_code_companion_reg"].includes(type);
  const from = inGroup
    ? group
    : own
    ? line
    : ["encrypt", "companion_reg_refresh", "mex"].includes(type)
    ? "s.whatsapp.net"
    : peer;
  const attrs = { id: idOf(cast), from, type, t: AT, participant: inGroup ? peer : undefined };
  return element("notification", attrs, [inside(tag, round, cast)]);
}

function receipt(type: string, round: number, cast: Cast): BinaryNode {
  const { peer, group } = cast;
  const where = round % 2 === 0 ? { from: peer } : { from: group, participant: peer };
  const retry = [
    element("retry", { count: "1", id: "0", t: AT, v: "1" }),
    element("registration", {}, cast.random.bytes(4)),
  ];
  const list = [element("list", {}, [element("item", { id: idOf(cast) }), element("item")])];
  return element(
    "receipt",
    { id: idOf(cast), ...where, type: type || undefined, t: AT },
    type === "retry" ? retry : list,
  );
}

function call(tag: string, cast: Cast): BinaryNode {
  const { peer } = cast;
  const content = element(tag, { "call-id": idOf(cast), "call-creator": peer }, [element("audio", { rate: "16000" })]);
  return element("call", { id: idOf(cast), from: peer, t: AT }, [content]);
}

function message(type: string, round: number, cast: Cast): BinaryNode {
  const { peer, group, random } = cast;
  const where = type === "skmsg" ? { from: group, participant: peer } : { from: peer };
  const enc = element("enc", { v: "2", type }, random.bytes(random.between(1, 120)));
  const content = round % 2 === 0 ? [enc] : [element("unavailable", { type: "view_once" })];
  return element("message", { id: idOf(cast), ...where, type: "text", t: AT, notify: "?" }, content);
}

function top(tag: string, cast: Cast): BinaryNode {
  const { peer, random } = cast;
  return element(tag, { id: idOf(cast), from: peer, t: AT, type: "new" }, [element("x", {}, random.bytes(9))]);
}
