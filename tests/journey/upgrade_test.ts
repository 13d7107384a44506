/** Data folders of earlier schemas, opened with today's code; `tests/fixtures/upgrade/make.ts` made them. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { join } from "node:path";
import pino from "pino";
import { migrations } from "../../src/ops/migrations.ts";
import { httpClient, type Json } from "../../src/cli/client.ts";
import { dataKeys } from "../../src/data/rows.ts";
import { makeIds, systemClock, systemRandom } from "../../src/runtime.ts";
import { type SandboxNetwork, startNetwork } from "../../src/sandbox/network.ts";
import { newCompanion } from "../../src/sandbox/world/directory.ts";
import { denoKvEngine } from "../../src/store/deno_kv/deno_kv.ts";
import { Change } from "../../src/store/kv.ts";
import type { UpgradeFolder } from "../fixtures/upgrade/make.ts";
import { startGatewayHere } from "../support/gateway_here.ts";
import { tryCommand } from "../support/gateway_process.ts";
import { LeapClock } from "../support/leap_clock.ts";
import { Receiver } from "../support/receiver.ts";
import { confirmedBy, testRuntime } from "../support/runtime.ts";
import { until } from "../support/until.ts";

const FIXTURES = join(import.meta.dirname!, "..", "fixtures", "upgrade");
const NEWEST = migrations.at(-1)!.to;
/** A folder's own database is what this is about, not a server's. */
const ignore = Deno.env.has("PALOMA_TEST_STORE");
const schemas = [...Deno.readDirSync(FIXTURES)].map(({ name }) => name).filter((name) => name.startsWith("schema-"));

/** A copy, which a test may change. */
async function copyOf(schema: string): Promise<string> {
  const dataDir = await Deno.makeTempDir({ prefix: "paloma-upgrade-" });
  for await (const { name } of Deno.readDir(join(FIXTURES, schema))) {
    await Deno.copyFile(join(FIXTURES, schema, name), join(dataDir, name));
  }
  return dataDir;
}

/** The names and versions of all rows. */
async function rowsOf(dataDir: string): Promise<string[]> {
  using kv = await Deno.openKv(join(dataDir, "paloma.db"));
  const rows = await Array.fromAsync(kv.list({ prefix: [] }));
  return rows.map(({ key, versionstamp }) => `${key.join("/")} ${versionstamp}`);
}

/** A network at that time on which the folder's line is linked: new phones of its numbers, and its companion. */
async function networkOf({ lids, line, companion }: UpgradeFolder, clock: LeapClock): Promise<SandboxNetwork> {
  const digits: number[] = [];
  const random = {
    ...systemRandom,
    between: (min: number, max: number) => digits.shift() ?? systemRandom.between(min, max),
  };
  const log = pino({ level: "silent" });
  const network = await startNetwork({
    runtime: { clock, confirmed: confirmedBy(clock), random, ids: makeIds(clock, random), log },
  });
  for (const [number, lid] of Object.entries(lids)) {
    digits.push(...[...lid.split("@")[0]!.slice(1)].map(Number));
    network.addPhone(number);
    assert.equal(network.switchboard.directory.account(number)!.lid, lid);
  }
  const account = network.switchboard.directory.account(line)!;
  const bytes = (text: string) => new Uint8Array(Buffer.from(text, "base64"));
  const { id, noisePublic, keyIndex, identity, registrationId, identityKey, signedPreKey, preKey } = companion;
  account.nextDeviceId = id + 1;
  const linked = newCompanion({ account, device: id }, {
    noisePublic,
    keyIndex,
    identity: bytes(identity),
    keys: {
      registrationId,
      identityKey: bytes(identityKey),
      signedPreKey: {
        id: signedPreKey.id,
        publicKey: bytes(signedPreKey.publicKey),
        signature: bytes(signedPreKey.signature),
      },
      preKeys: [{ id: preKey.id, publicKey: bytes(preKey.publicKey) }],
    },
    linkedAt: clock.now(),
  });
  network.switchboard.addCompanion(Object.assign(linked, { available: false, welcomed: true }));
  return network;
}

Deno.test("there is a data folder of today's schema for later versions to be tested with", () => {
  assert.ok(schemas.includes(`schema-${NEWEST}`), "run tests/fixtures/upgrade/make.ts before the release");
});

for (const schema of schemas) {
  Deno.test(
    `data of ${schema} goes on: history, a line without a new QR, its queue, its webhook`,
    { ignore },
    async () => {
      const folder: UpgradeFolder = JSON.parse(await Deno.readTextFile(join(FIXTURES, schema, "about.json")));
      const { sessionId, webhookId, delivered, waiting, scheduled } = folder;
      const dataDir = await copyOf(schema);
      // A minute after the old version was stopped; what waits in the folder would have expired by now.
      const clock = new LeapClock();
      clock.leap(folder.at + 60_000 - systemClock.now());
      const network = await networkOf(folder, clock);
      const ca = join(dataDir, "ca.pem");
      await Deno.writeTextFile(ca, network.caPem);
      const receiver = await Receiver.start();
      const gateway = await startGatewayHere({
        PALOMA_DATA_DIR: dataDir,
        PALOMA_WHATSAPP_URL: network.url,
        PALOMA_WHATSAPP_ROOT_KEY: network.rootKey,
        PALOMA_WHATSAPP_MEDIA_URL: network.mediaUrl,
        PALOMA_WHATSAPP_CA: ca,
        PALOMA_OUTBOUND_ALLOW: "127.0.0.0/8",
      }, { clock });
      try {
        const api = httpClient(gateway.baseUrl, { "x-api-key": folder.apiKey });
        const control = httpClient(network.controlUrl);
        await until(async () => {
          const { data } = await api.call("GET", `/sessions/${sessionId}/status`);
          return data.status === "connected";
        }, "the line to be connected");

        const { data: history } = await api.call("GET", "/messages/history?limit=100");
        assert.deepEqual(
          history.map(({ messageId, status, text, to }: Json) => [messageId, status, text, to]),
          [scheduled, ...waiting.toReversed()].map(({ messageId, text, to }) => [messageId, "queued", text, to])
            .concat([[delivered.messageId, "sent", delivered.text, delivered.to]]),
        );
        assert.ok(history.at(-1).deliveredAt, "the receipt is kept");

        await api.call("PUT", `/webhooks/${webhookId}`, { url: receiver.url });
        await api.call("POST", `/sessions/${sessionId}/queue/resume`);
        const inbox = async (texts: readonly string[]) => {
          const to = waiting[0]!.to;
          const arrived = async () =>
            (await control.call("GET", `/phones/${to}/messages`)).map(({ text }: Json) => text);
          await until(async () => (await arrived()).length >= texts.length, texts.join());
          assert.deepEqual(await arrived(), texts);
        };
        const texts = waiting.map(({ text }) => text);
        await inbox(texts);
        clock.leap(scheduled.sendAt - clock.now());
        await inbox([...texts, scheduled.text]);
        const reported = await until(() => {
          const sent = receiver.events.filter(({ event }) => event === "message.sent").map(({ data }) =>
            data.messageId
          );
          return Promise.resolve(sent.length > waiting.length ? sent : null);
        }, "the events of what was sent");
        assert.deepEqual(reported, [...waiting, scheduled].map(({ messageId }) => messageId));
        await until(async () => {
          const { data: [chat] } = await api.call("GET", `/sessions/${sessionId}/chats?q=${delivered.to}`);
          return chat?.lastMessage?.messageId === delivered.messageId;
        }, "the chats of the older data");
      } finally {
        await gateway.stop();
        await receiver.close();
        await network.close();
        await Deno.remove(dataDir, { recursive: true });
      }
    },
  );
}

Deno.test("data of a newer schema is refused with what to do, and is as it was", { ignore }, async () => {
  const dataDir = await copyOf(`schema-${NEWEST}`);
  const native = await Deno.openKv(join(dataDir, "paloma.db"));
  const kv = denoKvEngine({ writes: native, reads: native }, { runtime: testRuntime() });
  await kv.commit(new Change().set(dataKeys.schemaVersion(), NEWEST + 1));
  kv.close();
  const before = await rowsOf(dataDir);
  const { code, stderr } = await tryCommand(["serve"], { PALOMA_DATA_DIR: dataDir, PALOMA_PORT: "0" });
  assert.equal(code, 1);
  assert.match(stderr, new RegExp(`schema version ${NEWEST + 1}, this version of Paloma knows up to ${NEWEST}`));
  assert.match(stderr, /use the newer version, or restore a backup/);
  assert.deepEqual(await rowsOf(dataDir), before);
  await Deno.remove(dataDir, { recursive: true });
});
