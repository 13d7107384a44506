/**
 * Queries about the devices of accounts. `usync`: whether a number has an account, and the account's devices and LID;
 * `encrypt`: uploading, counting and checking the companion's own keys, and fetching those of others.
 */
import type { Clock } from "../../runtime.ts";
import { type Account, type Directory, endpointsOf } from "../world/directory.ts";
import { bundleNodes, readBundle, readSignedPreKey } from "../world/key_store.ts";
import {
  type BinaryNode,
  child,
  childrenOf,
  element,
  elements,
  makeJid,
  parseJid,
  refusal,
  result,
  seconds,
  textOf,
} from "../world/stanza.ts";
import type { QueryContext } from "../world/switchboard.ts";

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

/** Answers the look-up of a username: nobody's is out, and without its key the answer names no account. */
function answerUsername(contact: BinaryNode, { network }: QueryContext): BinaryNode {
  const { username = "", pin } = contact.attrs;
  const account = network.directory.named(username);
  if (!account) return element("user", {}, [element("contact", { type: "out", username })]);
  const isOpen = account.username!.pin === null || account.username!.pin === pin;
  return element("user", { jid: isOpen ? account.lid : undefined }, [element("contact", { type: "in", username })]);
}

function answerUser(user: BinaryNode, protocols: string[], context: QueryContext): BinaryNode {
  const { companion, network } = context;
  const { directory } = network;
  const contact = child(user, "contact");
  if (contact?.attrs.username !== undefined) return answerUsername(contact, context);
  const digits = textOf(child(user, "contact")).replace(/\D/g, "");
  const asked = parseJid(user.attrs.jid);
  const account = asked ? directory.resolve(user.attrs.jid)?.account : accountOf(digits, directory);
  const jid = asked ? makeJid(asked.user, asked.server) : account?.jid ?? makeJid(digits, "s.whatsapp.net");
  if (!account) {
    const absent = protocols.includes("contact") ? [element("contact", { type: "out" })] : [];
    return element("user", { jid }, absent);
  }
  if (protocols.includes("devices")) account.watchers.add(companion.account);
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
  const number = byLid && protocols.includes("lid") && !account.hidesNumber ? account.jid : undefined;
  return element("user", { jid, pn_jid: number }, answers);
}

/** Mobile numbers with and without the digit that people leave out or add: in Brazil, Mexico and Argentina. */
const SPELLINGS: [RegExp, string][] = [
  [/^55(\d\d)(\d{8})$/, "55$19$2"],
  [/^55(\d\d)9(\d{8})$/, "55$1$2"],
  [/^52(\d{10})$/, "521$1"],
  [/^521(\d{10})$/, "52$1"],
  [/^54(\d{10})$/, "549$1"],
  [/^549(\d{10})$/, "54$1"],
];

/** Finds the account of a number as a person writes it; the network's answer names the account's own number. */
function accountOf(digits: string, directory: Directory): Account | null {
  const spellings = SPELLINGS.flatMap(([form, other]) => form.test(digits) ? [digits.replace(form, other)] : []);
  return [digits, ...spellings].map((number) => directory.account(number)).find((account) => account !== null) ?? null;
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
    element("key-index-list", { ts: seconds(clock.now()) }),
  ]);
}

export function answerKeys(query: BinaryNode, context: QueryContext): BinaryNode | null {
  const { keys } = context.companion;
  if (query.attrs.type === "set") {
    const rotated = child(query, "rotate");
    if (rotated) {
      const signedPreKey = readSignedPreKey(child(rotated, "skey"));
      if (!signedPreKey) return refusal(query, "400");
      keys.rotate(signedPreKey);
      return result(query);
    }
    const bundle = readBundle(query);
    if (!bundle) return refusal(query, "400");
    keys.publish(bundle);
    return result(query);
  }
  if (child(query, "count")) return result(query, [element("count", { value: String(keys.preKeyCount) })]);
  if (child(query, "digest")) return result(query, [keys.digest()]);
  if (child(query, "key")) return result(query, [element("list", {}, fetchKeys(query, context))]);
  return null;
}

function fetchKeys(query: BinaryNode, { network }: QueryContext): BinaryNode[] {
  return childrenOf(child(query, "key"), "user").map(({ attrs: { jid } }) => {
    const endpoint = network.directory.resolve(jid);
    const bundle = endpoint && network.takeKeys(endpoint);
    if (!bundle) return element("user", { jid }, [element("error", { code: "404", text: "item-not-found" })]);
    const companion = endpoint.account.companions.get(endpoint.device);
    const identity = companion ? [element("device-identity", {}, companion.identity)] : [];
    return element("user", { jid }, [...bundleNodes(bundle), ...identity]);
  });
}
