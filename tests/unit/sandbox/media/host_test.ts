import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash, randomBytes } from "node:crypto";
import { Agent, get } from "node:https";
import { type MediaHost, startMedia } from "../../../../src/sandbox/media/host.ts";
import { systemClock } from "../../../../src/runtime.ts";
import { testRuntime } from "../../../support/runtime.ts";

async function withMedia(run: (media: MediaHost, client: Deno.HttpClient) => Promise<void>): Promise<void> {
  // The certificate must be valid today.
  const media = await startMedia({ runtime: { ...testRuntime(), clock: systemClock } });
  const client = Deno.createHttpClient({ caCerts: [media.caPem] });
  try {
    await run(media, client);
  } finally {
    client.close();
    await media.close();
  }
}

function tokenOf(body: Uint8Array): string {
  return createHash("sha256").update(body).digest("base64url");
}

function uploadUrl(media: MediaHost, token: string, auth = media.auth): string {
  return `${media.url}/mms/document/${token}?auth=${encodeURIComponent(auth)}&token=${token}`;
}

Deno.test("an uploaded file can be downloaded whole and in part", async () => {
  await withMedia(async (media, client) => {
    const body = randomBytes(300_000);
    const uploaded = await fetch(uploadUrl(media, tokenOf(body)), { client, method: "POST", body });
    const { url, direct_path: path } = await uploaded.json();
    assert.equal(url, media.url + path);
    assert.deepEqual(media.paths(), [path]);
    const whole = await fetch(url, { client });
    assert.deepEqual(Buffer.from(await whole.arrayBuffer()), body);

    const parts: [string, number, Buffer][] = [
      ["bytes=0-15", 206, body.subarray(0, 16)],
      ["bytes=100000-", 206, body.subarray(100_000)],
      ["bytes=-10", 206, body.subarray(-10)],
      ["bytes=299990-999999", 206, body.subarray(299_990)],
      ["bytes=300000-", 416, Buffer.alloc(0)],
      ["lines=1-2", 416, Buffer.alloc(0)],
    ];
    for (const [range, status, expected] of parts) {
      const part: Response = await fetch(url, { client, headers: { range } });
      assert.equal(part.status, status, range);
      assert.deepEqual(Buffer.from(await part.arrayBuffer()), expected, range);
    }
  });
});

Deno.test("an upload without the auth token, or under a wrong hash, stores nothing", async () => {
  await withMedia(async (media, client) => {
    const body = randomBytes(1000);
    const refused: [string, number][] = [
      [uploadUrl(media, tokenOf(body), "wrong"), 401],
      [uploadUrl(media, tokenOf(randomBytes(10))), 400],
      [`${media.url}/elsewhere?auth=${media.auth}`, 404],
    ];
    for (const [url, status] of refused) {
      const response = await fetch(url, { client, method: "POST", body });
      await response.body?.cancel();
      assert.equal(response.status, status, url);
    }
    assert.deepEqual(media.paths(), []);
  });
});

Deno.test("a removed file is gone, and uploading it again gives it a new path", async () => {
  await withMedia(async (media, client) => {
    const body = randomBytes(1000);
    const send = async () => (await fetch(uploadUrl(media, tokenOf(body)), { client, method: "POST", body })).json();
    const { direct_path: path } = await send();
    assert.equal(await media.remove(path), true);
    assert.equal(await media.remove(path), false);
    const gone = await fetch(media.url + path, { client });
    await gone.body?.cancel();
    assert.equal(gone.status, 404);
    assert.notEqual((await send()).direct_path, path);
  });
});

Deno.test("a companion removes a file that it has read", async () => {
  await withMedia(async (media, client) => {
    const body = randomBytes(1000);
    const { url } = await (await fetch(uploadUrl(media, tokenOf(body)), { client, method: "POST", body })).json();
    const statuses: number[] = [];
    for (const method of ["DELETE", "DELETE", "GET"]) {
      const answer = await fetch(url, { client, method });
      await answer.body?.cancel();
      statuses.push(answer.status);
    }
    assert.deepEqual(statuses, [200, 404, 404]);
    assert.deepEqual(media.paths(), []);
  });
});

Deno.test("clients that do not know the network's authority refuse the host", async () => {
  await withMedia(async (media) => {
    const status = (ca?: string) =>
      new Promise((resolve, reject) => {
        const request = get(media.url, { ca, agent: new Agent({ keepAlive: false }) }, (response) => {
          response.resume().on("end", () => resolve(response.statusCode));
        });
        request.on("error", reject);
      });
    assert.equal(await status(media.caPem), 404);
    await assert.rejects(status());
  });
});
