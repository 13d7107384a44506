import assert from "node:assert/strict";
import { join } from "node:path";
import { isSealedFile, openSealedFile, sealFile } from "../../../src/data/sealed_file.ts";
import { seededRandom } from "../../support/runtime.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const random = seededRandom(3);
const passphrase = "correct horse battery";
const FRAME = 1024 * 1024;

async function inFolder(run: (path: (name: string) => string) => Promise<void>): Promise<void> {
  await using temp = await tempFolder();
  await run((name) => join(temp.path, name));
}

async function seal(from: string, to: string): Promise<void> {
  await Deno.writeFile(to, new Uint8Array());
  using source = await Deno.open(from);
  await sealFile(source, to, { passphrase, random });
}

async function open(from: string, to: string, passphrase: string): Promise<void> {
  using target = await Deno.create(to);
  await openSealedFile(from, target, { passphrase, random });
}

Deno.test("a file of any size comes back as it was", () =>
  inFolder(async (path) => {
    for (const size of [0, 1, FRAME - 1, FRAME, FRAME + 1, 2 * FRAME]) {
      const bytes = random.bytes(size);
      await Deno.writeFile(path("plain"), bytes);
      await seal(path("plain"), path(`sealed${size}`));
      assert.ok(await isSealedFile(path(`sealed${size}`)) && !await isSealedFile(path("plain")));
      await open(path(`sealed${size}`), path(`open${size}`), passphrase);
      assert.deepEqual(await Deno.readFile(path(`open${size}`)), bytes);
    }
  }));

Deno.test("another passphrase, and a file that was altered, cut off or put together anew, do not open", () =>
  inFolder(async (path) => {
    await Deno.writeFile(path("plain"), random.bytes(2 * FRAME + 100));
    await seal(path("plain"), path("sealed"));
    const sealed = await Deno.readFile(path("sealed"));
    const head = 32;
    const frame = 4 + 1 + 12 + 5 + FRAME + 16;
    const frames = [sealed.slice(head, head + frame), sealed.slice(head + frame, head + 2 * frame)];
    const swapped = new Uint8Array([
      ...sealed.slice(0, head),
      ...frames[1]!,
      ...frames[0]!,
      ...sealed.slice(head + 2 * frame),
    ]);
    const altered = sealed.slice();
    altered[head + 500]! ^= 1;
    const refused = { cut: sealed.slice(0, head + 2 * frame), torn: sealed.slice(0, -5), swapped, altered };
    for (const [name, bytes] of Object.entries(refused)) {
      await Deno.writeFile(path(name), bytes);
      await assert.rejects(
        open(path(name), path(`${name}.open`), passphrase),
        { code: "sealed_file_unusable" },
        name,
      );
    }
    const other = open(path("sealed"), path("open"), "another one altogether");
    await assert.rejects(other, { code: "sealed_file_unusable" });
  }));
