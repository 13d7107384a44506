/**
 * Moves a line to another gateway without a new QR: a file, sealed with a passphrase, holds its link and the messages
 * in its queue. The old gateway gives up both, because two gateways with the credentials of one line would keep
 * disconnecting each other, and send everything twice.
 */
import { Buffer } from "node:buffer";
import type { Claims } from "../cluster/holder.ts";
import type { Callers } from "../account/callers.ts";
import { type Clock, type Runtime, sleep } from "../runtime.ts";
import { Change, type Kv, retryOnConflict } from "../store/kv.ts";
import type { SharedMediaStore } from "../media/fair_shares.ts";
import type { passphraseKey, Seal } from "../store/seal.ts";
import type { LinkCopy } from "../whatsapp/network.ts";
import { EXPORTED_REASON, type Line, NOTHING_TO_LINK, openedProxy, sealedProxy } from "./line.ts";
import { type Exported, MOST_QUEUE_BYTES, openLineFile, sealLineFile, TransferError } from "./line_file.ts";
import { readQueue, writeQueue } from "./moved_queue.ts";
import { LineRegister } from "./account_lines.ts";
import { lineKeys } from "./rows.ts";

interface TransferDeps {
  kv: Kv;
  runtime: Runtime;
  callers: Pick<Callers, "of">;
  link: LinkCopy;
  /** The seal of this gateway. */
  seal: Seal;
  /** The files of waiting messages. */
  media: Pick<SharedMediaStore, "read" | "write">;
  /** Of a passphrase; tests have a cheap one. */
  keyOf?: typeof passphraseKey;
  /** Null on data that only this process uses. */
  claims: Claims | null;
}

interface TransferOptions {
  passphrase: string;
  /** Whether a gateway runs on this data folder, which must then release the line first. */
  gatewayRuns: boolean;
}

/** How long the running gateway may take: it checks its lines every 2 s, and first finishes the message on its way. */
const LET_GO_WITHIN_MS = 30_000;
const POLL_MS = 200;
const ID_BYTES = 16;
interface ExportOptions extends TransferOptions {
  /** Resolves once the file is on disk. */
  write(file: Uint8Array): Promise<void>;
  /** Removes the file, because the line stays here. */
  discard(): Promise<void>;
}

/**
 * Exports the line with the messages in its queue. One commit gives both up here, after `write` has put the file on
 * disk. Until then the line accepts no messages, and a failure restores its wanted state; if the process is killed, the
 * line stays paused, because the file may be complete. Afterwards the link is dropped and the messages fail with `moved`
 * (`LineSession`). Resolves to the line and the number of messages exported. Throws TransferError, StoreError.
 */
export async function exportLine(
  deps: Omit<TransferDeps, "claims">,
  lineId: string,
  options: ExportOptions,
): Promise<{ line: Line; messages: number }> {
  const { kv, runtime, link } = deps;
  const asked = await change(kv, lineId, (line) => {
    assertLinked(line);
    // An export that was killed left `exporting`, with the state before it.
    const wantedBefore = line.wanted === "exporting" ? line.wantedBefore ?? "connected" : line.wanted;
    return { ...line, wanted: "exporting", wantedBefore, generation: line.generation + 1 };
  });
  const { line, messages } = await giveUp(deps, asked, options).catch(async (error) => {
    let staysHere = false;
    await change(kv, lineId, (line) => {
      staysHere = line.generation === asked.generation;
      // The owner may have asked for something else meanwhile.
      if (!staysHere) return line;
      const restored = { ...line, wanted: line.wantedBefore ?? "connected" };
      // One that was logged out meanwhile waits for its owner, as ever.
      return line.linked ? { ...restored, generation: line.generation + 1 } : { ...restored, halted: true };
    });
    // Elsewhere it would be a second copy of the link. If even this fails, it may be all that is left of it.
    if (staysHere) await options.discard();
    throw error;
  });
  // If no gateway runs, the next one to start fails the messages in the queue before anything else.
  if (options.gatewayRuns) await untilObserved(kv, runtime.clock, line);
  else await link.drop(lineId);
  return { line, messages };
}

/** Writes the export file, and then gives the line up in one commit. */
async function giveUp(
  deps: Omit<TransferDeps, "claims">,
  asked: Line,
  { passphrase, gatewayRuns, write, discard }: ExportOptions,
): Promise<{ line: Line; messages: number }> {
  const { kv, runtime, seal, link } = deps;
  const { id: lineId, name, phone, restriction } = asked;
  if (gatewayRuns) assertLinked(await untilObserved(kv, runtime.clock, asked));
  const queue = await readQueue(deps, lineId, MOST_QUEUE_BYTES);
  if (queue === null) {
    throw new TransferError(`the messages waiting on ${lineId} exceed 256 MB: let the queue drain first`);
  }
  const exported: Exported = {
    id: Buffer.from(runtime.random.bytes(ID_BYTES)).toString("base64url"),
    name,
    phone,
    restriction: restriction ?? null,
    proxy: openedProxy(asked, seal),
    pacing: (await kv.get(lineKeys.pacing(lineId))).value,
    isQueuePaused: (await kv.get(lineKeys.queuePaused(lineId))).value !== null,
    link: Buffer.from(await link.read(lineId)).toString("base64"),
    queue,
  };
  await write(sealLineFile(exported, passphrase, runtime.random, deps.keyOf));
  const line = await change(kv, lineId, (line) => {
    // A line that was reconnected may have sent what the file holds.
    if (line.generation !== asked.generation) {
      throw new TransferError(`${lineId} was changed during the export: export it again`);
    }
    return {
      ...line,
      ...NOTHING_TO_LINK,
      wanted: "exported",
      generation: line.generation + 1,
      linked: false,
      halted: true,
      status: "logged_out",
      reason: EXPORTED_REASON,
    };
  }).catch(async (error) => {
    // After any other failure the commit may have been written, and the file be all that is left of the link.
    if (error instanceof TransferError) await discard();
    throw error;
  });
  return { line, messages: queue.length };
}

function assertLinked({ id, linked }: Line): void {
  if (!linked) throw new TransferError(`${id} is not linked: there is nothing to export`);
}

/**
 * Creates a line from an export file, with its queue; a running gateway connects it within 2 s. An
 * interrupted import resumes when it is run again with the same file; a completed one does nothing. Throws
 * TransferError, Problem, StoreError.
 */
export async function importLine(
  deps: TransferDeps,
  accountId: string,
  { passphrase, file }: { passphrase: string; file: Uint8Array },
): Promise<{ line: Line; messages: number }> {
  const { kv, runtime, link } = deps;
  const exported = openLineFile(file, passphrase, runtime.random, deps.keyOf);
  const takeLink = link.opened(Buffer.from(exported.link, "base64"));
  const importId = exported.id;
  const messages = exported.queue.length;
  const begun = (await kv.get(lineKeys.imported(importId))).value;
  const { value: made } = begun
    ? await kv.get(lineKeys.line(begun.lineId))
    : { value: await createPaused(deps, accountId, exported) };
  if (made === null) throw new TransferError("this line was imported here before and has since been deleted");
  if (made.accountId !== accountId) throw new TransferError("this line was imported for another account");
  if (begun?.done) return { line: made, messages };
  await takeLink(made.id);
  await writeQueue(deps, made, { importId, moved: exported.queue });
  const line = await change(kv, made.id, (line) => ({
    ...line,
    wanted: "connected",
    linked: true,
    halted: false,
    generation: line.generation + 1,
  }), (change, { id: lineId }) => change.set(lineKeys.imported(importId), { lineId, messages, done: true }));
  return { line, messages };
}

/** Creates the line as paused, so that it does not connect before its keys are written. Proxy and pacing are kept. */
async function createPaused(deps: TransferDeps, accountId: string, exported: Exported): Promise<Line> {
  const { id: importId, name, phone, restriction, pacing, isQueuePaused } = exported;
  return await new LineRegister(deps).create(accountId, {
    name,
    pairingPhone: null,
    proxy: sealedProxy(exported.proxy, deps.seal),
    commitWith(change, line) {
      change.set(lineKeys.line(line.id), { ...line, wanted: "paused", status: "disconnected", phone, restriction })
        .set(lineKeys.imported(importId), { lineId: line.id, messages: 0, done: false });
      if (pacing) change.set(lineKeys.pacing(line.id), pacing);
      if (isQueuePaused) change.set(lineKeys.queuePaused(line.id), true);
    },
  });
}

async function change(
  kv: Kv,
  lineId: string,
  next: (line: Line) => Line,
  alongside: (change: Change, line: Line) => void = () => {},
): Promise<Line> {
  return await retryOnConflict(kv, async () => {
    const slot = await kv.get(lineKeys.line(lineId));
    if (slot.value === null || slot.value.wanted === "deleted") {
      throw new TransferError(`there is no session ${lineId}`);
    }
    const line = next(slot.value);
    const change = new Change().check(slot).set(lineKeys.line(lineId), line);
    alongside(change, line);
    return { change, result: line };
  });
}

/** Resolves to the line once the running gateway has carried out its generation. Throws TransferError on timeout. */
async function untilObserved(kv: Kv, clock: Clock, { id, generation }: Line): Promise<Line> {
  const deadline = clock.now() + LET_GO_WITHIN_MS;
  for (;;) {
    const { value: line } = await kv.get(lineKeys.line(id));
    if (line && line.observedGeneration >= generation) return line;
    if (clock.now() > deadline) throw new TransferError(`the gateway that holds ${id} did not answer within 30 s`);
    await sleep(clock, POLL_MS);
  }
}
