/** Group participants as the network names them, and the outcome of an action for each. */
import { areJidsSameUser, type BinaryNode, type GroupMetadata, jidNormalizedUser } from "@whiskeysockets/baileys";
import type { GroupMember, MemberResult } from "../../groups.ts";
import { numberIn } from "../jids.ts";

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

export interface Named {
  /** As the caller gave it. */
  given: string;
  /** Null for a number that is not on the network. */
  jid: string | null;
}

/** Returns each participant's result, in the given order. `answers` are the network's `<participant>` nodes. */
export function resultsOf(named: readonly Named[], answers: readonly BinaryNode[]): MemberResult[] {
  const byAddress = new Map(answers.flatMap((answer) => addressesOf(answer).map((jid) => [jid, answer])));
  const asked = named.filter(({ jid }) => jid !== null);
  return named.map((one) => {
    if (one.jid === null) return { number: one.given, error: NOT_REGISTERED };
    // The network may answer with an address unknown here. It keeps the order of the question, so match by position.
    const inOrder = answers.length === asked.length ? answers[asked.indexOf(one)] : undefined;
    const code = (byAddress.get(jidNormalizedUser(one.jid)) ?? inOrder)?.attrs.error;
    return { number: one.given, error: code === undefined || code === "200" ? null : errorOf(code) };
  });
}

function errorOf(code: string): { code: string; message: string } {
  return ERRORS[code] ?? { code: "refused", message: `The network refused it (${code}).` };
}

function addressesOf({ attrs: { jid, phone_number, lid } }: BinaryNode): string[] {
  return [jid, phone_number, lid].flatMap((address) => address ? [jidNormalizedUser(address)] : []);
}

/** Whether any of the addresses belongs to an admin. */
export function hasAdmin({ participants }: GroupMetadata, addresses: readonly string[]): boolean {
  const admins = participants.filter(({ admin }) => admin).flatMap((
    { id, lid, phoneNumber },
  ) => [id, lid, phoneNumber]);
  return admins.some((admin) => admin && addresses.some((address) => areJidsSameUser(admin, address)));
}

/** Returns the address and number of a `<participant>`, or of a person who asks to join. */
export function memberOf({ attrs }: BinaryNode): Omit<GroupMember, "isAdmin"> {
  const { jid = "", phone_number: phone } = attrs;
  return { id: jidNormalizedUser(jid), number: numberIn(jid, phone) };
}
