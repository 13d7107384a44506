/** `paloma link`: links a line from a terminal, which shows the QR until a phone has scanned it. */
import type { Command } from "commander";
import { systemClock } from "../runtime.ts";
import { type Client, httpClient, type Json, until } from "./client.ts";
import { keyOf, type KeyOptions, withKey } from "./key.ts";
import { Exit, print, printError, printResult } from "./output.ts";
import { untilAsked } from "./signals.ts";
import { apiUrl, OF_DATA, OF_PORT, withSettings } from "./settings.ts";

/** Generous, because a person has to find the phone first. */
const LINK_WITHIN_MS = 10 * 60_000;
const POLL_MS = 1_000;
/** Clears a terminal and goes to its upper left corner. */
const CLEAR = "\x1b[2J\x1b[H";

interface LinkOptions extends KeyOptions {
  url?: string;
  number?: string;
  json?: boolean;
}

export function addLinkCommand(root: Command): void {
  const command = withSettings(
    root.command("link <name>").description("link a line: show the QR code here and wait for the phone"),
    [
      ...OF_PORT,
      ...OF_DATA,
    ],
  )
    .option("--number <number>", "link this phone number with a pairing code instead")
    .option("--url <url>", "base URL of the API, which ends in /v1 (default: the gateway on this machine)")
    .option("--json", "print one line of JSON for each state");
  withKey(command).action(async (name: string, options: LinkOptions) => {
    const api = httpClient(apiUrl(options.url, options), {
      "x-api-key": await keyOf(options),
    });
    const session = await sessionNamed(api, { name, pairingPhone: options.number });
    const interrupted = untilAsked().then(() => null);
    const connected = await Promise.race([untilLinked(api, session._id, options), interrupted]);
    if (connected === null) {
      // One that was never linked counts against the plan, and nobody would miss it.
      if (session.phone === null) await api.call("DELETE", `/sessions/${session._id}`);
      throw new Exit(1, `Stopped: ${name} is not linked.`);
    }
    printResult(
      options,
      { status: "connected", sessionId: connected._id, name, phone: connected.phone },
      () => `Linked: ${name} is ${connected.phone ?? "connected"}   session ${connected._id}`,
    );
  });
}

/** Resolves to a session of that name to link: an unlinked one, or else a new one; for a number always a new one. */
async function sessionNamed(api: Client, body: { name: string; pairingPhone?: string }): Promise<Json> {
  const { data: sessions } = await api.call("GET", "/sessions");
  const named = sessions.filter(({ name }: Json) => name === body.name);
  const linked = named.find(({ status }: Json) => status === "connected");
  if (linked) throw new Exit(1, `${body.name} is already linked: session ${linked._id}`);
  const [known] = named;
  if (!known || body.pairingPhone !== undefined) {
    // Left by an earlier attempt, and never linked.
    if (known?.phone === null) await api.call("DELETE", `/sessions/${known._id}`);
    return (await api.call("POST", "/sessions", body)).data;
  }
  if (["disconnected", "logged_out"].includes(known.status)) await api.call("POST", `/sessions/${known._id}/reconnect`);
  return known;
}

/**
 * Shows each new QR or pairing code, or why there is none, as after a refusal; resolves to the session once it is
 * connected.
 */
async function untilLinked(api: Client, sessionId: string, options: LinkOptions): Promise<Json> {
  let shown: string | null = null;
  return await until(systemClock, async () => {
    const { status, qr, pairingCode } = await api.call("GET", `/sessions/${sessionId}/qr`);
    const code = pairingCode ?? qr;
    const session = code === null ? (await api.call("GET", `/sessions/${sessionId}/status`)).data : null;
    if (session?.status === "connected") return session;
    const news = code ?? session.reason;
    if (news === null || news === shown) return null;
    shown = news;
    if (code !== null) await show(api, { sessionId, status, qr, pairingCode }, options);
    else if (options.json) print(JSON.stringify({ sessionId, status, qr, pairingCode, reason: news }));
    else printError(news);
    return null;
  }, { what: "a phone to scan the code", timeoutMs: LINK_WITHIN_MS, pauseMs: POLL_MS });
}

async function show(api: Client, { qr, pairingCode, ...state }: Json, options: LinkOptions): Promise<void> {
  const { json, number } = options;
  const text = qr === null ? null : await textOf(qr);
  if (json) return print(JSON.stringify({ ...state, qr: text, pairingCode }));
  if (Deno.stdout.isTerminal()) print(CLEAR);
  if (pairingCode === null) {
    const drawn = await drawing(text!);
    print(drawn);
    if (!fits(drawn)) {
      printError(
        `This window is too small for the QR: enlarge it, or scan the one at ${await pageOf(api, state, options)}`,
      );
    }
  }
  // An earlier run may have been given the number.
  const phone = number === undefined ? "phone" : `phone ${number}`;
  printError(
    pairingCode === null
      ? "On the phone: WhatsApp › Linked devices › Link a device, then point the camera here. Press Ctrl-C to stop."
      : `On the ${phone}: WhatsApp › Linked devices › Link with phone number, then enter  ${pairingCode}`,
  );
}

/** Resolves to the address of the line's page in the panel. */
async function pageOf(api: Client, { sessionId }: Json, options: LinkOptions): Promise<string> {
  const { data: { id } } = await api.call("GET", "/account");
  return `${apiUrl(options.url, options).replace(/\/v1$/, "")}/panel/accounts/${id}/lines/${sessionId}`;
}

/** Whether the QR, which is twice as wide as high, and the lines around it can be seen at once. */
function fits(drawn: string): boolean {
  if (!Deno.stdout.isTerminal()) return true;
  const { columns, rows } = Deno.consoleSize();
  const lines = drawn.trimEnd().split("\n").length;
  return lines + 2 <= rows && 2 * lines <= columns;
}

/** Resolves to the text of the QR in the API's PNG. */
async function textOf(dataUrl: string): Promise<string> {
  const { readQrPng } = await import("../base/qr_png.ts");
  return readQrPng(dataUrl)!;
}

async function drawing(text: string): Promise<string> {
  const { default: QRCode } = await import("qrcode");
  return await QRCode.toString(text, { type: "terminal", small: true, errorCorrectionLevel: "L" });
}
