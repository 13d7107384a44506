/**
 * Promise 1 and 2 under fire: a paced run on several lines while the gateway is killed again and again. A client sends
 * with idempotency keys and repeats what got no answer, as a careful client would. Afterwards the phones and the
 * network's wire log are asked: every message exactly once, in order, under one id, gaps within the plan's bounds.
 */
import { type Json, until } from "../../src/cli/client.ts";
import { sleep, systemClock, systemRandom } from "../../src/runtime.ts";
import { openStage, type Stage } from "../../tests/support/stage.ts";

export interface PacedRunOptions {
  messages: number;
  lines: number;
  kills: number;
  delayMinMs: number;
  delayMaxMs: number;
  /** Bounds of the random time between a start and the next kill. */
  killAfterMs: [number, number];
  report: (line: string) => void;
}

export interface PacedRunResult {
  accepted: number;
  kills: number;
  /** Gaps between departures of one line, without those that a kill interrupted. */
  gaps: { count: number; minMs: number; maxMs: number };
  /** Sentences; empty when every promise held. */
  broken: string[];
}

/** After a restart the line has to boot, connect and may have to wait for its pause: such a gap has no upper bound. */
interface Outage {
  from: number;
  to: number;
}

export async function pacedRun(options: PacedRunOptions): Promise<PacedRunResult> {
  const stage = await openStage({
    plan: { delayMin: `${options.delayMinMs}ms`, delayMax: `${options.delayMaxMs}ms`, sessions: options.lines },
  });
  const customer = "4917000000001";
  await stage.addPhone(customer);
  const lines = [];
  for (let i = 0; i < options.lines; i++) lines.push(await stage.linkLine(`49150000000${10 + i}`));

  const sending = sendAll(stage, { lines: lines.map((line) => line.sessionId), customer, messages: options.messages });
  const outages: Outage[] = [];
  for (let kill = 1; kill <= options.kills; kill++) {
    await sleep(systemClock, systemRandom.between(...options.killAfterMs));
    const from = systemClock.now();
    await stage.gateway.kill();
    await stage.gateway.start();
    await connected(stage, lines.map((line) => line.sessionId));
    outages.push({ from, to: systemClock.now() });
    options.report(`kill ${kill} of ${options.kills}: down and connected again in ${systemClock.now() - from} ms`);
  }
  const accepted = await sending;
  for (const { messageId } of accepted) await stage.status(messageId, "sent");
  const arrived = await until(systemClock, async () => {
    const inbox = await stage.inbox(customer);
    return inbox.length >= accepted.length ? inbox : null;
  }, { what: "the last message at the phone", timeoutMs: 120_000 });

  const broken = [...checkArrivals(accepted, arrived)];
  const gaps: number[] = [];
  for (const line of lines) {
    const departures = firstDepartures(await stage.control.call("GET", "/wire"), line.number);
    departures.slice(1).forEach((time, i) => {
      const before = departures[i]!;
      const gap = time - before;
      if (gap < options.delayMinMs) broken.push(`line ${line.number}: a gap of ${gap} ms`);
      if (outages.some((outage) => outage.from <= time && before <= outage.to)) return;
      gaps.push(gap);
      if (gap > options.delayMaxMs) broken.push(`line ${line.number}: a gap of ${gap} ms`);
    });
  }
  await stage.end(accepted.map(({ text }) => text));
  return {
    accepted: accepted.length,
    kills: outages.length,
    gaps: { count: gaps.length, minMs: Math.min(...gaps), maxMs: Math.max(...gaps) },
    broken,
  };
}

interface AcceptedText {
  sessionId: string;
  messageId: string;
  text: string;
}

/** Sends in turn on each line, one request after another a line, so that acceptance has an order to keep. */
async function sendAll(
  stage: Stage,
  { lines, customer, messages }: { lines: string[]; customer: string; messages: number },
): Promise<AcceptedText[]> {
  const perLine = Math.ceil(messages / lines.length);
  const results = await Promise.all(lines.map(async (sessionId, line) => {
    const accepted: AcceptedText[] = [];
    for (let i = 0; i < perLine; i++) {
      const text = `paced run, line ${line}, number ${String(i).padStart(4, "0")}`;
      const { messageId } = await until(
        systemClock,
        () =>
          stage.request("POST", "/messages/send/text", {
            headers: { "content-type": "application/json", "idempotency-key": `${sessionId}-${i}` },
            body: JSON.stringify({ sessionId, to: customer, text }),
          }).then((response) => response.status === 202 ? response.json() : null, () => null),
        { what: "a send to be accepted" },
      );
      accepted.push({ sessionId, messageId, text });
    }
    return accepted;
  }));
  return results.flat();
}

function connected(stage: Stage, sessionIds: string[]): Promise<true> {
  return until(systemClock, async () => {
    const { data } = await stage.api.call("GET", "/sessions");
    return sessionIds.every((id) => data.find((s: Json) => s._id === id)?.status === "connected") ? true : null;
  }, { what: "the lines to connect again" });
}

function* checkArrivals(accepted: AcceptedText[], inbox: Json[]): Iterable<string> {
  const copies = new Map<string, Json[]>();
  for (const message of inbox) copies.set(message.text, [...copies.get(message.text) ?? [], message]);
  for (const { text } of accepted) {
    const count = copies.get(text)?.length ?? 0;
    if (count !== 1) yield `"${text}" arrived ${count} times`;
  }
  if (inbox.length !== accepted.length) yield `${inbox.length} arrived of ${accepted.length} accepted`;
  for (const sessionId of new Set(accepted.map((message) => message.sessionId))) {
    const sent = accepted.filter((message) => message.sessionId === sessionId).map((message) => message.text);
    const wanted = new Set(sent);
    const got = inbox.map((message) => message.text).filter((text) => wanted.has(text));
    if (got.join("\n") !== sent.join("\n")) yield `session ${sessionId}: not in order`;
  }
}

/** When each id of the line left for the first time. */
function firstDepartures(wire: Json[], number: string): number[] {
  const first = new Map<string, number>();
  for (const { line, id, time } of wire) if (line === number && !first.has(id)) first.set(id, time);
  return [...first.values()].sort((a, b) => a - b);
}
