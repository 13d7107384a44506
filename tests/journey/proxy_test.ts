/** A line's own way out: everything of it goes through the proxy, and nothing past it. */
import assert from "node:assert/strict";
import { Server } from "proxy-chain";
import { type Json, linkByQr, until } from "../../src/cli/client.ts";
import { systemClock } from "../../src/runtime.ts";
import { startSocksServer } from "../support/socks_server.ts";
import { onStage, type Stage } from "../support/stage.ts";

const LINE = "4915100000001";
const ANA = "4917000000001";

async function linkVia(stage: Stage, proxy: string): Promise<{ sessionId: string; number: string; session: Json }> {
  await stage.addPhone(LINE);
  await stage.addPhone(ANA);
  const { data } = await stage.api.call("POST", "/sessions", { name: "Behind a proxy", proxy });
  await linkByQr(systemClock, { api: stage.api, control: stage.control, sessionId: data._id, phone: LINE });
  return { sessionId: data._id, number: LINE, session: data };
}

/** A file goes out, a file comes in. */
async function exchangesFiles(stage: Stage, line: { sessionId: string; number: string }): Promise<void> {
  const file = btoa("a file of its own");
  const sent = { sessionId: line.sessionId, to: ANA, file, filename: "a.txt" };
  await stage.status((await stage.api.call("POST", "/messages/send/document", sent)).messageId, "sent");
  await stage.arrival(ANA, ({ filename }) => filename === "a.txt");
  const back = { to: LINE, file, filename: "b.txt", mimetype: "text/plain", kind: "document" };
  await stage.control.call("POST", `/phones/${ANA}/messages`, back);
  await until(systemClock, async () => {
    const events = await stage.events(line);
    return events.find(({ event, data }) => event === "message.received" && data.media?.url) ?? null;
  }, { what: "a file that came in" });
}

onStage("a line behind a SOCKS5 proxy links, sends and receives through it, names looked up there", async (stage) => {
  const proxy = await startSocksServer();
  try {
    const line = await linkVia(stage, proxy.url);
    assert.equal(line.session.proxy, proxy.url.replace("user:secret-of-the-proxy@", ""));
    await exchangesFiles(stage, line);
    const hosts = [new URL(stage.network.url), new URL(stage.network.mediaUrl)].map(({ host }) => host);
    for (const host of hosts) assert.ok(proxy.targets.includes(host), `${host}: ${proxy.targets}`);
    assert.doesNotMatch(stage.gateway.log(), /secret-of-the-proxy/);

    // Without the proxy there is no other way.
    await proxy.close();
    const { reason } = await until(systemClock, async () => {
      const session = await stage.session(line);
      return /proxy/i.test(session.reason ?? "") ? session : null;
    }, { what: "the proxy as the reason" });
    assert.match(reason, /does not carry the connection/);
    assert.notEqual((await stage.session(line)).status, "connected");

    // Nor with it, once it is taken away from the line: straight.
    const { data } = await stage.api.call("PATCH", `/sessions/${line.sessionId}`, { name: "Straight", proxy: null });
    assert.deepEqual([data.name, data.proxy], ["Straight", null]);
    await stage.sessionStatus(line, "connected");
  } finally {
    await proxy.close().catch(() => {});
  }
});

onStage("a line goes over to an HTTP proxy with a login, and a wrong login is named", async (stage) => {
  const proxy = new Server({
    port: 0,
    host: "127.0.0.1",
    prepareRequestFunction: ({ username, password }) => ({
      requestAuthentication: username !== "user" || password !== "secret-of-the-proxy",
    }),
  });
  await proxy.listen();
  try {
    const at = `127.0.0.1:${proxy.port}`;
    const line = await stage.linkLine(LINE);
    await stage.addPhone(ANA);
    const patch = (body: Json) => stage.api.call("PATCH", `/sessions/${line.sessionId}`, body);
    assert.equal((await patch({ proxy: `http://user:wrong@${at}` })).data.proxy, `http://${at}`);
    await until(systemClock, async () => /refused the login/.test((await stage.session(line)).reason ?? "") || null, {
      what: "the wrong login as the reason",
    });
    await patch({ proxy: `http://user:secret-of-the-proxy@${at}` });
    await stage.sessionStatus(line, "connected");
    await exchangesFiles(stage, line);
    for (const none of ["ftp://a:1", "http://a:1/path", "127.0.0.1:80"]) {
      const answer = await stage.request("PATCH", `/sessions/${line.sessionId}`, {
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ proxy: none }),
      });
      const { code, errors } = await answer.json();
      assert.deepEqual([answer.status, code, errors[0].path], [400, "validation_failed", "proxy"]);
    }
  } finally {
    await proxy.close(true);
  }
});
