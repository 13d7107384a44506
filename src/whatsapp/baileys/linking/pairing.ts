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
 */
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
import type { Runtime } from "../../../runtime.ts";
import { within } from "../../../base/within.ts";

/** How long the network honours the first ref of a connection, and each later one. */
const FIRST_REF_MS = 60_000;
const NEXT_REF_MS = 20_000;
const ADV_SECRET_BYTES = 32;
const PING_MS = 3_000;

export interface PairingEvents {
  qr(text: string): void;
  code(code: string): void;
  /** The phone accepted; the credentials are on disk. */
  linked(): void;
  /** All refs were shown and nobody scanned. */
  expired(): void;
  failed(error: unknown): void;
}

export interface PairingOptions {
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

/** Takes over linking on the socket. Returns a function that stops the rotation of QRs. */
export function takeOverPairing(options: PairingOptions, events: PairingEvents): () => void {
  const { socket, creds, saveCreds, browser, runtime, pairingPhone } = options;
  const { ws } = socket;
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

  async function askForCode(phone: string): Promise<void> {
    const code = await socket.requestPairingCode(phone);
    await taken();
    events.code(code);
  }

  /** The network works through frames in order: when it answered a ping, it took what was sent before. */
  async function taken(): Promise<void> {
    const ping = {
      tag: "iq",
      attrs: { to: S_WHATSAPP_NET, type: "get", xmlns: "w:p" },
      content: [{ tag: "ping", attrs: {} }],
    };
    await within(runtime.clock, PING_MS, socket.query(ping)).catch(() => {});
  }

  async function pairDevice(stanza: BinaryNode): Promise<void> {
    await socket.sendNode({ tag: "iq", attrs: { to: S_WHATSAPP_NET, type: "result", id: stanza.attrs.id! } });
    if (pairingPhone !== null) return await askForCode(pairingPhone);
    refs = getBinaryNodeChildren(getBinaryNodeChild(stanza, "pair-device"), "ref").map(textOf);
    cancelRotation();
    rotate(FIRST_REF_MS);
  }

  async function refresh(stanza: BinaryNode): Promise<void> {
    const asked = ["companion_reg_refresh", "pair-device-rotate-qr"].some((tag) => getBinaryNodeChild(stanza, tag));
    // By code, `me` is set before the link, and the library acknowledges by itself.
    if (!asked || creds.account || creds.me) return;
    const { id, from, type } = stanza.attrs;
    await socket.sendNode({ tag: "ack", attrs: { id: id!, to: from!, class: "notification", type: type! } });
    creds.advSecretKey = Buffer.from(runtime.random.bytes(ADV_SECRET_BYTES)).toString("base64");
    await Promise.all([saveCreds(), taken()]);
    runtime.log.debug("the network refreshed the link's secret; showing the QR again");
    show();
  }

  async function linkCode(stanza: BinaryNode): Promise<void> {
    const step = getBinaryNodeChild(stanza, "link_code_companion_reg");
    if (step?.attrs.stage === "refresh_code" && pairingPhone !== null && !creds.account) {
      await askForCode(pairingPhone);
    }
  }

  async function pairSuccess(stanza: BinaryNode): Promise<void> {
    const { reply, creds: identity } = configureSuccessfulPairing(stanza, creds);
    cancelRotation();
    current = null;
    socket.ev.emit("creds.update", identity);
    // The phone shows the link as soon as it is answered: not before a restart would still know it.
    await saveCreds();
    await socket.sendNode(reply);
    events.linked();
  }

  const guarded = (handle: (stanza: BinaryNode) => Promise<void>) => (stanza: BinaryNode) => {
    handle(stanza).catch((error) => events.failed(error));
  };
  for (const name of ["CB:iq,type:set,pair-device", "CB:iq,,pair-success"]) ws.removeAllListeners(name);
  ws.on("CB:iq,type:set,pair-device", guarded(pairDevice));
  ws.on("CB:iq,,pair-success", guarded(pairSuccess));
  ws.on("CB:notification,type:link_code_companion_reg", guarded(linkCode));
  if (options.refreshHandled) ws.on("CB:notification,type:companion_reg_refresh", guarded(refresh));

  return () => cancelRotation();
}

function textOf(node: BinaryNode): string {
  return typeof node.content === "string" ? node.content : Buffer.from(node.content as Uint8Array).toString("utf8");
}
