/** Which version of WhatsApp Web is announced, without a network. */
import assert from "node:assert/strict";
import { PINNED_VERSION } from "../../../src/whatsapp/baileys/pinned_version.ts";
import { makeWebVersions } from "../../../src/whatsapp/baileys/web_version.ts";
import { EgressError } from "../../../src/egress/egress_error.ts";
import { MemoryKv } from "../../support/memory_kv.ts";
import { testRuntime } from "../../support/runtime.ts";

/** A proxy that is asked for the page, and answers with this revision (null: it carries nothing). */
function proxyTo(revision: number | null) {
  const asked: string[] = [];
  const connect = (url: URL) => {
    asked.push(url.href);
    if (revision === null) return Promise.reject(new EgressError("unreachable", "it is down"));
    const page = `"client_revision":${revision}`;
    const answer = new TextEncoder().encode(`HTTP/1.1 200 OK\r\ncontent-length: ${page.length}\r\n\r\n${page}`);
    let left: Uint8Array | null = answer;
    return Promise.resolve({
      read(into: Uint8Array) {
        const bytes = left;
        left = null;
        if (bytes) into.set(bytes);
        return Promise.resolve(bytes?.length ?? null);
      },
      write: (bytes: Uint8Array) => Promise.resolve(bytes.length),
      close: () => {},
    });
  };
  return { asked, via: { connect } };
}

function scene() {
  const runtime = testRuntime();
  const kv = new MemoryKv();
  /** As after a restart. */
  const versions = () => makeWebVersions({ whatsapp: { url: null, version: null }, kv, runtime });
  return { runtime, versions };
}

Deno.test("the version is fetched through the line's proxy, for hours once", async () => {
  const { runtime, versions } = scene();
  const { asked, via } = proxyTo(1_234_567_890);
  const one = versions();
  for (let i = 0; i < 3; i++) {
    const { version, source } = await one.now(via);
    assert.deepEqual([version, source], ["2.3000.1234567890", "web.whatsapp.com"]);
  }
  assert.deepEqual(asked, ["https://web.whatsapp.com/sw.js"]);
  await runtime.clock.advance(6 * 60 * 60_000);
  await one.now(via);
  one.renew();
  await one.now(via);
  assert.equal(asked.length, 3);
});

Deno.test("a fetch that fails leaves the last one, also after a restart; before the first, the one of this release", async () => {
  const { runtime, versions } = scene();
  const down = proxyTo(null);
  const one = versions();
  const { version, source, since } = await one.now(down.via);
  assert.deepEqual([version, source], [PINNED_VERSION.version, "built in"]);
  assert.equal(since, Date.parse(PINNED_VERSION.releasedAt));
  await one.now(down.via);
  assert.equal(down.asked.length, 1, "lines that reconnect together ask once");
  await runtime.clock.advance(60_000);
  await one.now(proxyTo(1_234_567_890).via);
  assert.equal((await versions().now(down.via)).source, "web.whatsapp.com");
});

Deno.test("of this release's version and the fetched one the higher is announced", async () => {
  const { versions } = scene();
  assert.equal((await versions().now(proxyTo(1_000_000_000).via)).source, "built in");
});
