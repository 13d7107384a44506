/** A backup of any engine restores into any other: a folder, PostgreSQL with a bucket, Deno KV by URL, and back. */
import assert from "node:assert/strict";
import { backupData, restoreData } from "../../src/data/shared_backup.ts";
import { copyOptions, openData } from "../../src/engines.ts";
import { type Config, readConfig } from "../../src/config.ts";
import { openBucket } from "../../src/media/s3.ts";
import { makeBucketMediaStore } from "../../src/media/bucket_store.ts";
import { openDiskMediaStore } from "../../src/media/disk_store.ts";
import { mediaKeys } from "../../src/media/rows.ts";
import { denoKvFiles } from "../../src/store/deno_kv/file_engine.ts";
import { Change } from "../../src/store/kv.ts";
import { denoKvProgram, startDenoKv, TOKEN } from "../support/denokv.ts";
import { startPostgres, WITHOUT_POSTGRES } from "../support/postgres.ts";
import { s3Program, startS3 } from "../support/s3_server.ts";
import { silentRuntime } from "../support/runtime.ts";

const SECRET_KEY = "the key of every place";
const runtime = silentRuntime();

async function rowsIn(config: Config): Promise<unknown[]> {
  const data = await openData(config, runtime);
  try {
    return (await Array.fromAsync(data.kv.rows())).map(({ key, value }) => [key, value]);
  } finally {
    data.close();
  }
}

Deno.test({
  name: "a backup goes from a folder to PostgreSQL and a bucket, to a Deno KV by URL, and back into a folder",
  ignore: WITHOUT_POSTGRES || denoKvProgram() === null || s3Program() === null,
  async fn() {
    await using stack = new AsyncDisposableStack();
    const root = stack.adopt(await Deno.makeTempDir(), (folder) => Deno.remove(folder, { recursive: true }));
    const [postgres, denokv, s3] = await Promise.all([startPostgres(), startDenoKv(), startS3()]);
    for (const server of [postgres, denokv, s3]) stack.defer(() => server.remove());
    const at = (name: string, env: Record<string, string> = {}) =>
      readConfig({ PALOMA_DATA_DIR: `${root}/${name}`, PALOMA_SECRET_KEY: SECRET_KEY, ...env });
    const places = [
      at("first"),
      at("second", { PALOMA_STORE: await postgres.database(), ...s3.env }),
      at("third", { PALOMA_STORE: denokv.url, DENO_KV_ACCESS_TOKEN: TOKEN }),
      at("fourth"),
    ];

    const first = await openData(places[0]!, runtime);
    const account = await first.accounts.create({ name: "acme", plan: "free" });
    const media = await openDiskMediaStore(`${root}/first/media`, runtime);
    const content = new Uint8Array(9 * 1024 ** 2).fill(7);
    const { fileId: id, ...written } = await media.write(new Blob([content]).stream(), Infinity);
    await first.kv.commit(
      new Change().set(mediaKeys.file(id), {
        id,
        ...written,
        accountId: account.account.id,
        mimetype: "image/png",
        filename: "a.png",
        expiresAt: null,
      }),
    );
    await first.kv.commit(
      new Change().set(["t", 1], "x".repeat(3_000_000)).set(["t", "\0\ufffd\xff"], new Map([["a", 1n]]))
        .add(["t", "counter"], -5),
    );
    for (let i = 0; i < 4; i++) {
      const change = new Change();
      for (let n = 0; n < 500; n++) change.set(["many", i, n], { n });
      await first.kv.commit(change);
    }
    first.close();
    const rows = await rowsIn(places[0]!);
    // Of a bucket's files, and that the store was set back.
    const ofItsPlace = ["file_object", "setback"];
    const carried = (found: unknown[]) => found.filter((row) => !ofItsPlace.includes((row as [string[]])[0][0]!));

    for (const [i, place] of places.slice(1).entries()) {
      const file = `${root}/${i}.backup`;
      const made = await backupData(places[i]!, file, await copyOptions(places[i]!, runtime));
      const options = await copyOptions(place, runtime);
      const restored = await restoreData(file, place, options);
      assert.equal(made.files, 1);
      assert.equal(restored.files, 1);
      assert.deepEqual(carried(await rowsIn(place)), rows);
      await assert.rejects(restoreData(file, place, options), /holds data already/);
    }
    const bucket = makeBucketMediaStore({
      bucket: openBucket(s3.config, runtime),
      kv: { commit: () => Promise.resolve("1") } as never,
      runtime,
      engine: denoKvFiles,
    });
    const kept = await bucket.read(id, { start: 0, length: written.size });
    assert.deepEqual(await new Response(kept).bytes(), content);
    const last = await openDiskMediaStore(`${root}/fourth/media`, runtime);
    assert.deepEqual(await Deno.readFile(last.path(id)), content);
    const data = await openData(places[3]!, runtime);
    assert.equal(await data.accounts.apiKey(account.account.id), account.apiKey);
    data.close();
  },
});
