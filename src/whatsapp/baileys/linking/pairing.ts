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
  type AuthenticationCreds,
  type BinaryNode,
  buildPairingQRData,
  configureSuccessfulPairing,
  getBinaryNodeChild,
  getBinaryNodeChildren,
  S_WHATSAPP_NET,
  type WABrowserDescription,
  type WASocket,
} from "@whiskeysockets/baileys";
import { ping } from "../vitals.ts";
import type { Runtime } from "../../../runtime.ts";
import type { PasskeyRequest } from "../../passkey.ts";
import { withhold } from "../repairs/withhold.ts";
import { askForCode } from "./code.ts";
import { makePasskey, type Passkey } from "./passkey.ts";

/** How long the network honours the first ref of a connection, and each later one. */
const FIRST_REF_MS = 60_000;
const NEXT_REF_MS = 20_000;
const ADV_SECRET_BYTES = 32;
const PING_MS = 3_000;

interface PairingEvents {
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
  creds: AuthenticationCreds;
  saveCreds: () => Promise<void>;
  browser: WABrowserDescription;
  runtime: Pick<Runtime, "clock" | "random" | "log">;
  /** Digits to link by code; null links by QR. */
  pairingPhone: string | null;
  /** False leaves companion_reg_refresh to the library, to show that linking then fails. */
  refreshHandled: boolean;
}

export interface Pairing extends Pick<Passkey, "sign" | "confirm"> {
  /** Stops what runs by itself: the rotation of QRs, the time of a passkey. */
  stop(): void;
}

/** Takes over linking on the socket. */
export function takeOverPairing(options: PairingOptions, events: PairingEvents): Pairing {
  const { socket, creds, saveCreds, browser, runtime, pairingPhone } = options;
  const { ws } = socket;
  const query = (node: BinaryNode) => socket.query(node);
  const passkey = makePasskey({ query, creds, saveCreds, runtime }, {
    asked: (request) => events.passkey(request),
    failed: (reason) => events.expired(reason),
  });
  let refs: string[] = [];
  let current: string | null = null;
  let cancelRotation = () => {};

  function show(): void {
    if (current === null) return;
    const noiseKey = Buffer.from(creds.noiseKey.public).toString("base64");
    const identityKey = Buffer.from(creds.signedIdentityKey.public).toString("base64");
    events.qr(buildPairingQRData(current, noiseKey, identityKey, creds.advSecretKey, browser));
  }

  function rotate(lifetimeMs: number): void {
    current = refs.shift() ?? null;
    if (current === null) return events.expired();
    show();
    cancelRotation = runtime.clock.after(lifetimeMs, () => rotate(NEXT_REF_MS));
  }

  async function showCode(phone: string): Promise<void> {
    events.code(await askForCode(phone, { query, creds, saveCreds, browser, random: runtime.random }));
  }

  function stopRotation(): void {
    cancelRotation();
    current = null;
  }

  /** The network works through frames in order: when it answered a ping, it took what was sent before. */
  async function taken(): Promise<void> {
    await ping(socket, runtime.clock, PING_MS);
  }

  async function pairDevice(stanza: BinaryNode): Promise<void> {
    await socket.sendNode({ tag: "iq", attrs: { to: S_WHATSAPP_NET, type: "result", id: stanza.attrs.id! } });
    if (pairingPhone !== null) return await showCode(pairingPhone);
    refs = getBinaryNodeChildren(getBinaryNodeChild(stanza, "pair-device"), "ref").map(textOf);
    cancelRotation();
    rotate(FIRST_REF_MS);
  }

  /** By ourselves and first of all: the library can't before there is an identity, and is in no hurry afterwards. */
  async function acknowledge({ attrs: { id, from, type } }: BinaryNode): Promise<void> {
    const ack = { tag: "ack", attrs: { id: id!, to: from!, class: "notification", type: type! } };
    // A connection that takes it no more tells its end by itself.
    await detached(socket.sendNode(ack), (failure) => runtime.log.debug(failure, "an ack could not be sent"));
  }

  async function refresh(stanza: BinaryNode): Promise<void> {
    const asked = ["companion_reg_refresh", "pair-device-rotate-qr"].some((tag) => getBinaryNodeChild(stanza, tag));
    await acknowledge(stanza);
    if (!asked || creds.account || creds.me) return;
    creds.advSecretKey = Buffer.from(runtime.random.bytes(ADV_SECRET_BYTES)).toString("base64");
    await Promise.all([saveCreds(), taken()]);
    runtime.log.debug("the network refreshed the link's secret; showing the QR again");
    show();
  }

  async function linkCode(stanza: BinaryNode): Promise<void> {
    const step = getBinaryNodeChild(stanza, "link_code_companion_reg");
    if (step?.attrs.stage === "refresh_code" && pairingPhone !== null && !creds.account) {
      await showCode(pairingPhone);
    }
  }

  async function passkeyRequested(stanza: BinaryNode): Promise<void> {
    await acknowledge(stanza);
    if (creds.account || !isFromServer(stanza)) return;
    stopRotation();
    await passkey.requested(stanza);
  }

  async function passkeyContinued(stanza: BinaryNode): Promise<void> {
    await acknowledge(stanza);
    if (!creds.account && isFromServer(stanza)) await passkey.continued(stanza);
  }

  async function pairSuccess(stanza: BinaryNode): Promise<void> {
    const { reply, creds: identity } = configureSuccessfulPairing(stanza, creds);
    stopRotation();
    passkey.end();
    socket.ev.emit("creds.update", identity);
    // The phone shows the link as soon as it is answered: not before a restart would still know it.
    await saveCreds();
    await socket.sendNode(reply);
    events.linked();
  }

  const guarded = (handle: (stanza: BinaryNode) => Promise<void>) => async (stanza: BinaryNode) => {
    try {
      await handle(stanza);
    } catch (error) {
      events.failed(error);
    }
  };
  for (const name of ["CB:iq,type:set,pair-device", "CB:iq,,pair-success"]) ws.removeAllListeners(name);
  ws.on("CB:iq,type:set,pair-device", guarded(pairDevice));
  ws.on("CB:iq,,pair-success", guarded(pairSuccess));
  ws.on("CB:notification,type:link_code_companion_reg", guarded(linkCode));
  const notifications: Record<string, (stanza: BinaryNode) => Promise<void>> = {
    ...(options.refreshHandled ? { companion_reg_refresh: refresh } : {}),
    passkey_prologue_request: passkeyRequested,
    crsc_continuation: passkeyContinued,
  };
  withhold(ws, "CB:notification", ({ attrs }) => attrs.type !== undefined && attrs.type in notifications);
  for (const [type, handle] of Object.entries(notifications)) ws.on(`CB:notification,type:${type}`, guarded(handle));

  return {
    sign: (assertion) => passkey.sign(assertion),
    confirm: () => passkey.confirm(),
    stop() {
      stopRotation();
      passkey.end();
    },
  };
}

function textOf(node: BinaryNode): string {
  const { content } = node;
  return content instanceof Uint8Array
    ? Buffer.from(content).toString("utf8")
    : typeof content === "string"
    ? content
    : "";
}

/** What the network itself says, as against what somebody sent through it. */
function isFromServer({ attrs }: BinaryNode): boolean {
  return attrs.from === S_WHATSAPP_NET || attrs.from === S_WHATSAPP_NET.slice(1);
}
