/** Queries of `usync`: whether a number has an account, and the account's devices and LID. */
import { makeJid, parseJid } from "../world/address.ts";
import { type Account, endpointsOf } from "../world/directory.ts";
import { type BinaryNode, child, element, elements, result, seconds, textOf } from "../world/stanza.ts";
import type { QueryContext } from "./query.ts";
import type { Clock } from "../../runtime.ts";

export function answerUsync(query: BinaryNode, context: QueryContext): BinaryNode | null {
  const usync = child(query, "usync");
  const list = child(usync, "list");
  if (!usync || !list) return null;
  const protocols = elements(child(usync, "query")).map(({ tag }) => tag);
  const users = elements(list).map((user) => answerUser(user, protocols, context));
  const { sid, index, last, mode, context: purpose } = usync.attrs;
  return result(query, [
    element("usync", { sid, index, last, mode, context: purpose }, [
      element("result", {}, protocols.map((protocol) => element(protocol))),
      element("list", {}, users),
    ]),
  ]);
}

function answerUser(user: BinaryNode, protocols: string[], { companion, network }: QueryContext): BinaryNode {
  const digits = textOf(child(user, "contact")).replace(/\D/g, "");
  const asked = parseJid(user.attrs.jid);
  const jid = asked ? makeJid(asked.user, asked.server) : makeJid(digits, "s.whatsapp.net");
  const account = network.directory.resolve(jid)?.account ?? null;
  if (!account) {
    const absent = protocols.includes("contact") ? [element("contact", { type: "out" })] : [];
    return element("user", { jid }, absent);
  }
  if (protocols.includes("devices")) account.watchers.add(companion.account.number);
  const byLid = asked?.server === "lid";
  const answers = protocols.flatMap((protocol) => {
    switch (protocol) {
      case "contact":
        return [element("contact", { type: "in" })];
      case "devices":
        return [deviceList(account, network.runtime.clock)];
      case "lid":
        // Without the LID a client cannot encrypt for a phone number. A user requested by LID needs no other.
        return byLid ? [] : [element("lid", { val: account.lid })];
      case "status":
        return [element("status", { t: "0" }, account.about)];
      case "disappearing_mode":
        return [element("disappearing_mode", { duration: "0", t: "0" })];
      default:
        return [];
    }
  });
  // A query by LID for the LID returns the phone number.
  const number = byLid && protocols.includes("lid") ? account.jid : undefined;
  return element("user", { jid, pn_jid: number }, answers);
}

function deviceList(account: Account, clock: Clock): BinaryNode {
  const devices = endpointsOf(account).map(({ device }) => {
    const keyIndex = account.companions.get(device)?.keyIndex;
    return element("device", {
      id: String(device),
      "key-index": keyIndex === undefined ? undefined : String(keyIndex),
    });
  });
  return element("devices", {}, [
    element("device-list", { hash: "2:sandbox" }, devices),
    element("key-index-list", { ts: seconds(clock) }),
  ]);
}
