/**
 * Linking: by QR, by code, and the refresh stage between the phone's scan and the link.
 *
 * The library's own handlers of pair-device and pair-success are replaced, not wrapped: they read the secret of the QR
 * once, end the connection when the QR refs run out although a code may still be typed, and answer pair-success before
 * the credentials are on disk.
 *
 * companion_reg_refresh (2026-07-28, Baileys issue 2737): after the scan the network makes the companion take a new ADV
 * secret. It must acknowledge, which the library can't before it has an identity, and show the current ref again with
 * the new secret; the phone then reads that QR, and pair-success follows.
 *
 * An account with a passkey is asked for it instead (`passkey.ts`): nobody scans or types from then on.
 */
import { detached } from "../../../base/detached.ts";
import { Buffer } from "node:buffer";
import {
  type BinaryNode,
  buildPairingQRData,
  configureSuccessfulPairing,
  getBinaryNodeChild,
  getBinaryNodeChildren,
  S_WHATSAPP_NET,
  type WABrowserDescription,
  type WASocket,
} from "@whiskeysockets/baileys";
import type { Runtime } from "../../../runtime.ts";
import type { PasskeyRequest } from "../../passkey.ts";
import type { AuthState } from "../auth_state.ts";
import { bytesIn, withhold } from "../stanza.ts";
import { ping } from "../vitals.ts";
import { askForCode } from "./code.ts";
import { makeAdvSecret } from "./companion.ts";
import { Passkey } from "./passkey.ts";

/** How long the network honours the first ref of a connection, and each later one. */
const FIRST_REF_MS = 60_000;
const NEXT_REF_MS = 20_000;
const PING_MS = 3_000;

export interface PairingEvents {
  qr(text: string): void;
  code(code: string): void;
  /** A person has to do something with the account's passkey; null when that is no longer so. */
  passkey(request: PasskeyRequest | null): void;
  /** The phone accepted; the credentials are on disk. */
  linked(): void;
  /** All refs were shown and nobody scanned, or a passkey came to nothing; `reason` in one sentence, where it is known. */
  expired(reason?: string): void;
  failed(error: unknown): void;
}

interface PairingOptions {
  socket: WASocket;
  auth: Pick<AuthState, "creds" | "saveCreds">;
  browser: WABrowserDescription;
  runtime: Pick<Runtime, "clock" | "random" | "log">;
  /** Digits to link by code; null links by QR. */
  pairingPhone: string | null;
  /** False leaves companion_reg_refresh to the library, to show that linking then fails. */
  refreshHandled: boolean;
}

/** Takes over linking on the socket. */
export class Pairing {
  readonly passkey: Passkey;
  readonly #options: PairingOptions;
  readonly #events: PairingEvents;
  #refs: string[] = [];
  /** The ref that is shown; null while no QR is. */
  #current: string | null = null;
  #cancelRotation = () => {};

  constructor(options: PairingOptions, events: PairingEvents) {
    const { socket, auth, runtime } = options;
    this.#options = options;
    this.#events = events;
    this.passkey = new Passkey({ query: (node) => socket.query(node), auth, runtime }, {
      asked: (request) => events.passkey(request),
      failed: (reason) => events.expired(reason),
    });
    this.#listen();
  }

  /** Stops what runs by itself: the rotation of QRs, the time of a passkey. */
  stop(): void {
    this.#stopRotation();
    this.passkey.end();
  }

  #listen(): void {
    const { socket: { ws }, refreshHandled } = this.#options;
    const on = (event: string, handle: (stanza: BinaryNode) => Promise<void>) =>
      ws.on(event, (stanza: BinaryNode) => void handle(stanza).catch((error) => this.#events.failed(error)));
    for (const name of ["CB:iq,type:set,pair-device", "CB:iq,,pair-success"]) ws.removeAllListeners(name);
    on("CB:iq,type:set,pair-device", (stanza) => this.#pairDevice(stanza));
    on("CB:iq,,pair-success", (stanza) => this.#pairSuccess(stanza));
    on("CB:notification,type:link_code_companion_reg", (stanza) => this.#linkCode(stanza));
    const notifications = new Map<string | undefined, (stanza: BinaryNode) => Promise<void>>([
      ["passkey_prologue_request", (stanza) => this.#passkeyRequested(stanza)],
      ["crsc_continuation", (stanza) => this.#passkeyContinued(stanza)],
    ]);
    if (refreshHandled) notifications.set("companion_reg_refresh", (stanza) => this.#refresh(stanza));
    withhold(ws, "CB:notification", ({ attrs }) => notifications.has(attrs.type));
    for (const [type, handle] of notifications) on(`CB:notification,type:${type}`, handle);
  }

  async #pairDevice(stanza: BinaryNode): Promise<void> {
    const { socket, pairingPhone } = this.#options;
    await socket.sendNode({ tag: "iq", attrs: { to: S_WHATSAPP_NET, type: "result", id: stanza.attrs.id! } });
    if (pairingPhone !== null) return await this.#showCode(pairingPhone);
    const refs = getBinaryNodeChildren(getBinaryNodeChild(stanza, "pair-device"), "ref");
    this.#refs = refs.map((ref) => bytesIn(ref).toString("utf8"));
    this.#cancelRotation();
    this.#rotate(FIRST_REF_MS);
  }

  #rotate(lifetimeMs: number): void {
    this.#current = this.#refs.shift() ?? null;
    if (this.#current === null) return this.#events.expired();
    this.#show();
    this.#cancelRotation = this.#options.runtime.clock.after(lifetimeMs, () => this.#rotate(NEXT_REF_MS));
  }

  #stopRotation(): void {
    this.#cancelRotation();
    this.#current = null;
  }

  #show(): void {
    if (this.#current === null) return;
    const { auth: { creds }, browser } = this.#options;
    const noiseKey = Buffer.from(creds.noiseKey.public).toString("base64");
    const identityKey = Buffer.from(creds.signedIdentityKey.public).toString("base64");
    this.#events.qr(buildPairingQRData(this.#current, noiseKey, identityKey, creds.advSecretKey, browser));
  }

  async #showCode(phone: string): Promise<void> {
    const { socket, auth, browser, runtime: { random } } = this.#options;
    const query = (node: BinaryNode) => socket.query(node);
    this.#events.code(await askForCode(phone, { query, auth, browser, random }));
  }

  async #linkCode(stanza: BinaryNode): Promise<void> {
    const { auth: { creds }, pairingPhone } = this.#options;
    const step = getBinaryNodeChild(stanza, "link_code_companion_reg");
    if (step?.attrs.stage === "refresh_code" && pairingPhone !== null && !creds.account) {
      await this.#showCode(pairingPhone);
    }
  }

  /** By ourselves and first of all: the library can't before there is an identity, and is in no hurry afterwards. */
  async #acknowledge({ attrs: { id, from, type } }: BinaryNode): Promise<void> {
    const { socket, runtime: { log } } = this.#options;
    const ack = { tag: "ack", attrs: { id: id!, to: from!, class: "notification", type: type! } };
    // A connection that takes it no more reports its end by itself.
    await detached(socket.sendNode(ack), (failure) => log.debug(failure, "an ack could not be sent"));
  }

  async #refresh(stanza: BinaryNode): Promise<void> {
    const { socket, auth, runtime: { clock, random, log } } = this.#options;
    const { creds } = auth;
    const asked = ["companion_reg_refresh", "pair-device-rotate-qr"].some((tag) => getBinaryNodeChild(stanza, tag));
    await this.#acknowledge(stanza);
    if (!asked || creds.account || creds.me) return;
    creds.advSecretKey = makeAdvSecret(random);
    // The network works through frames in order: when it answered a ping, it took the ack.
    await Promise.all([auth.saveCreds(), ping(socket, clock, PING_MS)]);
    log.debug("the network refreshed the link's secret; showing the QR again");
    this.#show();
  }

  async #passkeyRequested(stanza: BinaryNode): Promise<void> {
    await this.#acknowledge(stanza);
    if (this.#options.auth.creds.account || !isFromServer(stanza)) return;
    this.#stopRotation();
    await this.passkey.requested(stanza);
  }

  async #passkeyContinued(stanza: BinaryNode): Promise<void> {
    await this.#acknowledge(stanza);
    if (!this.#options.auth.creds.account && isFromServer(stanza)) await this.passkey.continued(stanza);
  }

  async #pairSuccess(stanza: BinaryNode): Promise<void> {
    const { socket, auth } = this.#options;
    const { reply, creds: identity } = configureSuccessfulPairing(stanza, auth.creds);
    this.stop();
    socket.ev.emit("creds.update", identity);
    // The phone shows the link as soon as it is answered: not before a restart would still know it.
    await auth.saveCreds();
    await socket.sendNode(reply);
    this.#events.linked();
  }
}

/** What the network itself says, as against what somebody sent through it. */
function isFromServer({ attrs }: BinaryNode): boolean {
  return attrs.from === S_WHATSAPP_NET || attrs.from === S_WHATSAPP_NET.slice(1);
}
