/** A line that moves from one gateway to another, both on the simulated network. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { httpClient, type Json } from "../../src/cli/client.ts";
import { linkCopy, openData } from "../../src/engines.ts";
import { exportLine } from "../../src/line/transfer.ts";
import { runCommand, startGatewayProcess, tryCommand } from "../support/gateway_process.ts";
import { silentRuntime } from "../support/runtime.ts";
import { onStage } from "../support/stage.ts";
import { dataConfigOf } from "../support/test_store.ts";
import { until } from "../support/until.ts";
import { tempFolder } from "../support/temp_folder.ts";

const LINE = "4915200000041";
const ANA = "4917000000041";
const PASSPHRASE = { PALOMA_PASSPHRASE: "correct horse battery" };

onStage(
  "a line that was exported connects elsewhere without a QR and sends what waited there, and the old place does neither",
  async (stage) => {
    await stage.addPhone(ANA);
    const line = await stage.linkLine(LINE);
    await using temp = await tempFolder();
    const file = join(temp.path, "line.export");
    const env = { ...stage.env, ...PASSPHRASE };
    const elsewhere = { ...env, PALOMA_DATA_DIR: join(temp.path, "data") };

    const short = await tryCommand(["line", "export", line.sessionId, file], {
      ...stage.env,
      PALOMA_PASSPHRASE: "short",
    });
    assert.equal(short.code, 2);
    // A file that cannot be made costs the line nothing.
    await Deno.writeTextFile(file, "in the way");
    const { data: { connectedSince } } = await stage.api.call("GET", `/sessions/${line.sessionId}/health`);
    for (const [to, says] of [[file, /already exists/], [join(temp.path, "none", "a.line"), /No such file/]] as const) {
      const { code, stderr } = await tryCommand(["line", "export", line.sessionId, to], env);
      assert.equal(code, 1);
      assert.match(stderr, says);
    }
    assert.equal(await Deno.readTextFile(file), "in the way");
    await Deno.remove(file);
    const { data: health } = await stage.api.call("GET", `/sessions/${line.sessionId}/health`);
    assert.equal(health.connectedSince, connectedSince);
    assert.equal((await stage.session(line)).status, "connected");
    await stage.api.call("POST", `/sessions/${line.sessionId}/disconnect`);
    const waiting: { messageId: string; text: string }[] = [];
    for (const text of ["first of those that wait", "second of those that wait", "third of those that wait"]) {
      waiting.push({ messageId: await stage.sendText(line, ANA, text), text });
    }
    const pdf = new TextEncoder().encode("%PDF-1.7 an invoice that waits");
    const { messageId: invoice } = await stage.api.call("POST", "/messages/send/document", {
      sessionId: line.sessionId,
      to: ANA,
      file: pdf.toBase64(),
      filename: "invoice.pdf",
    });
    const { messages } = JSON.parse(await runCommand(["line", "export", line.sessionId, file, "--json"], env));
    assert.equal(messages, 4);
    for (const messageId of [...waiting.map(({ messageId }) => messageId), invoice]) {
      assert.equal((await stage.api.call("GET", `/messages/${messageId}`)).data.error.code, "moved");
    }
    const old = await stage.session(line);
    assert.deepEqual([old.status, old.reason], [
      "logged_out",
      "It was exported to another gateway; reconnect links it here anew.",
    ]);
    const again = await tryCommand(["line", "export", line.sessionId, `${file}2`], env);
    assert.equal(again.code, 1);
    assert.match(again.stderr, /is not linked: there is nothing to export/);

    const { accountId, apiKey } = JSON.parse(
      await runCommand(["account", "create", "--name", "new", "--plan", "sandbox", "--json"], elsewhere)
        .catch(() => runCommand(["account", "create", "--name", "new", "--plan", "free", "--json"], elsewhere)),
    );
    const gateway = await startGatewayProcess(elsewhere);
    try {
      const api = httpClient(gateway.baseUrl, { "x-api-key": apiKey });
      // Whoever follows the messages asks for them before they are here.
      for (const { messageId } of waiting) {
        await assert.rejects(api.call("GET", `/messages/${messageId}`), /answered 404/);
      }
      const importing = ["line", "import", file, "--account", accountId, "--json"];
      const wrong = await tryCommand(importing, { ...elsewhere, PALOMA_PASSPHRASE: "another passphrase" });
      assert.equal(wrong.code, 1);
      assert.match(wrong.stderr, /the passphrase is another one/);
      const { sessionId, phone } = JSON.parse(await runCommand(importing, elsewhere));
      assert.equal(phone, LINE);
      // A second time changes nothing.
      assert.equal(JSON.parse(await runCommand(importing, elsewhere)).sessionId, sessionId);
      await until(async () => {
        const { data: sessions } = await api.call("GET", "/sessions");
        return sessions.find(({ _id, status }: Json) => _id === sessionId && status === "connected");
      }, "the line to connect at its new place");
      await api.call("POST", "/messages/send/text", { sessionId, to: ANA, text: "from my new place" });
      await stage.arrival(ANA, ({ text, from }) => text === "from my new place" && String(from).startsWith(LINE));
      const arrived = (await stage.inbox(ANA)).map(({ text, filename, copies }) => [text ?? filename, copies]);
      const wanted = [...waiting.map(({ text }) => text), "invoice.pdf", "from my new place"];
      assert.deepEqual(arrived, wanted.map((what) => [what, 1]));
      assert.equal((await api.call("GET", `/messages/${invoice}`)).data.status, "sent");
    } finally {
      await gateway.stop();
    }
  },
);

onStage("a line whose export was killed says what to do, and can be reconnected or exported again", async (stage) => {
  const line = await stage.linkLine(LINE);
  const env = { ...stage.env, ...PASSPHRASE };
  await using temp = await tempFolder();
  const runtime = silentRuntime();
  const data = { ...await openData(dataConfigOf(stage.env), runtime), runtime };
  const checkLines = async () => {
    const { stdout } = await tryCommand(["doctor", "--json"], env);
    return JSON.parse(stdout).find(({ check }: Json) => check === "lines");
  };
  const leave = async () => {
    const writing = Promise.withResolvers<void>();
    const none = () => Promise.reject(new Error("nothing waits"));
    const deps = { ...data, media: { read: none, write: none }, link: await linkCopy(data) };
    const write = () => (writing.resolve(), new Promise<void>(() => {}));
    const discard = () => Promise.resolve();
    void exportLine(deps, line.sessionId, { passphrase: "correct horse battery", gatewayRuns: true, write, discard });
    await writing.promise;
  };
  try {
    await leave();
    const { status, reason } = await stage.session(line);
    assert.deepEqual([status, reason], [
      "disconnected",
      "It is being exported to another gateway; if that was interrupted, delete its file and reconnect.",
    ]);
    const { ok, detail, hint } = await checkLines();
    assert.deepEqual([ok, detail.includes(line.sessionId)], [false, true]);
    assert.match(hint, /delete its file/);
    await stage.api.call("POST", `/sessions/${line.sessionId}/reconnect`);
    await stage.sessionStatus(line, "connected");
    assert.equal((await checkLines()).ok, true);
    await leave();
  } finally {
    data.close();
  }
  await runCommand(["line", "export", line.sessionId, join(temp.path, "line.export")], env);
  assert.equal((await stage.session(line)).status, "logged_out");
  assert.equal((await checkLines()).ok, true);
});
