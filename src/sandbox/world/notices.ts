/** The network's notifications to companions, each kept until the companion acknowledges it. */
import { Buffer } from "node:buffer";
import type { Runtime } from "../../runtime.ts";
import { type Account, type Companion, type Directory, type Endpoint, endpointsOf, jidOf } from "./directory.ts";
import { participantHash } from "./participant_hash.ts";
import { type Attributes, type BinaryNode, element, seconds, SERVER } from "./stanza.ts";
import type { Standing } from "./trust.ts";

export class Notices {
  #directory: Directory;
  #runtime: Runtime;

  constructor(directory: Directory, runtime: Runtime) {
    this.#directory = directory;
    this.#runtime = runtime;
  }

  /** A fresh id for a stanza that the network itself sends. */
  stanzaId(): string {
    return Buffer.from(this.#runtime.random.bytes(8)).toString("hex");
  }

  /** A notification of the network itself. */
  notification(attributes: Attributes, content: BinaryNode[]): BinaryNode {
    const t = seconds(this.#runtime.clock);
    return element("notification", { from: SERVER, id: this.stanzaId(), t, ...attributes }, content);
  }

  /** Notifies every companion of these accounts, which must acknowledge it. */
  tell(accounts: Iterable<Account>, attributes: Attributes, content: BinaryNode[]): void {
    for (const account of new Set(accounts)) {
      for (const companion of account.companions.values()) this.tellOne(companion, attributes, content);
    }
  }

  tellOne({ mailbox }: Companion, attributes: Attributes, content: BinaryNode[]): void {
    mailbox.put(this.notification(attributes, content));
  }

  /** The companion's one-time keys run low. */
  lowKeys(companion: Companion): void {
    const count = element("count", { value: String(companion.keys.preKeyCount) });
    this.tellOne(companion, { type: "encrypt" }, [count]);
  }

  /**
   * The account's other companions, and everybody who asked for its devices, learn of a change, so that none is left out. The
   * hashes are of the lists as they are after it.
   */
  devices({ account, id, keyIndex }: Companion, change: "add" | "remove"): void {
    const watchers = [...account.watchers].flatMap((number) => this.#directory.account(number) ?? []);
    const endpoint = { account, device: id };
    const remaining = endpointsOf(account).filter(({ device }) => device !== id);
    const left = change === "add" ? [...remaining, endpoint] : remaining;
    const device = element("device", {
      jid: jidOf(endpoint, "pn"),
      lid: jidOf(endpoint, "lid"),
      "key-index": String(keyIndex),
    });
    this.tell([account, ...watchers], { from: account.jid, lid: account.lid, type: "devices" }, [
      element(change, {
        device_hash: participantHash(left.map((one) => jidOf(one, "pn"))),
        device_lid_hash: participantHash(left.map((one) => jidOf(one, "lid"))),
      }, [device]),
    ]);
  }

  /** A device changed settings that the account's devices share; the other companions learn of it. */
  settings({ account, device }: Endpoint, { name, version }: { name: string; version: number }): void {
    const collection = element("collection", { name, version: String(version) });
    for (const companion of account.companions.values()) {
      if (companion.id !== device) this.tellOne(companion, { type: "server_sync" }, [collection]);
    }
  }

  /** The issuer lets the holder write to it. */
  token(issuer: Account, holder: Account, token: Uint8Array): void {
    const t = seconds(this.#runtime.clock);
    this.tell([holder], { from: issuer.jid, sender_lid: issuer.lid, type: "privacy_token" }, [
      element("tokens", {}, [element("token", { jid: holder.jid, type: "trusted_contact", t }, token)]),
    ]);
  }

  /** What the account may do has changed. */
  standing(account: Account, standing: Standing): void {
    const updates = {
      NotificationUserReachoutTimelockUpdate: { xwa2_notify_account_reachout_timelock: timelockJson(standing) },
      MessageCappingInfoNotification: { xwa2_notify_new_chat_messages_capping_info_update: cappingJson(standing) },
    };
    for (const [op_name, data] of Object.entries(updates)) {
      const update = element("update", { op_name }, Buffer.from(JSON.stringify({ data })));
      this.tell([account], { type: "mex" }, [update]);
    }
  }
}

/** The reach-out time lock as GraphQL has it; times are Unix seconds in strings. */
export function timelockJson({ restrictedUntil }: Standing): Record<string, unknown> {
  return {
    is_active: restrictedUntil > 0,
    time_enforcement_ends: String(Math.floor(restrictedUntil / 1000)),
    enforcement_type: restrictedUntil > 0 ? "WEB_COMPANION_ONLY" : "DEFAULT",
  };
}

/** How many chats may be started, as GraphQL has it. */
export function cappingJson({ cap, started }: Standing): Record<string, unknown> {
  if (!cap) return { total_quota: 0, used_quota: 0, capping_status: "NONE" };
  return {
    total_quota: cap.limit,
    used_quota: started,
    cycle_end_timestamp: String(Math.floor(cap.until / 1000)),
    capping_status: started >= cap.limit ? "CAPPED" : "NONE",
  };
}
