/** Checks what a paced run left behind, in the phone's inbox and the network's wire log. */
import type { Json } from "../../src/cli/client.ts";

export interface AcceptedText {
  /** Number of the line. */
  line: string;
  messageId: string;
  text: string;
  /** When its 202 came, Unix ms. */
  at: number;
}

/** From a kill to the moment at which the lines were seen connected again. */
export interface Outage {
  from: number;
  to: number;
}

export interface Gaps {
  count: number;
  minMs: number;
  maxMs: number;
}

/** Every text at the phone exactly once, delivered once by the network, and in the order in which its line accepted it. */
export function* checkArrivals(accepted: AcceptedText[], inbox: Json[]): Iterable<string> {
  const byText = Map.groupBy(inbox, (message) => message.text);
  for (const { text } of accepted) {
    const arrived = byText.get(text) ?? [];
    if (arrived.length !== 1) yield `"${text}" arrived ${arrived.length} times`;
    else if (arrived[0]!.copies !== 1) yield `"${text}" was delivered ${arrived[0]!.copies} times`;
  }
  if (inbox.length !== accepted.length) yield `${inbox.length} arrived of ${accepted.length} accepted`;
  for (const [line, sent] of Map.groupBy(accepted, (message) => message.line)) {
    const wanted = sent.map(({ text }) => text);
    const got = inbox.map((message) => message.text).filter((text) => wanted.includes(text));
    if (got.join("\n") !== wanted.join("\n")) yield `line ${line}: the phone got them in another order`;
  }
}

interface Witnesses {
  accepted: AcceptedText[];
  arrived: Json[];
  outages: Outage[];
  bounds: { delayMinMs: number; delayMaxMs: number };
  /** A message that is due leaves within this time: after its pause, when it is accepted, or when the lines are back. */
  atOnceMs: number;
}

/** What the server saw on the wire: one id a message, in order, no two departures of a line too close or too far apart. */
export function checkDepartures(wire: Json[], { accepted, arrived, outages, bounds, atOnceMs }: Witnesses) {
  const broken: string[] = [];
  const between: number[] = [];
  const across: number[] = [];
  const idOf = new Map(arrived.map((message) => [message.text, message.id]));
  for (const [line, sent] of Map.groupBy(accepted, (message) => message.line)) {
    const departures = wire.filter((entry) => entry.line === line);
    const ids = [...new Set(departures.map(({ id }) => id))];
    const wanted = sent.map(({ text }) => idOf.get(text));
    const acceptedAt = new Map(sent.map(({ text, at }) => [idOf.get(text), at]));
    if (ids.join() !== wanted.join()) {
      broken.push(`line ${line}: the ids on the wire are not those at the phone, in order`);
    }
    departures.slice(1).forEach(({ id, time }, i) => {
      const before: number = departures[i]!.time;
      const gap = time - before;
      const outage = outages.findLast(({ from, to }) => from <= time && before <= to);
      (outage ? across : between).push(gap);
      const waitedFor = Math.max(acceptedAt.get(id) ?? 0, outage?.to ?? 0);
      const latest = Math.max(before + bounds.delayMaxMs, waitedFor) + atOnceMs;
      if (gap < bounds.delayMinMs || time > latest) {
        broken.push(`line ${line}: a gap of ${gap} ms${outage ? " across a kill" : ""}`);
      }
    });
  }
  return { broken, gaps: gapsOf(between), gapsAcrossKills: gapsOf(across) };
}

function gapsOf(gaps: number[]): Gaps {
  return { count: gaps.length, minMs: Math.min(...gaps), maxMs: Math.max(...gaps) };
}
