/** The network's notifications to companions. Each is kept until the companion acknowledges it. */
import { Buffer } from "node:buffer";
import type { Runtime } from "../../runtime.ts";
import { type Account, type Companion, type Endpoint, endpointsOf, jidOf, participantHash } from "./directory.ts";
import { type Attributes, type BinaryNode, element, seconds, SERVER } from "./stanza.ts";
import type { Restrictions } from "./trust.ts";

export class Notices {
  #runtime: Runtime;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** Returns a new id for a stanza that originates from the network itself. */
  stanzaId(): string {
    return Buffer.from(this.#runtime.random.bytes(8)).toString("hex");
  }

  /** Returns a notification that originates from the network itself, unless `attributes` say otherwise. */
  notification(attributes: Attributes, content: BinaryNode[]): BinaryNode {
    const t = seconds(this.#runtime.clock.now());
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

  /** Notifies the companion that its one-time keys run low. */
  lowKeys(companion: Companion): void {
    const count = element("count", { value: String(companion.keys.preKeyCount) });
    this.tellOne(companion, { type: "encrypt" }, [count]);
  }

  /**
   * Notifies the account's other companions, and everybody who queried its devices, of a change to its devices. The
   * hashes are those of the device lists after the change.
   */
  devices({ account, id, keyIndex }: Companion, change: "add" | "remove"): void {
    const endpoint = { account, device: id };
    const remaining = endpointsOf(account).filter(({ device }) => device !== id);
    const left = change === "add" ? [...remaining, endpoint] : remaining;
    const device = element("device", {
      jid: jidOf(endpoint, "pn"),
      lid: jidOf(endpoint, "lid"),
      "key-index": String(keyIndex),
    });
    this.tell([account, ...account.watchers], { from: account.jid, lid: account.lid, type: "devices" }, [
      element(change, {
        device_hash: participantHash(left.map((one) => jidOf(one, "pn"))),
        device_lid_hash: participantHash(left.map((one) => jidOf(one, "lid"))),
      }, [device]),
    ]);
  }

  /** Notifies the account's other companions that a device changed the shared settings. */
  settings({ account, device }: Endpoint, { name, version }: { name: string; version: number }): void {
    const collection = element("collection", { name, version: String(version) });
    for (const companion of account.companions.values()) {
      if (companion.id !== device) this.tellOne(companion, { type: "server_sync" }, [collection]);
    }
  }

  /** Notifies everybody who queried the account's devices of its new LID. */
  lidChange({ lid, watchers }: Account, old: string): void {
    this.#tellMex(watchers, "LidChangeNotification", { xwa2_notify_lid_change: { old, new: lid } });
  }

  /** Notifies the owner's companions, and everybody who queried the account's devices, of its username. */
  username(account: Account): void {
    const { jid, lid, username, watchers } = account;
    this.tell([account], { from: jid, type: "account_sync" }, [element("username", { action: "modify" })]);
    const others = [...watchers].filter((one) => one !== account);
    if (username === null) {
      this.#tellMex(others, "UsernameDeleteNotification", { xwa2_notify_username_delete: { lid } });
    } else {
      const data = { lid, username: username.name };
      this.#tellMex(others, "UsernameSetNotification", { xwa2_notify_username_on_change: data });
    }
  }

  #tellMex(accounts: Iterable<Account>, op_name: string, data: Record<string, unknown>): void {
    const update = element("update", { op_name }, Buffer.from(JSON.stringify({ data })));
    this.tell(accounts, { type: "mex" }, [update]);
  }

  /** Notifies the holder's companions of a token that allows it to write to the issuer. */
  token(issuer: Account, holder: Account, { token, hidden }: { token: Uint8Array; hidden: boolean }): void {
    const t = seconds(this.#runtime.clock.now());
    const from = hidden ? issuer.lid : issuer.jid;
    this.tell([holder], { from, sender_lid: issuer.lid, type: "privacy_token" }, [
      element("tokens", {}, [element("token", { jid: holder.jid, type: "trusted_contact", t }, token)]),
    ]);
  }

  /** Notifies the account's companions of a change to its restriction or cap. */
  restrictions(account: Account, restrictions: Restrictions): void {
    const updates: Record<string, Record<string, unknown>> = {
      NotificationUserReachoutTimelockUpdate: { xwa2_notify_account_reachout_timelock: timelockJson(restrictions) },
      MessageCappingInfoNotification: { xwa2_notify_new_chat_messages_capping_info_update: cappingJson(restrictions) },
    };
    for (const [name, data] of Object.entries(updates)) this.#tellMex([account], name, data);
  }
}

/** Returns the reach-out time lock in its GraphQL form; times are Unix seconds in strings. */
export function timelockJson({ restrictedUntil }: Restrictions): Record<string, unknown> {
  return {
    is_active: restrictedUntil > 0,
    time_enforcement_ends: seconds(restrictedUntil),
    enforcement_type: restrictedUntil > 0 ? "WEB_COMPANION_ONLY" : "DEFAULT",
  };
}

/** Returns the cap on new chats in its GraphQL form. */
export function cappingJson({ cap, started }: Restrictions): Record<string, unknown> {
  if (!cap) return { total_quota: 0, used_quota: 0, capping_status: "NONE" };
  return {
    total_quota: cap.limit,
    used_quota: started,
    cycle_end_timestamp: seconds(cap.until),
    capping_status: started >= cap.limit ? "CAPPED" : "NONE",
  };
}
