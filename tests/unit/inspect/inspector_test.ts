/** Untrusted files are read in a process of their own, which is ended when it passes its bounds. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { getPriority } from "node:os";
import { deflateSync } from "node:zlib";
import { PNG } from "pngjs";
import type { UntrustedFile } from "../../../src/inspect/inspection.ts";
import { makeInspector, makeReadOutside } from "../../../src/inspect/inspector.ts";
import { systemClock } from "../../../src/runtime.ts";
import { ManualClock } from "../../support/runtime.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const never = new AbortController().signal;
/** Whose time never ends, however slow the machine is. */
const patient = makeInspector({ clock: new ManualClock() })("acc_1");

/** Runs with the file on disk. */
async function withFile(
  { bytes, ...file }: { bytes: Uint8Array; kind: UntrustedFile["kind"]; mimetype: string },
  run: (file: UntrustedFile) => Promise<void>,
): Promise<void> {
  await using temp = await tempFolder();
  const path = `${temp.path}/a file, named so`;
  await Deno.writeFile(path, bytes);
  await run({ ...file, path, size: bytes.length });
}

function chunk(type: string, data: Uint8Array): Buffer {
  const bytes = Buffer.alloc(12 + data.length);
  bytes.writeUInt32BE(data.length, 0);
  bytes.write(type, 4, "latin1");
  bytes.set(data, 8);
  return bytes;
}

const IMAGE = { kind: "image", mimetype: "image/png" } as const;
const SMALL_PNG = PNG.sync.write(new PNG({ width: 30, height: 20 }));

Deno.test("an image tells its size and its preview from the other process", async () => {
  await withFile({ bytes: SMALL_PNG, ...IMAGE }, async (file) => {
    const facts = await patient(file, { signal: never });
    assert.deepEqual([facts?.width, facts?.height], [30, 20]);
    assert.equal(Buffer.from(facts!.jpegThumbnail!).readUInt16BE(0), 0xffd8);
  });
});

Deno.test("a PDF tells its pages from the other process", async () => {
  const bytes = new TextEncoder().encode("1 0 obj << /Type /Pages /Count 3 >> endobj");
  await withFile({ bytes, kind: "document", mimetype: "application/pdf" }, async (file) => {
    assert.deepEqual(await patient(file, { signal: never }), { pageCount: 3 });
  });
});

Deno.test("a file that is not there tells nothing, and one whose time is over may be asked again", async () => {
  const inspect = makeInspector({ clock: systemClock })("acc_1");
  assert.deepEqual(await inspect({ ...IMAGE, path: "/nowhere", size: 10 }, { signal: never }), {});
  await withFile({ bytes: SMALL_PNG, ...IMAGE }, async (file) => {
    assert.deepEqual(await inspect(file, { signal: AbortSignal.abort() }), null);
    const hasty = makeInspector({ clock: systemClock, bounds: { runMs: 1, memoryBytes: Number.MAX_SAFE_INTEGER } })(
      "acc_1",
    );
    assert.deepEqual(await hasty(file, { signal: never }), null);
  });
});

Deno.test("a process that takes too much memory is ended, and the next file is read", async () => {
  const bounds = { runMs: 60_000, memoryBytes: 1 };
  await withFile({ bytes: SMALL_PNG, ...IMAGE }, async (file) => {
    assert.deepEqual(await makeInspector({ clock: systemClock, bounds })("acc_1")(file, { signal: never }), {});
    assert.equal((await patient(file, { signal: never }))?.width, 30);
  });
});

Deno.test("a PNG of a pixel that unpacks to 2 GB costs the gateway nothing", async () => {
  const header = Buffer.from([0, 0, 0, 1, 0, 0, 0, 1, 8, 6, 0, 0, 1]);
  // A gigabyte of zeros is a megabyte; the process would be ended long before.
  const packed = deflateSync(new Uint8Array(64 * 1024 ** 2));
  const blocks = Array.from({ length: 16 }, () => chunk("IDAT", packed));
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  const bytes = Buffer.concat([signature, chunk("IHDR", header), ...blocks, chunk("IEND", new Uint8Array())]);
  await withFile({ bytes, ...IMAGE }, async (file) => {
    const before = Deno.memoryUsage().rss;
    assert.deepEqual(await makeInspector({ clock: systemClock })("acc_1")(file, { signal: never }), {
      width: 1,
      height: 1,
    });
    // Half of what it unpacks to: other tests work in this process too.
    assert.ok(Deno.memoryUsage().rss - before < 512 * 1024 ** 2);
  });
});

Deno.test("an image that is at hand in bytes goes to the other process too", async () => {
  const facts = await patient(SMALL_PNG, { signal: never });
  assert.deepEqual([facts?.width, facts?.height], [30, 20]);
  assert.ok(facts?.jpegThumbnail);
  const large = new Uint8Array(4 * 1024 ** 2);
  assert.deepEqual(await makeInspector({ clock: systemClock })("acc_1")(large, { signal: never }), {});
});

Deno.test("an account whose lines bring much waits for itself, and another's turn comes", async () => {
  const readOutside = makeReadOutside({ clock: new ManualClock() });
  const ended: string[] = [];
  const read = (account: string) =>
    readOutside(account)({ read: "history" }, [deflateSync(new Uint8Array(0))]).then(() => ended.push(account));
  await Promise.all([read("acc_1"), read("acc_1"), read("acc_1"), read("acc_2")]);
  assert.ok(ended.indexOf("acc_2") < 2, ended.join(" "));
});

Deno.test(
  "what nobody waits for is read behind other work of the machine",
  { ignore: Deno.build.os !== "linux" },
  async () => {
    const bytes = [deflateSync(new Uint8Array(0))];
    let seen: number[] = [];
    // Iterated once the process runs, which then waits for them.
    const watched = Object.assign([...bytes], {
      [Symbol.iterator]: () => {
        seen = niceOfChildren();
        return bytes.values();
      },
    });
    await makeReadOutside({ clock: new ManualClock() })("acc_1")({ read: "history" }, watched);
    assert.ok(seen.includes(Math.max(5, getPriority())), seen.join(" "));
  },
);

/** Other tests of this process may have children too, which may end meanwhile. */
function niceOfChildren(): number[] {
  const threads = [...Deno.readDirSync("/proc/self/task")].map(({ name }) => `/proc/self/task/${name}/children`);
  return threads.flatMap((path) => textOf(path).split(" ").filter(Boolean)).map((pid) => {
    const stat = textOf(`/proc/${pid}/stat`);
    // After the name in brackets: field 19 of proc(5).
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[16]);
  });
}

function textOf(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch {
    return "";
  }
}
