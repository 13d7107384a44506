/**
 * Linking by QR or by code, including the refresh stage between the phone's scan and the link.
 *
 * The library's own handlers of pair-device and pair-success are replaced, not wrapped. They read the QR's secret only
 * once, end the connection when the QR refs run out although a code may still be typed, and answer pair-success before
 * the credentials are on disk.
 *
 * companion_reg_refresh (since 2026-07-28, Baileys issue 2737): after the scan, the network makes the companion create
 * a new ADV secret. The companion must acknowledge, which the library cannot do before it has an identity, and show the
 * current ref again with the new secret. The phone then reads that QR, and pair-success follows.
 *
 * For an account with a passkey, the network requests the passkey instead (`passkey.ts`). From then on, nobody scans or
 * types anything.
 */
import { Buffer } from "node:buffer";
import {
  type BinaryNode,
  buildPairingQRData,
  configureSuccessfulPairing,
  getBinaryNodeChild,
  getBinaryNodeChildren,
  proto,
  S_WHATSAPP_NET,
  type WABrowserDescription,
  type WASocket,
} from "@whiskeysockets/baileys";
import { detached, unlessMalformed } from "../../../base/retry.ts";
import type { Runtime } from "../../../runtime.ts";
import type { ConnectionEvents } from "../../connection.ts";
import type { AuthState } from "../auth_state.ts";
import type { Migration } from "../outgoing/addressing.ts";
import { bytesIn, withhold } from "../stanza.ts";
import { ping } from "../liveness.ts";
import { CodeLink } from "./code.ts";
import { makeAdvSecret } from "./companion.ts";
import { Passkey } from "./passkey.ts";

/** How long the network accepts the first ref of a connection, and each later one. */
const FIRST_REF_MS = 60_000;
const NEXT_REF_MS = 20_000;
const PING_MS = 3_000;

export interface PairingEvents extends Pick<ConnectionEvents, "qr" | "pairingCode" | "passkey"> {
  /** The phone has accepted, and the credentials are on disk. */
  linked(): void;
  /** All refs were shown and nobody scanned, or a step with code or passkey failed. `reason` is one sentence, if known. */
  expired(reason?: string): void;
  failed(error: unknown): void;
}

interface PairingOptions {
  socket: WASocket;
  auth: Pick<AuthState, "creds" | "saveCreds">;
  browser: WABrowserDescription;
  runtime: Pick<Runtime, "clock" | "random" | "log">;
  /** Digits of the number to link by code; null links by QR. */
  pairingPhone: string | null;
}

/** Handles linking on the socket in place of the library. */
export class Pairing {
  readonly passkey: Passkey;
  readonly #code: CodeLink;
  readonly #options: PairingOptions;
  readonly #events: PairingEvents;
  #refs: string[] = [];
  /** The ref being shown; null if no QR is. */
  #current: string | null = null;
  #cancelRotation = () => {};

  constructor(options: PairingOptions, events: PairingEvents) {
    const { socket, auth, browser, runtime } = options;
    this.#options = options;
    this.#events = events;
    this.#code = new CodeLink({ socket, auth, browser, runtime, failed: (reason) => events.expired(reason) });
    this.passkey = new Passkey({ query: (node) => socket.query(node), auth, runtime }, {
      asked: (request) => events.passkey(request),
      failed: (reason) => events.expired(reason),
    });
    this.#listen();
  }

  /** Stops the timers: the rotation of QRs and the time limits of code and passkey. */
  stop(): void {
    this.#stopRotation();
    this.#code.stop();
    this.passkey.end();
  }

  #listen(): void {
    const { socket: { ws } } = this.#options;
    const on = (event: string, handle: (stanza: BinaryNode) => Promise<void>) =>
      ws.on(event, (stanza: BinaryNode) => void handle(stanza).catch((error) => this.#events.failed(error)));
    for (const name of ["CB:iq,type:set,pair-device", "CB:iq,,pair-success"]) ws.removeAllListeners(name);
    on("CB:iq,type:set,pair-device", (stanza) => this.#pairDevice(stanza));
    on("CB:iq,,pair-success", (stanza) => this.#pairSuccess(stanza));
    const notifications = new Map<string | undefined, (stanza: BinaryNode) => Promise<void>>([
      ["link_code_companion_reg", (stanza) => this.#linkCode(stanza)],
      ["companion_reg_refresh", (stanza) => this.#refresh(stanza)],
      ["passkey_prologue_request", (stanza) => this.#passkeyRequested(stanza)],
      ["crsc_continuation", (stanza) => this.#passkeyContinued(stanza)],
    ]);
    withhold(ws, "CB:notification", ({ attrs }) => notifications.has(attrs.type));
    for (const [type, handle] of notifications) {
      on(`CB:notification,type:${type}`, async (stanza) => {
        await this.#acknowledge(stanza);
        if (!this.#options.auth.creds.account) await handle(stanza);
      });
    }
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
    this.#events.pairingCode(await this.#code.ask(phone));
  }

  async #linkCode(stanza: BinaryNode): Promise<void> {
    const { pairingPhone } = this.#options;
    const step = getBinaryNodeChild(stanza, "link_code_companion_reg");
    if (!step || pairingPhone === null || !isFromServer(stanza)) return;
    if (await this.#code.take(step)) await this.#showCode(pairingPhone);
  }

  /**
   * Acknowledges a notification at once: the library cannot before it has an identity, and takes its time afterwards.
   */
  async #acknowledge({ attrs: { id, from, type } }: BinaryNode): Promise<void> {
    const { socket, runtime: { log } } = this.#options;
    const ack = { tag: "ack", attrs: { id: id!, to: from!, class: "notification", type: type! } };
    // A connection that can no longer send it reports its own end.
    await detached(socket.sendNode(ack), (failure) => log.debug(failure, "an ack could not be sent"));
  }

  async #refresh(stanza: BinaryNode): Promise<void> {
    const { socket, auth, runtime: { clock, random, log } } = this.#options;
    const { creds } = auth;
    const asked = ["companion_reg_refresh", "pair-device-rotate-qr"].some((tag) => getBinaryNodeChild(stanza, tag));
    if (!asked || creds.me) return;
    creds.advSecretKey = makeAdvSecret(random);
    // The network processes frames in order, so once it has answered a ping it has taken the ack.
    await Promise.all([auth.saveCreds(), ping(socket, clock, PING_MS)]);
    log.debug("the network refreshed the link's secret; showing the QR again");
    this.#show();
  }

  async #passkeyRequested(stanza: BinaryNode): Promise<void> {
    if (!isFromServer(stanza)) return;
    this.#stopRotation();
    this.#code.stop();
    await this.passkey.requested(stanza);
  }

  async #passkeyContinued(stanza: BinaryNode): Promise<void> {
    if (isFromServer(stanza)) await this.passkey.continued(stanza);
  }

  async #pairSuccess(stanza: BinaryNode): Promise<void> {
    const { socket, auth } = this.#options;
    const { reply, creds: identity } = configureSuccessfulPairing(stanza, auth.creds);
    this.stop();
    Object.assign(auth.creds, migrationIn(stanza));
    socket.ev.emit("creds.update", identity);
    // The phone shows the link as soon as it is answered, so by then the link has to survive a restart.
    await auth.saveCreds();
    await socket.sendNode(reply);
    this.#events.linked();
  }
}

/** Whether the network itself sent the stanza, as opposed to somebody through it. */
function isFromServer({ attrs }: BinaryNode): boolean {
  return attrs.from === S_WHATSAPP_NET || attrs.from === S_WHATSAPP_NET.slice(1);
}

/** Whether the account's chats have migrated to LIDs; nothing if the network does not say, or not readably. */
function migrationIn(stanza: BinaryNode): Migration {
  const props = getBinaryNodeChild(getBinaryNodeChild(stanza, "pair-success"), "client-props");
  const isByLid = unlessMalformed(() => proto.ClientPairingProps.decode(bytesIn(props)).isChatDbLidMigrated, null);
  return isByLid == null ? {} : { chatsAreByLid: isByLid };
}
