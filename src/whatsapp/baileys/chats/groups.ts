/** The line's groups: listing, creating, changing, joining and leaving them. */
import {
  areJidsSameUser,
  type BinaryNode,
  generateMessageIDV2,
  getBinaryNodeChild,
  getBinaryNodeChildren,
  type GroupMetadata,
  isPnUser,
  jidNormalizedUser,
  type WASocket,
} from "@whiskeysockets/baileys";
import type { Runtime } from "../../../runtime.ts";
import type { Group, GroupMember, Groups, GroupSettings, MemberResult, WholeGroup } from "../../chats.ts";
import { NetworkRefusal } from "../../connection.ts";
import { answerOf, iq } from "../stanza.ts";
import type { Addressing, Recipients } from "../outgoing/addressing.ts";
import type { GroupCache } from "../outgoing/group_cache.ts";
import type { Restrictions } from "../outgoing/restrictions.ts";
import { isAddress, isOwn, numberIn, type OwnJids, usernameIn } from "../jids.ts";

const INVITE_BASE = "https://chat.whatsapp.com/";
/** Creating or listing a group of a thousand members takes the network some seconds. */
const LONG_ANSWER = { withinMs: 30_000 };

interface GroupsOptions {
  socket: WASocket;
  cache: GroupCache;
  recipients: Pick<Recipients, "jidsOf">;
  addressing: Pick<Addressing, "byLid" | "numberOf">;
  tokenOf: Restrictions["given"];
  me: () => OwnJids;
  runtime: Pick<Runtime, "clock">;
}

export function makeGroups({ socket, cache, recipients, addressing, tokenOf, me, runtime }: GroupsOptions): Groups {
  const { clock } = runtime;

  async function ask(type: "get" | "set", to: string, question: BinaryNode, what: string): Promise<BinaryNode> {
    const asked = socket.query(iq({ type, xmlns: "w:g2", to }, question));
    const answer: BinaryNode = await answerOf(clock, asked, what, LONG_ANSWER);
    // Other clients learn of the change by a notification; this connection knows of it already.
    if (type === "set") cache.forget(to);
    return answer;
  }

  /** Resolves numbers to addresses in a single query, however many there are. */
  async function named(participants: readonly string[]): Promise<Named[]> {
    const jids = await recipients.jidsOf(participants.filter((given) => !isAddress(given)));
    return participants.map((given) => ({ given, jid: isAddress(given) ? given : jids.get(given) ?? null }));
  }

  /** Beside whom a group gets stands their number, and the token by which they let the line add them, as far as known. */
  async function addedNodes(all: readonly Named[]): Promise<BinaryNode[]> {
    const nodes = participantNodes(all);
    await addressing.byLid(nodes.map(({ attrs }) => attrs.jid!)); // asks for all that are unknown at once
    return await Promise.all(nodes.map(async ({ tag, attrs }) => {
      const [number, token] = await Promise.all([addressing.numberOf(attrs.jid!), tokenOf(attrs.jid!)]);
      return {
        tag,
        attrs: { ...attrs, ...(isPnUser(number) && number !== attrs.jid ? { phone_number: number } : {}) },
        ...(token ? { content: [{ tag: "privacy", attrs: {}, content: token }] } : {}),
      };
    }));
  }

  async function actOn(
    id: string,
    participants: readonly string[],
    act: { path: readonly string[]; what: string },
  ): Promise<MemberResult[]> {
    const all = await named(participants);
    const isAdded = act.path.at(-1) === "add";
    const nodes = isAdded ? await addedNodes(all) : participantNodes(all);
    if (nodes.length === 0) return resultsOf(all, []);
    const question = act.path.reduceRight<BinaryNode[]>((content, tag) => [{ tag, attrs: {}, content }], nodes)[0]!;
    const answer = await ask("set", id, question, act.what);
    const inner = act.path.reduce<BinaryNode | undefined>((node, tag) => getBinaryNodeChild(node, tag), answer);
    return resultsOf(all, getBinaryNodeChildren(inner, "participant"));
  }

  async function invitation(type: "get" | "set", id: string): Promise<string> {
    const what = "return the group's invite link";
    const answer = await ask(type, id, { tag: "invite", attrs: {} }, what);
    return INVITE_BASE + needed(getBinaryNodeChild(answer, "invite")?.attrs.code, what);
  }

  async function get(id: string): Promise<WholeGroup> {
    return toWholeGroup(await answerOf(clock, cache.fresh(id), "describe the group", LONG_ANSWER), me());
  }

  return {
    async list() {
      const answer = await answerOf(clock, socket.groupFetchAllParticipating(), "list the groups", LONG_ANSWER);
      return Object.values(answer).map((metadata) => toGroup(metadata, me()));
    },

    get,

    async create(name, participants) {
      const all = await named(participants);
      const create = {
        tag: "create",
        // The library takes a name with an "@" for an address and would write a different text; it is set below.
        attrs: { subject: name.replaceAll("@", "＠"), key: generateMessageIDV2() },
        content: await addedNodes(all),
      };
      const answer = await ask("set", "@g.us", create, "create the group");
      const made = getBinaryNodeChild(answer, "group");
      const id = `${made?.attrs.id?.split("@")[0]}@g.us`;
      if (name.includes("@")) await ask("set", id, subjectOf(name), "name the group");
      const group = await get(id);
      const results = resultsOf(all, getBinaryNodeChildren(made, "participant"));
      return { group, results };
    },

    async change(id, settings) {
      const descriptionNow = async () => {
        return (await answerOf(clock, cache.metadata(id), "describe the group", LONG_ANSWER)).descId;
      };
      for (const question of await questionsOf(settings, descriptionNow)) {
        await ask("set", id, question, "change the group");
      }
    },

    async setPicture(id, jpeg) {
      await answerOf(clock, socket.query(pictureQuery(id, jpeg)), "change the picture");
    },

    async leave(id) {
      const question = { tag: "leave", attrs: {}, content: [{ tag: "group", attrs: { id } }] };
      const answer = await ask("set", "@g.us", question, "leave the group");
      const left = getBinaryNodeChild(getBinaryNodeChild(answer, "leave"), "group");
      const code = Number(left?.attrs.error ?? 0);
      if (code) {
        throw new NetworkRefusal(`The messaging network did not let the line leave the group (${code}).`, { code });
      }
      cache.forget(id);
    },

    changeMembers: (id, action, participants) =>
      actOn(id, participants, { path: [action], what: "change the participants" }),

    invite: (id) => invitation("get", id),
    renewInvite: (id) => invitation("set", id),

    async join(invite) {
      const code = invite.replace(INVITE_BASE, "").split("?")[0]!;
      const what = "admit the line to the group";
      const answer = await ask("set", "@g.us", { tag: "invite", attrs: { code } }, what).catch(noInvitation);
      const joined = getBinaryNodeChild(answer, "group")?.attrs.jid;
      const asked = getBinaryNodeChild(answer, "membership_approval_request")?.attrs.jid;
      return { id: needed(joined ?? asked, what), status: joined ? "joined" : "asked" };
    },

    async requests(id) {
      const tag = "membership_approval_requests";
      const answer = await ask("get", id, { tag, attrs: {} }, "list the requests to join");
      return getBinaryNodeChildren(getBinaryNodeChild(answer, tag), "membership_approval_request").map(memberOf);
    },

    answerRequests: (id, action, participants) =>
      actOn(id, participants, { path: ["membership_requests_action", action], what: "answer the requests" }),
  };
}

/** The codes for an invitation that never existed; a revoked one is 410. */
const NO_INVITATION = new Set<number | null>([400, 406]);

function noInvitation(error: unknown): never {
  if (!(error instanceof NetworkRefusal) || !NO_INVITATION.has(error.code)) throw error;
  throw new NetworkRefusal(error.message, { code: 404 });
}

/** Returns what an answer should contain. Throws NetworkRefusal if it is missing. */
function needed(value: string | undefined, what: string): string {
  if (!value) throw new NetworkRefusal(`The messaging network did not ${what}.`);
  return value;
}

function participantNodes(named: readonly Named[]): BinaryNode[] {
  return named.flatMap(({ jid }) => jid === null ? [] : [{ tag: "participant", attrs: { jid } }]);
}

function subjectOf(name: string): BinaryNode {
  return { tag: "subject", attrs: {}, content: new TextEncoder().encode(name) };
}

/** Builds one query per setting. A new description has to name the one that it replaces. */
async function questionsOf(
  { name, description, announce, locked, ephemeral }: Partial<GroupSettings>,
  descriptionId: () => Promise<string | undefined>,
): Promise<BinaryNode[]> {
  const questions: BinaryNode[] = [];
  const flag = (tag: string) => questions.push({ tag, attrs: {} });
  if (name !== undefined) questions.push(subjectOf(name));
  if (description !== undefined) {
    const prev = await descriptionId();
    const attrs = { ...(description ? { id: generateMessageIDV2() } : { delete: "true" }), ...(prev ? { prev } : {}) };
    const content = [{ tag: "body", attrs: {}, content: new TextEncoder().encode(description) }];
    questions.push({ tag: "description", attrs, ...(description ? { content } : {}) });
  }
  if (announce !== undefined) flag(announce ? "announcement" : "not_announcement");
  if (locked !== undefined) flag(locked ? "locked" : "unlocked");
  if (ephemeral === 0) flag("not_ephemeral");
  if (ephemeral) questions.push({ tag: "ephemeral", attrs: { expiration: String(ephemeral) } });
  return questions;
}

/**
 * Builds a query that sets a picture, or removes it if `jpeg` is null. Without a target it is the line's own picture.
 */
export function pictureQuery(target: string | null, jpeg: Uint8Array | null): BinaryNode {
  const picture = jpeg ? { tag: "picture", attrs: { type: "image" }, content: jpeg } : undefined;
  const query = iq({ type: "set", xmlns: "w:profile:picture" }, picture);
  if (target) query.attrs.target = target;
  return query;
}

function toGroup(metadata: GroupMetadata, me: OwnJids): Group {
  const self = metadata.participants.find(({ id, lid, phoneNumber }) =>
    [id, lid, phoneNumber].some((jid) => jid !== undefined && isOwn(jid, me))
  );
  return {
    id: metadata.id,
    name: metadata.subject ?? "",
    description: metadata.desc ?? "",
    size: metadata.size ?? metadata.participants.length,
    isAdmin: Boolean(self?.admin),
    createdAt: (metadata.creation || 0) * 1000,
    ...(metadata.linkedParent
      ? { community: { id: metadata.linkedParent, isAnnouncement: metadata.isCommunityAnnounce ?? false } }
      : {}),
  };
}

function toWholeGroup(metadata: GroupMetadata, me: OwnJids): WholeGroup {
  return {
    ...toGroup(metadata, me),
    announce: metadata.announce ?? false,
    locked: metadata.restrict ?? false,
    ephemeral: metadata.ephemeralDuration ?? 0,
    participants: metadata.participants.map((one): GroupMember => ({
      id: one.id,
      number: numberIn(one.id, one.phoneNumber),
      ...usernameIn(one.username),
      isAdmin: Boolean(one.admin),
    })),
  };
}

/** The meanings of the error code on a participant. */
const ERRORS: Readonly<Record<string, { code: string; message: string }>> = {
  "401": { code: "blocked", message: "They have blocked the line." },
  "403": { code: "not_allowed", message: "They let nobody add them, or the line may not: send them the invitation." },
  "404": { code: "not_participant", message: "They are not in the group, or not on the messaging app." },
  "406": { code: "not_acceptable", message: "The network does not allow this for the participant." },
  "408": { code: "left_recently", message: "They left a while ago: send them the invitation." },
  "409": { code: "already_participant", message: "They are in the group already." },
  "419": { code: "group_full", message: "The group is full." },
};
const NOT_REGISTERED = { code: "number_not_registered", message: "The number is not on the messaging app." };

interface Named {
  /** As the caller gave it. */
  given: string;
  /** Null for a number that is not on the network. */
  jid: string | null;
}

/** Returns each participant's result, in the given order. `answers` are the network's `<participant>` nodes. */
function resultsOf(named: readonly Named[], answers: readonly BinaryNode[]): MemberResult[] {
  const byAddress = new Map(answers.flatMap((answer) => addressesOf(answer).map((jid) => [jid, answer])));
  const asked = named.filter(({ jid }) => jid !== null);
  return named.map((one) => {
    if (one.jid === null) return { number: one.given, error: NOT_REGISTERED };
    // The network may answer with an address unknown here. It keeps the order of the question, so match by position.
    const inOrder = answers.length === asked.length ? answers[asked.indexOf(one)] : undefined;
    const code = (byAddress.get(jidNormalizedUser(one.jid)) ?? inOrder)?.attrs.error;
    const refused = { code: "refused", message: `The network refused it (${code}).` };
    return { number: one.given, error: code === undefined || code === "200" ? null : ERRORS[code] ?? refused };
  });
}

function addressesOf({ attrs: { jid, phone_number, lid } }: BinaryNode): string[] {
  return [jid, phone_number, lid].flatMap((address) => address ? [jidNormalizedUser(address)] : []);
}

/** Whether any of the addresses belongs to an admin. */
export function hasAdmin({ participants }: GroupMetadata, addresses: readonly string[]): boolean {
  const isAmong = (jid: string | undefined) => jid && addresses.some((address) => areJidsSameUser(jid, address));
  return participants.some(({ admin, id, lid, phoneNumber }) => admin && [id, lid, phoneNumber].some(isAmong));
}

/** Returns the address and number of a `<participant>`, or of a person who asks to join. */
export function memberOf({ attrs }: BinaryNode): Omit<GroupMember, "isAdmin"> {
  const { jid = "", phone_number: phone, username } = attrs;
  return { id: jidNormalizedUser(jid), number: numberIn(jid, phone), ...usernameIn(username) };
}
