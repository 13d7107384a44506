/** Erasing a person, and then the account: what is left in the store and on the disk afterwards. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { join } from "node:path";
import { openData } from "../../src/engines.ts";
import type { Json } from "../../src/cli/client.ts";
import { readConfig } from "../../src/config.ts";
import { openBucket } from "../../src/media/s3.ts";
import { systemClock, systemRuntime } from "../../src/runtime.ts";
import { runCommand } from "../support/gateway_process.ts";
import { testRuntime } from "../support/runtime.ts";
import { onStage, type Stage } from "../support/stage.ts";
import { dataConfigOf, onTestStore } from "../support/test_store.ts";
import { until } from "../support/until.ts";

const LINE = "4915200000003";
const ANA = "4917000000001";
const BEN = "4917000000002";
const CLEO = "4917000000004";

/** Every row that says one of these, in its key, its value or what is sealed in it. */
async function rowsThatSay({ env }: Stage, words: readonly string[]): Promise<string[]> {
  const data = await openData(dataConfigOf(env), systemRuntime(testRuntime().log));
  const found: string[] = [];
  let read = 0;
  for await (const { key, value } of data.kv.rows()) {
    read++;
    const said = `${key.map(String).join(" ")} ${opened(value)}`;
    if (words.some((word) => said.includes(word))) found.push(key.map(String).join(" "));
  }
  data.close();
  assert.ok(read > 10, `only ${read} rows were read`);
  return found;

  function opened(value: unknown): string {
    if (!(value instanceof Uint8Array)) {
      return JSON.stringify(value, (_, each) => typeof each === "bigint" ? String(each) : each);
    }
    try {
      return new TextDecoder("latin1").decode(data.seal.open(value as Uint8Array<ArrayBuffer>));
    } catch {
      return "";
    }
  }
}

/** Whether the file of the store has these letters in it, wherever. */
async function isInStore({ dataDir }: Stage, text: string): Promise<boolean> {
  const files = ["paloma.db", "paloma.db-wal"].map((name) => Deno.readFile(join(dataDir, name)).catch(() => null));
  const found = (await Promise.all(files)).filter((file) => file !== null);
  return found.some((file) => Buffer.from(file).includes(text));
}

/** Whether the bytes of the file lie in the data folder, or in the bucket that the tests are to use. */
async function isKept({ dataDir, env }: Stage, fileId: string): Promise<boolean> {
  const { media } = readConfig(onTestStore(env));
  if (media === null) return await exists(join(dataDir, "media", fileId.slice(-2), fileId));
  const bytes = await openBucket(media, { clock: systemClock }).get(fileId);
  await bytes?.cancel();
  return bytes !== null;
}

const exists = (path: string) => Deno.stat(path).then(() => true, () => false);

/** The id of the file that the event links to. */
function fileIdOf({ data: { media } }: { data: { media: { url: string } } }): string {
  return new URL(media.url).pathname.split("/").at(-1)!;
}

onStage(
  "a number is erased with all that names it, while counts stay, and an account with all that is its own",
  async (stage) => {
    // Its contents are sealed at rest: all of this is so for an account that chose that.
    const { sealed, rows } = JSON.parse(await runCommand(["account", "seal", stage.accountId, "--json"], stage.env));
    assert.deepEqual([sealed, rows], [true, 0]);
    for (const [number, name] of [[ANA, "Ana"], [BEN, "Ben"], [CLEO, "Cleo"]] as const) {
      await stage.addPhone(
        number,
        name,
      );
    }
    const line = await stage.linkLine(LINE);
    const { lid } = await stage.control.call("GET", `/phones/${ANA}`);
    const { id: group } = await stage.control.call("POST", "/groups", {
      subject: "Both",
      participants: [BEN, ANA, LINE],
    });

    const toAna = await stage.sendText(line, ANA, "for Ana alone");
    const toLid = await stage.sendText(line, lid, "for Ana by her @lid");
    const toBen = await stage.sendText(line, BEN, `call Ana: +49 170 0000 0001, or ${ANA}`);
    const toGroup = await stage.sendText(line, group, "for the group");
    for (const id of [toAna, toLid, toBen, toGroup]) await stage.status(id, "sent");
    const { messageId: later } = await stage.api.call("POST", "/messages/send/text", {
      sessionId: line.sessionId,
      to: ANA,
      text: "tomorrow",
      sendAt: new Date(systemClock.now() + 86_400_000).toISOString(),
    });
    for (const number of [ANA, BEN]) {
      const { id } = await stage.arrival(number, ({ text }) => text === "for the group");
      await stage.control.call("POST", `/phones/${number}/read`, { id });
    }
    // What is on its way would name her again after she was erased.
    const reports = ({ event, data }: Json, id: string, status: string) =>
      event === "message.status" && data.messageId === id && data.status === status;
    for (const id of [toAna, toLid, toBen]) await stage.event(line, (event) => reports(event, id, "delivered"));
    for (const number of [ANA, BEN]) {
      const { lid: participant } = await stage.control.call("GET", `/phones/${number}`);
      const isHers = (event: Json) => reports(event, toGroup, "read") && event.data.participant === participant;
      await stage.event(line, isHers);
    }
    const file = {
      to: LINE,
      file: btoa("a letter of Ana's"),
      filename: "letter.txt",
      mimetype: "text/plain",
      kind: "document",
    };
    for (
      const message of [file, { to: LINE, text: "hello from Ana" }, { to: LINE, text: "unseen", hideNumber: true }]
    ) {
      await stage.control.call("POST", `/phones/${ANA}/messages`, message);
    }
    await stage.control.call("POST", `/phones/${ANA}/messages`, { to: group, text: "Ana in the group" });
    await stage.control.call("POST", `/phones/${BEN}/messages`, { to: LINE, text: "hello from Ben" });
    const received = await until(async () => {
      const events = (await stage.events(line)).filter(({ event }) => event === "message.received");
      return events.length === 5 ? events : null;
    }, "what came in");
    const letter = received.find(({ data }) => data.media);
    assert.ok(await isKept(stage, fileIdOf(letter)));
    const { url } = letter.data.media;
    assert.equal((await fetch(url)).status, 200);
    const before = await stage.api.call("GET", "/messages/history");

    const { data: erased } = await until(async () => {
      const answer = await stage.request("DELETE", `/data/${ANA}`);
      const body = await answer.json();
      assert.ok([200, 202].includes(answer.status), JSON.stringify(body));
      return answer.status === 200 ? body : null;
    }, "Ana to be erased");
    assert.equal(erased.status, "done");
    assert.equal(erased.files, 1);
    assert.equal(erased.messages, 4);
    assert.ok(erased.events >= 8, `only ${erased.events} events`);
    assert.deepEqual((await stage.api.call("GET", `/erasures/${erased.id}`)).data, erased);

    const { data: history, pagination } = await stage.api.call("GET", "/messages/history");
    assert.equal(pagination.total, before.pagination.total);
    const states = Object.fromEntries(history.map((item: Record<string, unknown>) => [item.messageId, item]));
    for (const [id, status] of [[toAna, "sent"], [toLid, "sent"], [later, "failed"]]) {
      const { to, text, erasedAt, ...rest } = states[id!];
      assert.deepEqual([rest.status, to, text], [status, "", null]);
      assert.ok(erasedAt);
    }
    assert.equal(states[toBen].text, "call Ana: +[erased], or [erased]");
    assert.equal(states[toGroup].text, "for the group");
    for (const to of [ANA, lid]) {
      assert.equal((await stage.api.call("GET", `/messages/history?recipient=${to}`)).pagination.total, 0);
    }
    assert.equal((await stage.api.call("GET", "/messages/history?status=sent")).pagination.total, 4);
    assert.equal((await stage.api.call("GET", `/messages/history?recipient=${BEN}`)).pagination.total, 1);
    assert.equal((await fetch(url)).status, 404);
    assert.equal(await isKept(stage, fileIdOf(letter)), false);
    const left = (await stage.events(line)).filter(({ event }) => event === "message.received");
    assert.deepEqual(left.map(({ data }) => data.text), ["hello from Ben"]);
    assert.equal((await stage.request("DELETE", `/data/${LINE}`)).status, 400, "the line's own");

    assert.equal(await stage.gateway.stop(), 0);
    if (dataConfigOf(stage.env).store === null) {
      for (const text of ["hello from Ben", "for the group"]) assert.equal(await isInStore(stage, text), false, text);
      assert.ok(await isInStore(stage, stage.accountId), "keys are as they are");
    }
    assert.deepEqual(
      await rowsThatSay(stage, [ANA, lid, lid.split("@")[0], "for Ana", "Ana in the group", "letter.txt"]),
      [],
    );
    await stage.gateway.start();
    await stage.sessionStatus(line, "connected");

    // Whoever was erased can be written to, and write, as a stranger can.
    await stage.control.call("POST", `/phones/${ANA}/messages`, { to: LINE, text: "me again" });
    await stage.event(line, ({ data }) => data.text === "me again");
    await stage.sendText(line, ANA, "welcome back");
    await stage.arrival(ANA, ({ text }) => text === "welcome back");

    await stage.control.call("POST", `/phones/${CLEO}/messages`, { ...file, file: btoa("a letter of Cleo's") });
    const cleos = await stage.event(line, ({ data }) => data.media);
    assert.ok(await isKept(stage, fileIdOf(cleos)));
    await runCommand(["account", "delete", stage.accountId], stage.env);
    await until(async () => !await isKept(stage, fileIdOf(cleos)), "the account's files to go");
    await until(async () => {
      const accounts = JSON.parse(await runCommand(["account", "list", "--json"], stage.env));
      return !JSON.stringify(accounts).includes(stage.accountId);
    }, "the account to go");
    assert.equal(await stage.gateway.stop(), 0);
    const kept = await rowsThatSay(stage, [stage.accountId, line.sessionId, BEN, LINE]);
    assert.deepEqual(kept.filter((key) => !key.startsWith("panel_audit ")), []);
    await stage.gateway.start();
  },
);
