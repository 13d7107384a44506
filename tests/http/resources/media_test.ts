import assert from "node:assert/strict";
import { keepFile } from "../../../src/media/store.ts";
import { Change } from "../../../src/store/kv.ts";
import { expectAnswer, problem } from "../../support/api_table.ts";
import { type ApiWorld, withApi } from "../../support/api_world.ts";

const LIVES_MS = 5_000;

/** Keeps a file as an incoming message would; resolves to the path of its link. */
async function keep(
  world: ApiWorld,
  { content, mimetype, filename }: Record<"content" | "mimetype" | "filename", string>,
) {
  const { fileId: id, ...written } = await world.media.write(new Blob([content]).stream(), 1000);
  const now = world.runtime.clock.now();
  const expiresAt = now + LIVES_MS;
  const change = new Change();
  keepFile(change, { id, ...written, accountId: world.account.id, mimetype, filename, expiresAt });
  await world.kv.commit(change);
  const url = new URL(world.links.sign(id, expiresAt));
  return url.pathname + url.search;
}

const picture = { content: "0123456789", mimetype: "image/png", filename: "Fotó.png" };
const get = (world: ApiWorld, path: string, headers: Record<string, string> = {}) =>
  world.call("GET", path, { key: null, headers });

Deno.test("a file is served by its link, without a key", () =>
  withApi(async (world) => {
    const path = await keep(world, picture);
    await expectAnswer(await get(world, path), {
      status: 200,
      contains: [/^0123456789$/],
      headers: {
        "content-type": "image/png",
        "content-length": "10",
        "x-content-type-options": "nosniff",
        "accept-ranges": "bytes",
        "content-disposition": /^inline; .*filename\*=UTF-8''Fot%C3%B3\.png/,
        "content-security-policy": /sandbox/,
      },
    });
    const head = await world.call("HEAD", path, { key: null });
    assert.equal(head.status, 200);
    assert.equal(head.headers.get("content-length"), "10");
    assert.equal(await head.text(), "");
  }));

Deno.test("a range of a file is served, and one outside of it refused", () =>
  withApi(async (world) => {
    const path = await keep(world, picture);
    const rows: [range: string, status: number, body: string, contentRange: string | null][] = [
      ["bytes=0-3", 206, "0123", "bytes 0-3/10"],
      ["bytes=8-", 206, "89", "bytes 8-9/10"],
      ["bytes=-2", 206, "89", "bytes 8-9/10"],
      ["lines=1-2", 200, "0123456789", null],
    ];
    for (const [range, status, body, contentRange] of rows) {
      const response = await get(world, path, { range });
      assert.equal(await expectAnswer(response, { status, headers: { "content-range": contentRange } }), body);
    }
    await expectAnswer(await get(world, path, { range: "bytes=10-" }), {
      status: 416,
      contains: problem("range_not_satisfiable"),
      headers: { "content-range": "bytes */10" },
    });
  }));

Deno.test("a range is of the file that the client has, and a file that it has is not sent again", () =>
  withApi(async (world) => {
    const path = await keep(world, picture);
    const etag = (await get(world, path)).headers.get("etag")!;
    const range = "bytes=0-3";
    const rows: [headers: Record<string, string>, status: number, body: string][] = [
      [{ range, "if-range": etag }, 206, "0123"],
      [{ range, "if-range": '"another"' }, 200, "0123456789"],
      [{ range, "if-range": `W/${etag}` }, 200, "0123456789"],
      [{ range, "if-range": "Wed, 21 Oct 2015 07:28:00 GMT" }, 200, "0123456789"],
      [{ "if-none-match": `"another", ${etag}` }, 304, ""],
      [{ "if-none-match": '"another"' }, 200, "0123456789"],
    ];
    for (const [headers, status, body] of rows) {
      assert.equal(await expectAnswer(await get(world, path, headers), { status, headers: { etag } }), body);
    }
  }));

Deno.test("a link works to its last second, and no other link does", () =>
  withApi(async (world) => {
    const path = await keep(world, picture);
    const forged = [
      path.replace(/signature=../, "signature=00"),
      path.replace(/expires=\d+/, (expires) => `${expires}0`),
      path.replace(/&signature=.*/, ""),
      path.replace(/\?.*/, ""),
      path.replace(/med_\w+/, `med_${"0".repeat(26)}`),
      "/media/..%2f..%2fetc%2fpasswd?expires=1&signature=1",
    ];
    for (const wrong of forged) {
      await expectAnswer(await get(world, wrong), { status: 404, contains: problem("not_found"), lacks: ["0123"] });
    }
    await world.runtime.clock.advance(LIVES_MS - 1000);
    await expectAnswer(await get(world, path), { status: 200 });
    await world.runtime.clock.advance(1000);
    await expectAnswer(await get(world, path), { status: 404, contains: problem("not_found") });
  }));

Deno.test("a file that a browser could run is a download of plain bytes", () =>
  withApi(async (world) => {
    for (const mimetype of ["text/html", "image/svg+xml", "application/xhtml+xml", "text/javascript"]) {
      const path = await keep(world, { content: "<script>alert(1)</script>", mimetype, filename: "a.html" });
      await expectAnswer(await get(world, path), {
        status: 200,
        headers: { "content-type": "application/octet-stream", "content-disposition": /^attachment/ },
      });
    }
  }));
