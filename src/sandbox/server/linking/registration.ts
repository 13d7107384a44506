/**
 * A companion that is not linked yet. It shows refs as QR codes, or asks to be linked by a code, until a phone answers
 * with an ADV identity. The companion must then prove its own identity (the device signature). After that it is linked,
 * and told to log in (515).
 */
import { Buffer } from "node:buffer";
import { proto } from "@whiskeysockets/baileys";
import { verify } from "../../../base/xeddsa.ts";
import { type Account, jidOf, newCompanion } from "../../world/directory.ts";
import { streamError } from "../../world/faults.ts";
import type { KeyBundle } from "../../world/key_store.ts";
import { type BinaryNode, bytesOf, child, element, refusal, result, seconds, SERVER } from "../../world/stanza.ts";
import type { Switchboard } from "../../world/switchboard.ts";
import type { LinkAnswer } from "../../world/uplink.ts";
import type { CompanionSocket, SocketOwner } from "../companion_socket.ts";
import { CodeLink } from "./code_link.ts";
import { PasskeyLink } from "./passkey_link.ts";
import type { LinkOffer, RefBook, WaitingCompanion } from "./ref_book.ts";

/** A client shows the first ref for 60 s and each of the others for 20 s. */
const REFS = 6;
/** A companion that takes longer for its proof is disconnected. */
const PROOF_TIMEOUT_MS = 20_000;
/** The two forms of the notification that asks for a new QR secret. */
const REFRESH_FORMS = ["companion_reg_refresh", "pair-device-rotate-qr"] as const;

/** What the client proved and stated when it registered. */
interface RegistrationRequest {
  /** Hex. */
  noisePublic: string;
  bundle: KeyBundle;
}

export interface RegistrationOptions {
  network: Switchboard;
  refs: RefBook;
  /** Whether the network answers the first scan by asking the companion for a new QR secret, as the real one does. */
  refresh: boolean;
  /** How long a companion's code is valid before it is asked for another. */
  codeLifetimeMs: number;
  /** How long the owner has to sign with a passkey, and how long the steps after that may take. */
  passkeyLifetimeMs: number;
}

/** The state of a companion between the phone's answer and the companion's proof. */
interface Pending {
  account: Account;
  signed: proto.IADVSignedDeviceIdentity;
  queryId: string;
  device: number;
  cancelTimeout: () => void;
  settle: (linked: boolean) => void;
}

export class Registration implements SocketOwner, WaitingCompanion {
  readonly code: CodeLink;
  #passkey: PasskeyLink;
  #socket: CompanionSocket;
  #request: RegistrationRequest;
  #options: RegistrationOptions;
  #refreshStage: "none" | "due" | "asked" | "acknowledged";
  #refreshId: string | null = null;
  #pending: Pending | null = null;

  constructor(socket: CompanionSocket, request: RegistrationRequest, options: RegistrationOptions) {
    this.#socket = socket;
    this.#request = request;
    this.#options = options;
    this.#refreshStage = options.refresh ? "due" : "none";
    const { network, refs, codeLifetimeMs, passkeyLifetimeMs } = options;
    this.code = new CodeLink(socket, {
      network,
      codeLifetimeMs,
      issueRef: (account) => {
        this.#passkey.endUnlessOf(account);
        return refs.issue(this);
      },
      forgetRef: (ref) => refs.forget(ref),
    });
    this.#passkey = new PasskeyLink(socket, {
      network,
      lifetimeMs: passkeyLifetimeMs,
      issueRef: () => refs.issue(this),
      onSigned: (account, signedIdentity) => {
        refs.remember(this, { number: account.number, deviceJid: this.#accept(account, signedIdentity) });
      },
    });
  }

  /** Sends the refs for the QR codes. */
  start(): void {
    const { network, refs } = this.#options;
    const nodes = Array.from({ length: REFS }, () => element("ref", {}, Buffer.from(refs.issue(this))));
    this.#socket.send(
      element("iq", { from: SERVER, id: network.notices.stanzaId(), type: "set", xmlns: "md" }, [
        element("pair-device", {}, nodes),
      ]),
    );
  }

  onStanza(stanza: BinaryNode): void {
    if (stanza.tag === "ack" && stanza.attrs.id === this.#refreshId) {
      this.#refreshStage = "acknowledged";
      return;
    }
    if (stanza.tag === "ack") return this.#passkey.acknowledge(stanza.attrs.id);
    if (stanza.tag !== "iq") return;
    if (stanza.attrs.type === "result" || stanza.attrs.type === "error") return this.#takeProof(stanza);
    const link = child(stanza, "link_code_companion_reg");
    if (link) return this.code.answer(stanza, link);
    if (this.#passkey.take(stanza)) return;
    if (stanza.attrs.xmlns === "w:p") return this.#socket.send(result(stanza));
    this.#socket.send(refusal(stanza, "401"));
  }

  onClose(): void {
    this.#pending?.cancelTimeout();
    this.#pending?.settle(false);
    this.#options.refs.withdraw(this);
    this.code.close();
    this.#passkey.close();
  }

  /**
   * Takes a phone's offer. With the refresh stage, the first scan of a QR only asks the companion for a new secret; in
   * a link with a passkey the companion makes one without being asked.
   */
  take(account: Account, ref: string, { signedIdentity, primary }: LinkOffer): LinkAnswer {
    const taker = this.#pending?.account ?? this.#passkey.signer;
    if (taker && taker !== account) return { kind: "unknown_ref" };
    const { faults, runtime } = this.#options.network;
    if (faults.take(account.number, "early_success")) {
      this.#socket.send(element("success", { t: seconds(runtime.clock.now()), location: "sbx" }));
    }
    if (account.passkey && !this.#pending) {
      this.#passkey.demand(account, primary);
      return { kind: "passkey" };
    }
    if (this.code.request?.ref !== ref) {
      if (this.#refreshStage === "due") this.#askRefresh();
      // Without the ack the network assumes that the companion cannot refresh, and never links it.
      if (this.#refreshStage === "asked") return { kind: "refresh" };
    }
    this.#passkey.close();
    return { kind: "linked", deviceJid: this.#accept(account, signedIdentity) };
  }

  /** Sends the phone's identity to the companion, which must answer with its own signature. Does so only once. */
  #accept(account: Account, signedIdentity: Uint8Array): string {
    const { network } = this.#options;
    if (this.#pending) return jidOf({ account, device: this.#pending.device }, "pn");
    const { details } = proto.ADVSignedDeviceIdentityHMAC.decode(signedIdentity);
    const device = account.nextDeviceId++;
    const deviceJid = jidOf({ account, device }, "pn");
    const linking = Promise.withResolvers<boolean>();
    network.linkings.set(deviceJid, linking.promise);
    this.#pending = {
      account,
      signed: proto.ADVSignedDeviceIdentity.decode(details ?? new Uint8Array(0)),
      queryId: network.notices.stanzaId(),
      device,
      cancelTimeout: network.runtime.clock.after(PROOF_TIMEOUT_MS, () => this.#socket.cut()),
      settle: linking.resolve,
    };
    this.code.close();
    const isChatDbLidMigrated = account.addressing !== "pn";
    const attributes = {
      from: SERVER,
      id: this.#pending.queryId,
      type: "set",
      xmlns: "md",
      t: seconds(network.runtime.clock.now()),
    };
    this.#socket.send(element("iq", attributes, [
      element("pair-success", {}, [
        element("device-identity", {}, signedIdentity),
        element("platform", { name: "android" }),
        element("device", { jid: deviceJid, lid: jidOf({ account, device }, "lid") }),
        element("client-props", {}, proto.ClientPairingProps.encode({ isChatDbLidMigrated }).finish()),
      ]),
    ]));
    return deviceJid;
  }

  #askRefresh(): void {
    const { network } = this.#options;
    const form = REFRESH_FORMS[network.runtime.random.between(0, REFRESH_FORMS.length - 1)]!;
    const notification = network.notices.notification({ type: "companion_reg_refresh" }, [element(form)]);
    this.#refreshStage = "asked";
    this.#refreshId = notification.attrs.id!;
    this.#socket.send(notification);
  }

  /** Takes the answer to pair-success: the companion's signature over the identity, by the key that it registered. */
  #takeProof(answer: BinaryNode): void {
    const pending = this.#pending;
    if (!pending || answer.attrs.id !== pending.queryId) return;
    const { network } = this.#options;
    pending.cancelTimeout();
    const identityNode = child(child(answer, "pair-device-sign"), "device-identity");
    const identity = signedByCompanion(bytesOf(identityNode), pending.signed, this.#request.bundle.identityKey);
    if (!identity) {
      network.runtime.log.warn({ line: pending.account.number }, "a companion's proof was rejected");
      return this.#socket.end(element("stream:error", { code: "401" }, [element("not-authorized")]));
    }
    const { keyIndex } = proto.ADVDeviceIdentity.decode(pending.signed.details ?? new Uint8Array(0));
    network.addCompanion(newCompanion(pending, {
      noisePublic: this.#request.noisePublic,
      keyIndex: keyIndex ?? pending.device,
      identity,
      keys: this.#request.bundle,
      linkedAt: network.runtime.clock.now(),
    }));
    pending.settle(true);
    this.#socket.end(streamError("restart"));
  }
}

/** Prefix of the data that the companion's signature covers (protocol constant). */
const DEVICE_SIGNATURE_PREFIX = Uint8Array.of(6, 1);

/** Returns the encoded identity with both signatures; null if the companion's signature is missing or wrong. */
function signedByCompanion(
  reply: Uint8Array,
  offered: proto.IADVSignedDeviceIdentity,
  companionKey: Uint8Array,
): Uint8Array | null {
  const { deviceSignature } = proto.ADVSignedDeviceIdentity.decode(reply);
  const { details, accountSignatureKey } = offered;
  if (!deviceSignature?.length || !details || !accountSignatureKey) return null;
  const signed = Buffer.concat([DEVICE_SIGNATURE_PREFIX, details, companionKey, accountSignatureKey]);
  if (!verify(companionKey, signed, deviceSignature)) return null;
  return proto.ADVSignedDeviceIdentity.encode({ ...offered, deviceSignature }).finish();
}
