/**
 * The network's half of linking by code (`link_code_companion_reg`). It carries companion_hello, primary_hello and
 * companion_finish between the companion and the phone on which the code was entered, and cannot read the secrets in
 * them.
 */
import { Buffer } from "node:buffer";
import type { CompanionSocket } from "../companion_socket.ts";
import type { Account } from "../../world/directory.ts";
import type { CodeRequest, CompanionFinish, PrimaryHello } from "../../world/uplink.ts";
import type { Switchboard } from "../../world/switchboard.ts";
import {
  type Attributes,
  type BinaryNode,
  bytesOf,
  child,
  element,
  refusal,
  result,
  textOf,
} from "../../world/stanza.ts";

/** How long a companion has to answer primary_hello. */
const FINISH_TIMEOUT_MS = 30_000;
/** Salt, IV and the encrypted key. */
const WRAPPED_KEY_BYTES = 80;
/** The required form of a companion's display name: "Chrome (Mac OS)". */
const DISPLAY_NAME = /^[A-Za-z]{2,20} \((Windows|Mac OS|Linux|Android|iOS)\)$/;

interface CodeLinkOptions {
  network: Switchboard;
  /** How long a companion's code is valid before it is asked for another. */
  codeLifetimeMs: number;
  /** Returns a new ref by which the phone of this account finds the companion. */
  issueRef(account: Account): string;
  forgetRef(ref: string): void;
}

/** With the number on whose phone the code is to be entered. */
type AddressedRequest = CodeRequest & { number: string };

export class CodeLink {
  #socket: CompanionSocket;
  #options: CodeLinkOptions;
  #request: AddressedRequest | null = null;
  #finish: ((finish: CompanionFinish | null) => void) | null = null;
  #cancelExpiry: () => void = () => {};

  constructor(socket: CompanionSocket, options: CodeLinkOptions) {
    this.#socket = socket;
    this.#options = options;
  }

  /** The companion's last companion_hello; null if it asked for no code or its code has expired. */
  get request(): AddressedRequest | null {
    return this.#request;
  }

  /** Answers the companion's queries of this exchange. */
  answer(query: BinaryNode, link: BinaryNode): void {
    if (link.attrs.stage === "companion_hello") return this.#takeHello(query, link);
    if (link.attrs.stage === "companion_finish") return this.#takeFinish(query, link);
    this.#socket.send(refusal(query, "400"));
  }

  /** Sends primary_hello; resolves to companion_finish, or to null if the companion does not answer. */
  exchange(hello: PrimaryHello): Promise<CompanionFinish | null> {
    const request = this.#request;
    if (!request) return Promise.resolve(null);
    this.#finish?.(null);
    return new Promise((resolve) => {
      const cancelTimeout = this.#options.network.runtime.clock.after(FINISH_TIMEOUT_MS, () => this.#finish?.(null));
      this.#finish = (finish) => {
        cancelTimeout();
        this.#finish = null;
        resolve(finish);
      };
      this.#notify("primary_hello", [
        element("link_code_pairing_wrapped_primary_ephemeral_pub", {}, hello.wrappedEphemeral),
        element("primary_identity_pub", {}, hello.identityPublic),
        element("link_code_pairing_ref", {}, Buffer.from(request.ref)),
      ]);
    });
  }

  close(): void {
    this.#cancelExpiry();
    this.#finish?.(null);
    this.#request = null;
  }

  #takeHello(query: BinaryNode, link: BinaryNode): void {
    const { network, codeLifetimeMs, issueRef, forgetRef } = this.#options;
    const account = network.directory.resolve(link.attrs.jid)?.account;
    if (!account) return this.#socket.send(refusal(query, "404"));
    const refused = network.faults.take(account.number, "refuse_code");
    if (refused) return this.#socket.send(refusal(query, refused.code, refused));
    const wrappedEphemeral = bytesOf(child(link, "link_code_pairing_wrapped_companion_ephemeral_pub"));
    const authKey = bytesOf(child(link, "companion_server_auth_key_pub"));
    const isNamed = DISPLAY_NAME.test(textOf(child(link, "companion_platform_display")));
    // A zero byte in WhatsApp Web, the digit in older clients.
    const nonce = bytesOf(child(link, "link_code_pairing_nonce"));
    const isWhole = wrappedEphemeral.length === WRAPPED_KEY_BYTES && authKey.length === 32 && nonce.length === 1;
    if (!isWhole || !isNamed) return this.#socket.send(refusal(query, "400"));
    if (this.#request) forgetRef(this.#request.ref);
    this.close();
    const ref = issueRef(account);
    this.#request = { ref, wrappedEphemeral, number: account.number };
    this.#cancelExpiry = network.runtime.clock.after(codeLifetimeMs, () => this.#expire());
    this.#socket.send(result(query, [
      element("link_code_companion_reg", { stage: "companion_hello" }, [
        element("link_code_pairing_ref", {}, Buffer.from(ref)),
      ]),
    ]));
  }

  /** Called when a code expires: asks the companion to show another (refresh_code). */
  #expire(): void {
    const request = this.#request;
    if (!request) return;
    this.#options.forgetRef(request.ref);
    this.#request = null;
    const isManual = this.#options.network.faults.take(request.number, "manual_refresh");
    this.#notify(
      "refresh_code",
      [element("link_code_pairing_ref", {}, Buffer.from(request.ref))],
      isManual ? { force_manual_refresh: "true" } : {},
    );
  }

  #takeFinish(query: BinaryNode, link: BinaryNode): void {
    const { network } = this.#options;
    const wrappedKeyBundle = bytesOf(child(link, "link_code_pairing_wrapped_key_bundle"));
    const identityPublic = bytesOf(child(link, "companion_identity_public"));
    const account = network.directory.resolve(link.attrs.jid)?.account;
    if (account && network.faults.take(account.number, "refuse_finish")) {
      this.#finish?.(null);
      return this.#socket.send(refusal(query, "400"));
    }
    if (!this.#finish || identityPublic.length !== 32 || wrappedKeyBundle.length === 0) {
      return this.#socket.send(refusal(query, "400"));
    }
    this.#socket.send(result(query));
    this.#finish({ wrappedKeyBundle, identityPublic });
  }

  #notify(stage: string, content: BinaryNode[], attributes: Attributes = {}): void {
    const step = element("link_code_companion_reg", { stage, ...attributes }, content);
    this.#socket.send(this.#options.network.notices.notification({ type: step.tag }, [step]));
  }
}
