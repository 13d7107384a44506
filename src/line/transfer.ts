/**
 * A line moves to another gateway without a new QR: a file, sealed under a passphrase, holds what links it. The old place
 * gives that up, for two gateways with the credentials of one line throw each other out for ever.
 */
import { Buffer } from "node:buffer";
import type { Accounts } from "../account/account.ts";
import { OperatorError } from "../errors.ts";
import { type Clock, type Runtime, sleep } from "../runtime.ts";
import { Change, type Kv, retryOnConflict } from "../store/kv.ts";
import { makeSeal, passphraseKey, type Seal, SealError } from "../store/seal.ts";
import type { LinkCopy } from "../whatsapp/network.ts";
import { type Line, NOTHING_TO_LINK } from "./line.ts";
import type { LiveLines } from "./live.ts";
import { makeLines } from "./lines.ts";
import { lineKeys } from "./rows.ts";

/** What it cannot do; the message says why and what to do. */
class TransferError extends OperatorError {
  readonly code = "transfer_failed";
  override name = "TransferError";
}

interface TransferDeps {
  kv: Kv;
  seal: Seal;
  runtime: Runtime;
  accounts: Pick<Accounts, "caller">;
  link: LinkCopy;
  /** Adds to the commit that makes a line what lets a process take it up. */
  offer(change: Change, lineId: string): void;
}

interface TransferOptions {
  passphrase: string;
  /** Whether a gateway runs on this folder: it must let go of the line first. */
  gatewayRuns: boolean;
}

const MAGIC = Buffer.from("paloma line 1\n");
const SALT_BYTES = 16;
/** A gateway that runs looks at its lines every 2 s, and lets a message on its way come to its end. */
const LET_GO_WITHIN_MS = 30_000;
const POLL_MS = 200;
const REASON = "It was exported to another gateway; reconnect links it here anew.";

interface Exported {
  name: string;
  phone: string | null;
  link: string;
}

/**
 * Takes the line out of this gateway: `write` has to put the file on disk before the link is dropped here. What waits in
 * its queue stays, and fails unless the line is linked anew. Throws TransferError, StoreError.
 */
export async function exportLine(
  deps: Omit<TransferDeps, "offer">,
  lineId: string,
  { passphrase, gatewayRuns, write }: TransferOptions & { write(file: Uint8Array): Promise<void> },
): Promise<Line> {
  const { kv, runtime, link } = deps;
  const asked = await change(kv, lineId, (line) => {
    if (!line.linked) throw new TransferError(`${lineId} is not linked: there is nothing to export`);
    return { ...line, wanted: "paused", generation: line.generation + 1 };
  });
  if (gatewayRuns) await untilLetGo(kv, runtime.clock, asked);
  const exported: Exported = {
    name: asked.name,
    phone: asked.phone,
    link: Buffer.from(await link.read(lineId)).toString("base64"),
  };
  const salt = runtime.random.bytes(SALT_BYTES);
  const sealed = sealOf(passphrase, salt, runtime).seal(new TextEncoder().encode(JSON.stringify(exported)));
  await write(Buffer.concat([MAGIC, salt, sealed]));
  await link.drop(lineId);
  return await change(kv, lineId, (line) => ({
    ...line,
    ...NOTHING_TO_LINK,
    linked: false,
    halted: true,
    status: "logged_out",
    reason: REASON,
  }));
}

/** Makes a line of what was exported; a gateway that runs connects it within 2 s. Throws TransferError, Problem, StoreError. */
export async function importLine(
  deps: TransferDeps,
  accountId: string,
  { passphrase, file }: { passphrase: string; file: Uint8Array },
): Promise<Line> {
  const { kv, seal, runtime, accounts, link, offer } = deps;
  const { name, phone, link: copy } = opened(file, passphrase, runtime);
  // No session of this process takes the line up, so nobody has to be told of it.
  const live: LiveLines = {
    offer,
    reconcile() {},
    queueChanged() {},
    watch: () => () => {},
    watchAll: () => () => {},
    connection: () => null,
    present: () => null,
    deliver: () => Promise.resolve({ kind: "hold", detail: "There are no connections here." }),
    vitals: () => Promise.resolve({ connection: null, connectedSince: null }),
  };
  // It is made without a proxy, so that no address has to be vetted.
  const safeFetch = { vet: () => Promise.resolve() };
  const lines = makeLines({ kv, runtime, accounts, live, seal, safeFetch, names: { changed() {} } });
  const made = await lines.create(accountId, {
    name,
    pairingPhone: null,
    // Nobody connects it before its keys are there.
    commitWith: (change, line) =>
      change.set(lineKeys.line(line.id), { ...line, wanted: "paused", status: "disconnected", phone }),
  });
  await link.write(made.id, Buffer.from(copy, "base64"));
  return await change(kv, made.id, (line) => ({
    ...line,
    wanted: "connected",
    linked: true,
    halted: false,
    generation: line.generation + 1,
  }));
}

function opened(file: Uint8Array, passphrase: string, runtime: Pick<Runtime, "random">): Exported {
  if (Buffer.compare(file.subarray(0, MAGIC.length), MAGIC) !== 0) {
    throw new TransferError("this is not the file of an exported line");
  }
  const salt = file.subarray(MAGIC.length, MAGIC.length + SALT_BYTES);
  try {
    const text = sealOf(passphrase, salt, runtime).open(file.subarray(MAGIC.length + SALT_BYTES));
    return JSON.parse(new TextDecoder().decode(text));
  } catch (error) {
    if (error instanceof SealError) throw new TransferError("the passphrase is another one, or the file is damaged");
    throw error;
  }
}

function sealOf(passphrase: string, salt: Uint8Array, { random }: Pick<Runtime, "random">) {
  return makeSeal(passphraseKey(passphrase, salt), random);
}

async function change(kv: Kv, lineId: string, next: (line: Line) => Line): Promise<Line> {
  return await retryOnConflict(kv, async () => {
    const slot = await kv.get(lineKeys.line(lineId));
    if (slot.value === null || slot.value.wanted === "deleted") {
      throw new TransferError(`there is no session ${lineId}`);
    }
    const line = next(slot.value);
    return { change: new Change().check(slot).set(lineKeys.line(lineId), line), result: line };
  });
}

async function untilLetGo(kv: Kv, clock: Clock, { id, generation }: Line): Promise<void> {
  const over = clock.now() + LET_GO_WITHIN_MS;
  for (;;) {
    const { value: line } = await kv.get(lineKeys.line(id));
    if (line && line.observedGeneration >= generation && line.status === "disconnected") return;
    if (clock.now() > over) throw new TransferError(`the gateway did not let go of ${id}; it stays paused here`);
    await sleep(clock, POLL_MS);
  }
}
