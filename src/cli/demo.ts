/**
 * `paloma sandbox --demo`: what a user does on the first day, step by step, on the simulated network: a text, a PDF, a
 * bulk, an answer and its signed webhook. Every step is checked; the first that fails ends the demo with exit 1.
 */
import { createHash } from "node:crypto";
import { Buffer } from "node:buffer";
import type { Clock } from "../runtime.ts";
import { type Client, type Json, until } from "./client.ts";
import { Exit, printResult } from "./output.ts";
import { openTemporaryWebhook, type WebhookRequest } from "./temporary_webhook.ts";

interface DemoStage {
  /** Options of the command: with `json`, each step is printed as one line of JSON. */
  options: { json?: boolean };
  clock: Clock;
  api: Client;
  control: Client;
  sessionId: string;
  /** Number of the linked line. */
  line: string;
  /** Number of the simulated customer, who receives the messages. */
  customer: string;
}

/**
 * Runs the steps and prints each with its duration. Throws Exit 1 if a message does not arrive exactly as it was sent.
 */
export async function runDemo(stage: DemoStage): Promise<void> {
  const { options, clock, api, control, sessionId, line, customer } = stage;
  const requests: WebhookRequest[] = [];
  const webhook = await openTemporaryWebhook({
    api,
    events: ["message.received"],
    sessionId: null,
    port: 0,
    forward: null,
    received: (request) => void requests.push(request),
  });
  try {
    const step = makeSteps(options, clock);

    await step("text", async () => {
      const text = "Your order #1042 is on its way 📦";
      const { messageId } = await api.call("POST", "/messages/send/text", { to: customer, text });
      const arrived = await arrival(stage, (message) => message.text === text);
      await statusSent(stage, messageId);
      return `"${arrived.text}" is on the customer's phone, status sent`;
    });

    await step("PDF", async () => {
      const pdf = invoicePdf("Invoice 2026-1042");
      const { messageId } = await api.call("POST", "/messages/send/document", {
        to: customer,
        file: pdf.toString("base64"),
        filename: "invoice-1042.pdf",
        caption: "Your invoice",
      });
      const arrived = await arrival(stage, (message) => message.filename === "invoice-1042.pdf");
      await statusSent(stage, messageId);
      const sha256 = createHash("sha256").update(pdf).digest("hex");
      check(arrived.sha256 === sha256, `the PDF arrived changed: ${arrived.sha256} is not ${sha256}`);
      return `invoice-1042.pdf, ${pdf.length} bytes, SHA-256 ${sha256.slice(0, 16)}… the same on the phone`;
    });

    await step("bulk", async () => {
      const texts = Array.from({ length: 5 }, (_, i) => `Reminder ${i + 1} of 5`);
      const messages = texts.map((text) => ({ to: customer, text }));
      const { total } = await api.call("POST", "/messages/send/bulk", { sessionId, messages });
      await arrival(stage, (message) => message.text === texts.at(-1));
      const inbox: Json[] = await control.call("GET", `/phones/${customer}/messages`);
      const order = inbox.map((message) => message.text).filter((text) => texts.includes(text));
      check(order.join() === texts.join(), `the bulk arrived as ${order.join(", ")}`);
      return `${total} messages arrived, in order`;
    });

    await step("answer", async () => {
      const text = "Thanks! When will it arrive?";
      await control.call("POST", `/phones/${customer}/messages`, { to: line, text });
      const isAnswer = ({ body }: WebhookRequest) => JSON.parse(body).data.text === text;
      const { body, signature, standardSignature } = await until(
        clock,
        () => Promise.resolve(requests.find(isAnswer)),
        { what: "the webhook" },
      );
      check(signature && standardSignature, "the webhook's signature is wrong");
      const { event, data } = JSON.parse(body);
      return `webhook ${event} from ${data.number}: "${data.text}", signature verified`;
    });
  } finally {
    await webhook.end();
  }
}

function makeSteps(options: DemoStage["options"], clock: Clock) {
  return async (name: string, run: () => Promise<string>): Promise<void> => {
    const start = clock.now();
    const outcome = await run();
    const durationMs = clock.now() - start;
    const text = () => `  ✓ ${name.padEnd(8)} ${String(durationMs).padStart(5)} ms   ${outcome}`;
    printResult(options, { step: name, durationMs, outcome }, text);
  };
}

function check(holds: boolean, otherwise: string): void {
  if (!holds) throw new Exit(1, `The demo failed: ${otherwise}`);
}

function arrival({ clock, control, customer }: DemoStage, matches: (message: Json) => boolean): Promise<Json> {
  return until(clock, async () => {
    const inbox: Json[] = await control.call("GET", `/phones/${customer}/messages`);
    return inbox.find(matches);
  }, { what: "the message to arrive at the customer's phone" });
}

async function statusSent({ clock, api }: DemoStage, messageId: string): Promise<void> {
  await until(clock, async () => {
    const { status } = await api.call("GET", `/messages/${messageId}/status`);
    check(status !== "failed", "the message ended as failed");
    return status === "sent" ? true : null;
  }, { what: "the status sent" });
}

/** A small, valid, one-page PDF with a line of text. */
export function invoicePdf(title: string): Buffer {
  const content = `BT /F1 24 Tf 72 720 Td (${title}) Tj ET`;
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
    `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
  ];
  let text = "%PDF-1.4\n";
  const offsets = objects.map((object, i) => {
    const offset = text.length;
    text += `${i + 1} 0 obj\n${object}\nendobj\n`;
    return offset;
  });
  const table = offsets.map((offset) => `${String(offset).padStart(10, "0")} 00000 n \n`).join("");
  text += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${table}`;
  text += `trailer << /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${text.lastIndexOf("xref\n0")}\n%%EOF\n`;
  return Buffer.from(text, "latin1");
}
