/**
 * A process with the real journal, inbox and store of a line, which dies of one of its messages: run as a program with
 * the store's path. Prints what was handed over, as JSON, unless it dies.
 */
import { openDenoKv } from "../../src/store/deno_kv/deno_kv.ts";
import { makeSeal, sealKey } from "../../src/store/seal.ts";
import { openAuthState } from "../../src/whatsapp/baileys/auth_state.ts";
import { makeAlone, makeInbox } from "../../src/whatsapp/baileys/incoming/inbox.ts";
import { Journal } from "../../src/whatsapp/baileys/incoming/journal.ts";
import type { DecodeContext } from "../../src/whatsapp/baileys/incoming/decode.ts";
import { encodeWAMessage, proto } from "@whiskeysockets/baileys";
import { systemRuntime } from "../../src/runtime.ts";
import { testRuntime } from "./runtime.ts";
import { until } from "./until.ts";

export const LINE_ID = "ses_1";
export const POISON = "poison";
const FRIEND = "552@s.whatsapp.net";

/** The journal of the store at `path`. */
export async function journalAt(path: string) {
  const runtime = systemRuntime(testRuntime().log);
  const kv = await openDenoKv(path, { runtime });
  const line = { kv, seal: makeSeal(sealKey("a secret of the tests"), runtime.random), lineId: LINE_ID };
  const auth = await openAuthState(line);
  return { runtime, kv, auth, journal: new Journal(line, auth, runtime.clock) };
}

/** Writes messages with these ids into the journal, as a process does before it tells the network "received". */
export async function fill(path: string, ids: readonly string[]): Promise<void> {
  const { kv, auth, journal } = await journalAt(path);
  for (const id of ids) {
    const attrs = { id, from: FRIEND, t: String(Math.floor(Date.now() / 1000)) };
    const plaintext = encodeWAMessage(proto.Message.fromObject({ conversation: id }));
    await journal.keep(
      journal.entryOf({ part: `part of ${id}`, stanza: `${FRIEND}||${id}`, attrs }, plaintext),
      auth.keys,
    );
  }
  kv.close();
}

async function live(path: string): Promise<void> {
  const { runtime, kv, journal } = await journalAt(path);
  const { decrypted } = await journal.leftovers();
  const handed: [id: string, undecryptable: boolean][] = [];
  let setAside = 0;
  const inbox = makeInbox({
    journal,
    runtime,
    alone: makeAlone(runtime.clock),
    setAside: () => void setAside++,
    context: {
      me: { id: "551:1@s.whatsapp.net" },
      clock: runtime.clock,
      phoneOf: () => Promise.resolve(null),
      findOriginal: () => Promise.resolve(null),
      isLost: () => Promise.resolve(false),
      timer: () => Promise.resolve(),
    } as Partial<DecodeContext> as DecodeContext,
    async receive({ networkId, undecryptable }) {
      if (networkId === POISON && !undecryptable) Deno.kill(Deno.pid, "SIGKILL");
      handed.push([networkId, undecryptable]);
      return await Promise.resolve(false);
    },
  });
  inbox.open();
  for (const entry of decrypted) inbox.leftOver(entry);
  await until(async () => (await journal.leftovers()).decrypted.length === 0, "the journal to be empty");
  await inbox.close();
  kv.close();
  console.log(JSON.stringify({ handed, setAside }));
}

if (import.meta.main) await live(Deno.args[0]!);
