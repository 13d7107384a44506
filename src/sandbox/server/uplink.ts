/** Implements the phones' interface to the network (`world/uplink.ts`). */
import { type Account, deliver, type Endpoint, endpointsOf, jidOf } from "../world/directory.ts";
import { addressIn } from "../world/groups.ts";
import { KeyStore } from "../world/key_store.ts";
import { relayReceipt } from "../world/receipts.ts";
import { element, formOf, isLid, seconds } from "../world/stanza.ts";
import type { Switchboard } from "../world/switchboard.ts";
import type { Device, LinkAnswer, PhoneUplink } from "../world/uplink.ts";
import type { RefBook } from "./linking/ref_book.ts";

/** The collection of shared settings to which the sandbox's phones write. */
const PHONE_SETTINGS = "regular_high";

/** Creates the uplink. The phones that use it must have an account. */
export function createUplink(network: Switchboard, refs: RefBook): PhoneUplink {
  const { directory, groups, relay, runtime } = network;

  const accountOf = (phone: Device): Account => {
    const account = directory.resolve(phone.jid)?.account;
    if (!account) throw new Error("a phone without an account cannot use the network");
    return account;
  };

  return {
    media: network.media,

    submit(from, message) {
      const account = accountOf(from);
      const hideNumber = isLid(message.attrs.from);
      const { error } = relay.submit({ account, device: 0 }, message, { hideNumber });
      if (error) return error;
      // Writing to somebody allows them to answer.
      const peer = directory.resolve(message.attrs.to)?.account;
      if (peer) network.trust.issue(account, peer, { hideNumber });
      return null;
    },

    send(from, stanza) {
      const sender: Endpoint = { account: accountOf(from), device: 0 };
      switch (stanza.tag) {
        case "receipt":
          return relayReceipt(sender, stanza, network);
        case "chatstate":
          return network.presence.relayState(sender, stanza, { hideNumber: isLid(stanza.attrs.from) });
        case "call":
          return network.presence.relayCall(sender, stanza, { hideNumber: isLid(stanza.attrs.from) });
        case "notification": {
          const receiver = directory.resolve(stanza.attrs.to);
          const { to: _to, ...attributes } = stanza.attrs;
          const sent = { ...attributes, from: from.jid, t: seconds(runtime.clock.now()) };
          if (receiver) deliver(receiver, element("notification", sent, stanza.content));
          return;
        }
        default:
          // An ack: the network keeps nothing for phones, which are always online.
          return;
      }
    },

    publishKeys(device, bundle) {
      const account = accountOf(device);
      if (account.phoneKeys) account.phoneKeys.publish(bundle);
      else account.phoneKeys = new KeyStore(bundle);
    },

    takeBundle(jid) {
      const endpoint = directory.resolve(jid);
      return endpoint && network.takeKeys(endpoint);
    },

    devicesOf(user) {
      const account = directory.resolve(user)?.account;
      return account ? endpointsOf(account).map((endpoint) => jidOf(endpoint, formOf(user))) : [];
    },

    lidOf: (pnJid) => directory.resolve(pnJid)?.account.lid ?? null,
    pnOf: (lidJid) => directory.resolve(lidJid)?.account.jid ?? null,

    participantsOf(groupJid) {
      const group = groups.get(groupJid);
      return group?.participants.map((account) => addressIn(group, { account, device: 0 })) ?? [];
    },

    acceptQr(phone, ref, signedIdentity, primary): LinkAnswer {
      const account = accountOf(phone);
      const companion = refs.find(ref);
      if (!companion) {
        const deviceJid = refs.recall(ref, account.number);
        // The device may have been unlinked since.
        return deviceJid && directory.resolve(deviceJid) ? { kind: "linked", deviceJid } : { kind: "unknown_ref" };
      }
      const answer = companion.take(account, ref, { signedIdentity, primary });
      if (answer.kind === "linked") refs.remember(companion, { number: account.number, deviceJid: answer.deviceJid });
      return answer;
    },

    demandPasskey(phone, credential) {
      accountOf(phone).passkey = { credential, options: "notification" };
    },

    chatsOf(phone) {
      const account = accountOf(phone);
      const tokens = network.trust.tokensFor(account).map(({ issuer, hidden, ...given }) => {
        return { ...given, jid: hidden ? null : issuer.jid, lid: issuer.lid };
      });
      return { tokens, nctSalt: network.trust.saltOf(account) };
    },

    changeSettings(phone, patch) {
      network.changeSettings({ account: accountOf(phone), device: 0 }, PHONE_SETTINGS, [patch]);
    },

    beginSettings(phone, { name, patch }) {
      network.beginSettings(accountOf(phone), name, patch);
    },

    codeRequest: (phone) => refs.codeFor(accountOf(phone).number)?.request ?? null,

    answerCode(ref, hello) {
      const code = refs.find(ref)?.code;
      return code?.request?.ref === ref ? code.exchange(hello) : Promise.resolve(null);
    },
  };
}
