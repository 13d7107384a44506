/**
 * Promises 1 and 2 under fire: a paced run on several lines while the gateway is killed again and again. A client sends
 * with idempotency keys and repeats what got no answer, as a careful client would. Afterwards the phone and the network's
 * wire log are asked: every message exactly once, in order, under one id, gaps within the plan's bounds.
 */
import { type Json, until } from "../../src/cli/client.ts";
import { sleep, systemClock, systemRandom } from "../../src/runtime.ts";
import { type LinkedLine, openStage, type Stage } from "../../tests/support/stage.ts";
import { type AcceptedText, checkArrivals, checkDepartures, type Gaps, type Outage } from "./paced_checks.ts";

export interface PacedRunOptions {
  messages: number;
  lines: number;
  kills: number;
  delayMinMs: number;
  delayMaxMs: number;
  /** Limits of the random time between a start and the next kill. */
  killAfterMs: [number, number];
  /** What a machine may add to a pause, and to the time until a message leaves that is due. */
  atOnceMs?: number;
  report: (line: string) => void;
}

interface PacedRunResult {
  accepted: number;
  kills: number;
  /** Sends that got no answer and were repeated under their idempotency key. */
  repeatedSends: number;
  /** Stanzas beyond one per message: sent again under the same id, because the gateway died before the ack. */
  resends: number;
  /** Between departures of one line that no kill came between. */
  gaps: Gaps;
  /** The same across a kill. */
  gapsAcrossKills: Gaps;
  tookMs: number;
  /** Sentences; empty when every promise held. */
  broken: string[];
}

const CUSTOMER = "4917000000001";
/** Accepted at once, so that a line always has something to send and its longest pause can be judged. */
const HEAD_START = 10;
/** Of a machine with nothing else to do. */
const AT_ONCE_MS = 2_000;
/** Before every second kill the network holds back its acks, so that messages are in flight when the gateway dies. */
const HOLD_ACKS_MS = 900;

export async function pacedRun(options: PacedRunOptions): Promise<PacedRunResult> {
  const { delayMinMs, delayMaxMs, atOnceMs = AT_ONCE_MS, report } = options;
  const started = systemClock.now();
  const stage = await openStage({ plan: { delayMinMs, delayMaxMs, sessions: options.lines, daily: null } });
  try {
    await stage.addPhone(CUSTOMER);
    const lines: LinkedLine[] = [];
    for (let i = 0; i < options.lines; i++) lines.push(await stage.linkLine(`49150000000${10 + i}`));
    report(`${lines.length} lines linked, pauses of ${delayMinMs} to ${delayMaxMs} ms, ${options.messages} messages`);

    const sending = sendAll(stage, lines, options);
    const outages = await killAgainAndAgain(stage, lines, options);
    const { accepted, repeatedSends } = await sending;
    for (const { messageId } of accepted) await stage.status(messageId, "sent");
    const arrived = await until(systemClock, async () => {
      const inbox = await stage.inbox(CUSTOMER);
      return inbox.length >= accepted.length ? inbox : null;
    }, { what: "the last message at the phone", timeoutMs: 120_000 });

    // An answer to a phone's retry receipt is not a departure of the queue.
    const wire: Json[] = (await stage.control.call("GET", "/wire")).filter(({ retry }: Json) => !retry);
    const bounds = { delayMinMs, delayMaxMs };
    const departures = checkDepartures(wire, { accepted, arrived, outages, bounds, atOnceMs });
    const broken = [...checkArrivals(accepted, arrived), ...departures.broken];
    const { gaps, gapsAcrossKills } = departures;
    const resends = wire.length - accepted.length;
    const tookMs = systemClock.now() - started;
    await stage.end().catch((error) => broken.push(error.message));
    return {
      accepted: accepted.length,
      kills: outages.length,
      repeatedSends,
      resends,
      gaps,
      gapsAcrossKills,
      tookMs,
      broken,
    };
  } catch (error) {
    await stage.abandon();
    throw error;
  }
}

/** For a person at a terminal. */
export function describePacedRun(result: PacedRunResult, options: PacedRunOptions): string[] {
  const { accepted, kills, repeatedSends, resends, gaps, gapsAcrossKills, tookMs, broken } = result;
  const bounds = `allowed ${options.delayMinMs} to ${options.delayMaxMs} ms`;
  return [
    `${kills} kills in ${Math.round(tookMs / 1000)} s; ${repeatedSends} requests met a dead gateway and were repeated`,
    `${accepted} messages accepted, ${accepted} at the phone, each once, under one id and in the order of its line`,
    `${resends} of them were sent again, under the same id: ack and receipt had both been lost with the gateway`,
    `${gaps.count} gaps without a kill: ${gaps.minMs} to ${gaps.maxMs} ms (${bounds})`,
    `${gapsAcrossKills.count} gaps across kills: from ${gapsAcrossKills.minMs} ms (at least ${options.delayMinMs} ms)`,
    broken.length === 0 ? "every promise held" : `${broken.length} PROMISES BROKEN`,
  ].slice(broken.length === 0 ? 0 : -1);
}

async function killAgainAndAgain(stage: Stage, lines: LinkedLine[], options: PacedRunOptions): Promise<Outage[]> {
  const outages: Outage[] = [];
  for (let kill = 1; kill <= options.kills; kill++) {
    await sleep(systemClock, systemRandom.between(...options.killAfterMs));
    if (kill % 2 === 0) await holdAcks(stage, lines);
    const from = systemClock.now();
    await stage.gateway.kill();
    await stage.gateway.start();
    const up = systemClock.now();
    for (const line of lines) await stage.sessionStatus(line, "connected");
    const to = systemClock.now();
    outages.push({ from, to });
    const done = (await stage.inbox(CUSTOMER)).length;
    options.report(
      `kill ${String(kill).padStart(2)} of ${options.kills}: serving again after ${up - from} ms, ` +
        `lines connected after ${to - from} ms, ${done} messages at the phone`,
    );
  }
  return outages;
}

async function holdAcks({ control }: Stage, lines: LinkedLine[]): Promise<void> {
  for (const { number: line } of lines) {
    await control.call("POST", "/faults", { line, kind: "hold_acks", seconds: HOLD_ACKS_MS / 1000 });
  }
  await sleep(systemClock, systemRandom.between(HOLD_ACKS_MS / 2, HOLD_ACKS_MS));
}

/**
 * Sends on each line, one request after another, so that acceptance has an order to keep; a little faster than the line
 * sends, so that some requests meet a gateway that was killed.
 */
async function sendAll(
  stage: Stage,
  lines: LinkedLine[],
  { messages, delayMaxMs }: PacedRunOptions,
): Promise<{ accepted: AcceptedText[]; repeatedSends: number }> {
  const perLine = Math.ceil(messages / lines.length);
  let repeatedSends = 0;
  const results = await Promise.all(lines.map(async (line) => {
    const accepted: AcceptedText[] = [];
    for (let i = 0; i < perLine; i++) {
      const text = `paced run, line ${line.number}, number ${String(i).padStart(4, "0")}`;
      stage.secrets.add(text);
      if (i >= HEAD_START) await sleep(systemClock, systemRandom.between(0, delayMaxMs));
      let attempts = 0;
      const { messageId } = await until(systemClock, () => {
        attempts++;
        return send(stage, { line, text, key: `${line.sessionId}-${i}` });
      }, { what: "a send to be accepted" });
      if (attempts > 1) repeatedSends++;
      accepted.push({ line: line.number, messageId, text, at: systemClock.now() });
    }
    return accepted;
  }));
  return { accepted: results.flat(), repeatedSends };
}

/** Null when there was no answer, or it did not say that the send was accepted. */
async function send(stage: Stage, { line, text, key }: { line: LinkedLine; text: string; key: string }): Promise<Json> {
  try {
    const response = await stage.request("POST", "/messages/send/text", {
      headers: { "content-type": "application/json", "idempotency-key": key },
      body: JSON.stringify({ sessionId: line.sessionId, to: CUSTOMER, text }),
    });
    const body = await response.json();
    return response.status === 202 ? body : null;
  } catch {
    return null;
  }
}
