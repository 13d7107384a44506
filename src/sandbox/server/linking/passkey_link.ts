/**
 * The network's half of linking with a passkey. It has the owner sign a challenge, then relays prologue, nonces and the
 * encrypted request between the companion and the phone. A refusal ends the attempt, and the network starts another.
 */
import { Buffer } from "node:buffer";
import { proto } from "@whiskeysockets/baileys";
import type { Account } from "../../world/directory.ts";
import { type BinaryNode, bytesOf, child, element, elements, refusal, result } from "../../world/stanza.ts";
import type { Switchboard } from "../../world/switchboard.ts";
import type { PasskeyPrimary } from "../../world/uplink.ts";
import type { CompanionSocket } from "../companion_socket.ts";
import { type Challenge, newChallenge, requestOptions, verifies } from "./relying_party.ts";

/**
 * After this many refusals in a row, the network starts another attempt only when the phone scans the QR or enters the
 * code again.
 */
const ATTEMPTS = 5;
const BAD_REQUEST = "400";
const NOT_AUTHORIZED = "401";
/** The companion did not acknowledge a notification, so it seems not to support passkeys. */
const NOT_ACCEPTABLE = "406";
/** The account has an exchange with another companion in progress. */
const CONFLICT = "409";
/** The challenge has expired. */
const GONE = "410";

interface PasskeyLinkOptions {
  network: Switchboard;
  /** How long a challenge is valid, and how long the steps after it may take. */
  lifetimeMs: number;
  /** Returns a new ref for the companion. */
  issueRef(): string;
  /** Called when the phone has signed the companion's identity. */
  onSigned(account: Account, signedIdentity: Uint8Array): void;
}

/** The state of a companion. Each step leads to the next, or back to `asked`. */
type Step = "asked" | "verifying" | "proven" | "revealed" | "requested";

interface Link {
  account: Account;
  primary: PasskeyPrimary;
  step: Step;
  challenge: Challenge;
  /** The ref that the prologue must contain. */
  ref: string | null;
  /** Ids of the notifications that the companion has not acknowledged yet. */
  unacknowledged: Set<string>;
  refusals: number;
  cancelTimeout: () => void;
}

export class PasskeyLink {
  #socket: CompanionSocket;
  #options: PasskeyLinkOptions;
  #link: Link | null = null;

  constructor(socket: CompanionSocket, options: PasskeyLinkOptions) {
    this.#socket = socket;
    this.#options = options;
  }

  /** Called when the phone has accepted the companion: asks its owner to sign. An exchange in progress continues. */
  demand(account: Account, primary: PasskeyPrimary): void {
    if (this.#link && this.#link.step !== "asked") return;
    this.close();
    this.#ask({ account, primary, refusals: 0 });
  }

  /** The account whose owner has signed, while the exchange is in progress. */
  get signer(): Account | null {
    return this.#link && this.#link.step !== "asked" ? this.#link.account : null;
  }

  /** Called when the companion asks to be linked to this account: ends an exchange with another account. */
  endUnlessOf(account: Account): void {
    if (this.#link?.account !== account) this.close();
  }

  acknowledge(id: string | undefined): void {
    if (id !== undefined) this.#link?.unacknowledged.delete(id);
  }

  /** Answers a query of this exchange; returns false if it is not one. */
  take(query: BinaryNode): boolean {
    const link = this.#link;
    const [asked] = elements(query);
    if (!link || !asked || query.attrs.xmlns !== "md") return false;
    switch (`${query.attrs.type} ${asked.tag}`) {
      case "get ref":
        link.ref = this.#options.issueRef();
        this.#socket.send(result(query, [element("ref", {}, Buffer.from(link.ref))]));
        return true;
      case "get passkey_request_options":
        this.#socket.send(result(query, [this.#requestOptions(link)]));
        return true;
      case "set passkey_prologue":
        void this.#takePrologue(link, query, asked).catch((error) => this.#fail(link, error));
        return true;
      case "set companion_nonce":
        this.#takeNonce(link, query, asked);
        return true;
      case "set encrypted_pairing_request":
        void this.#takeRequest(link, query, asked).catch((error) => this.#fail(link, error));
        return true;
      default:
        return false;
    }
  }

  #ask({ account, primary, refusals }: Pick<Link, "account" | "primary" | "refusals">): void {
    const { network, lifetimeMs } = this.#options;
    const challenge = newChallenge(network.runtime, lifetimeMs);
    const link: Link = {
      account,
      primary,
      refusals,
      challenge,
      step: "asked",
      ref: null,
      unacknowledged: new Set(),
      cancelTimeout: network.runtime.clock.after(lifetimeMs, () => primary.end()),
    };
    this.#link = link;
    primary.ask();
    const sent = account.passkey?.options === "query" ? [] : [this.#requestOptions(link)];
    this.#notify(link, "passkey_prologue_request", sent);
  }

  async #takePrologue(link: Link, query: BinaryNode, prologue: BinaryNode): Promise<void> {
    const payload = bytesOf(child(prologue, "prologue_payload"));
    const wrong = this.#wrongPrologue(link, payload);
    if (wrong) return this.#refuse(link, query, wrong);
    link.step = "verifying";
    const verified = await verifies(bytesOf(child(prologue, "webauthn_assertion")), {
      challenge: link.challenge,
      credential: link.account.passkey!.credential,
      credentialId: bytesOf(child(prologue, "credential_id")),
    });
    if (this.#link !== link) return;
    if (!verified) return this.#refuse(link, query, NOT_AUTHORIZED);
    if (link.account.passkeyExchange) return this.#refuse(link, query, CONFLICT);
    const proof = child(prologue, "pairing_handoff_proof");
    if (proof && this.#options.network.faults.take(link.account.number, "no_continuation")) {
      link.challenge = newChallenge(this.#options.network.runtime, this.#options.lifetimeMs);
      link.step = "asked";
      return this.#socket.send(result(query));
    }
    link.account.passkeyExchange = link;
    link.step = "proven";
    link.cancelTimeout();
    link.cancelTimeout = this.#options.network.runtime.clock.after(this.#options.lifetimeMs, () => this.close());
    this.#socket.send(result(query));
    const identity = link.primary.begin(payload, proof ? bytesOf(proof) : null);
    this.#notify(link, "crsc_continuation", [element("primary_ephemeral_identity", {}, identity)]);
  }

  /** Checks a prologue, except its assertion; returns null if it is valid. */
  #wrongPrologue(link: Link, payload: Uint8Array): string | null {
    if (link.step !== "asked") return BAD_REQUEST;
    if (link.unacknowledged.size > 0) return NOT_ACCEPTABLE;
    if (this.#options.network.runtime.clock.now() >= link.challenge.expiresAt) return GONE;
    const { companionEphemeralIdentity, commitment } = proto.ProloguePayload.decode(payload);
    const { publicKey, ref } = proto.CompanionEphemeralIdentity.decode(companionEphemeralIdentity ?? new Uint8Array(0));
    const whole = publicKey?.length === 32 && commitment?.hash?.length === 32 && ref && ref === link.ref;
    return whole ? null : BAD_REQUEST;
  }

  #takeNonce(link: Link, query: BinaryNode, nonce: BinaryNode): void {
    if (link.step !== "proven") return this.#refuse(link, query, BAD_REQUEST);
    if (link.unacknowledged.size > 0) return this.#refuse(link, query, NOT_ACCEPTABLE);
    if (!link.primary.reveal(bytesOf(nonce))) return this.#refuse(link, query, NOT_AUTHORIZED);
    link.step = "revealed";
    this.#socket.send(result(query));
  }

  /** Accepts the request immediately. Linking continues once the owner has compared the codes, if that is required. */
  async #takeRequest(link: Link, query: BinaryNode, request: BinaryNode): Promise<void> {
    if (link.step !== "revealed") return this.#refuse(link, query, BAD_REQUEST);
    const opened = link.primary.open(bytesOf(request));
    if (!opened) return this.#refuse(link, query, NOT_AUTHORIZED);
    link.step = "requested";
    this.#socket.send(result(query));
    const signed = await opened;
    if (this.#link !== link || !signed) return;
    this.close();
    this.#options.onSigned(link.account, signed);
  }

  #requestOptions({ account, challenge }: Link): BinaryNode {
    const options = requestOptions(challenge, account.passkey!.credential, this.#options.lifetimeMs);
    return element("passkey_request_options", {}, options);
  }

  /** Refuses the query, ends its exchange, and asks the owner to sign again. */
  #refuse(link: Link, query: BinaryNode, code: string): void {
    this.#socket.send(refusal(query, code));
    this.close();
    const refusals = link.refusals + 1;
    if (refusals < ATTEMPTS) this.#ask({ ...link, refusals });
  }

  /** Disconnects a companion whose query was not a valid protobuf message. */
  #fail(link: Link, error: unknown): void {
    const { log } = this.#options.network.runtime;
    log.warn({ err: error, line: link.account.number }, "a companion violated the passkey protocol");
    this.close();
    this.#socket.cut();
  }

  /** Ends the exchange in progress. */
  close(): void {
    const link = this.#link;
    if (!link) return;
    this.#link = null;
    link.cancelTimeout();
    if (link.account.passkeyExchange === link) link.account.passkeyExchange = null;
    link.primary.end();
  }

  #notify(link: Link, type: string, content: BinaryNode[]): void {
    const notification = this.#options.network.notices.notification({ type }, content);
    link.unacknowledged.add(notification.attrs.id!);
    this.#socket.send(notification);
  }
}
