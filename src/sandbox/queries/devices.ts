/**
 * Queries about the devices of accounts. `usync`: whether a number has an account, and the account's devices and LID;
 * `encrypt`: uploading, counting and checking the companion's own keys, and fetching those of others.
 */
import type { Clock } from "../../runtime.ts";
import { type Account, endpointsOf } from "../world/directory.ts";
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

function answerUser(user: BinaryNode, protocols: string[], { companion, network }: QueryContext): BinaryNode {
  const digits = textOf(child(user, "contact")).replace(/\D/g, "");
  const asked = parseJid(user.attrs.jid);
  const jid = asked ? makeJid(asked.user, asked.server) : makeJid(digits, "s.whatsapp.net");
  const account = network.directory.resolve(jid)?.account ?? null;
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
