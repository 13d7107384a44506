/** No key, text or QR of the messaging library reaches an output (promise 6). Each test plants one. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { SessionRecord } from "libsignal";
import pino from "pino";
import { quietLogger, silenceLibsignal } from "../../../../src/whatsapp/baileys/repairs/containment.ts";

interface Entry {
  registrationId: number;
  currentRatchet: unknown;
  indexInfo: unknown;
}

/** What the library's class has beyond its published type. */
const Record = SessionRecord as unknown as {
  new (): { closeSession(entry: Entry): void; openSession(entry: Entry): void };
  createEntry(): Entry;
};

/** A session as libsignal prints it when it closes. */
function session(): Entry {
  const entry = Record.createEntry();
  entry.registrationId = 1;
  entry.currentRatchet = { rootKey: Buffer.from("root key of the session") };
  entry.indexInfo = { baseKey: Buffer.from("base"), closed: -1 };
  return entry;
}

/** Runs `work` with a console that remembers. */
function printed(work: (console: Console) => void): unknown[][] {
  const calls: unknown[][] = [];
  const remember = (...args: unknown[]) => void calls.push(args);
  const fake = {
    log: remember,
    info: remember,
    warn: remember,
    error: remember,
    debug: remember,
  } as unknown as Console;
  work(fake);
  return calls;
}

Deno.test("libsignal's prints of sessions reach no output, and other prints do", () => {
  const real = { info: console.info, warn: console.warn };
  const seen: unknown[][] = [];
  console.info = (...args: unknown[]) => void seen.push(args);
  console.warn = (...args: unknown[]) => void seen.push(args);
  try {
    const record = new Record();
    const entry = session();
    record.closeSession(entry);
    assert.equal(seen.length, 1, "unsilenced, the library prints the session");
    silenceLibsignal();
    record.openSession(entry);
    record.closeSession(entry);
    record.closeSession(entry);
    assert.equal(seen.length, 1, "silenced, it prints nothing");
    console.info("our own words");
    assert.deepEqual(seen.at(-1), ["our own words"]);
  } finally {
    Object.assign(console, real);
  }
});

Deno.test("a session that anybody prints reaches no output", () => {
  const calls = printed((console) => {
    silenceLibsignal(console);
    console.error("look", session());
    console.log("fine");
  });
  assert.deepEqual(calls, [["fine"]]);
});

function logged(work: (logger: ReturnType<typeof quietLogger>) => void): string {
  let text = "";
  const log = pino({ level: "trace" }, { write: (line: string) => void (text += line) });
  work(quietLogger(log));
  return text;
}

Deno.test("the library's log loses nodes, texts, keys and sentences that are not known", () => {
  const text = logged((logger) => {
    for (const level of ["trace", "debug", "info", "warn", "error"] as const) {
      logger[level]({ fullErrorNode: "NODE", qr: "QR", key: { id: "X" } }, "stream errored out");
      logger[level]({ creds: "CREDS" }, "a new sentence with a SECRET");
      logger[level]("a text alone with a SECRET");
    }
    logger.child({ msg: "TEXT" }).error({ err: new Error("message of an error: TEXT") }, "failed to decrypt message");
  });
  assert.doesNotMatch(text, /NODE|QR|CREDS|SECRET|TEXT/);
  assert.match(text, /stream errored out/);
  assert.match(text, /failed to decrypt message/);
});

Deno.test("of an error only its kind and code are logged", () => {
  const error = Object.assign(new TypeError("the text of a message"), { output: { statusCode: 408 } });
  const line = JSON.parse(
    logged((logger) => logger.warn({ error, msgId: "3EB0" }, "Failed to upload pre-keys to server")),
  );
  assert.equal(line.error, "TypeError");
  assert.equal(line.code, 408);
  assert.equal(line.networkId, "3EB0");
  assert.equal("stack" in line, false);
});
