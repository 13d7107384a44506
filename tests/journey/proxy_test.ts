/** A line's own way out: everything of it goes through the proxy, and nothing past it. */
import assert from "node:assert/strict";
import net from "node:net";
import tls from "node:tls";
import { Server } from "proxy-chain";
import { listenOn } from "../../src/base/listening.ts";
import type { Json } from "../../src/cli/client.ts";
import { makeServerCertificate } from "../../src/sandbox/media/host.ts";
import { startSocksServer } from "../support/socks_server.ts";
import { openStage, type Stage, withStage } from "../support/stage.ts";
import { until } from "../support/until.ts";
import { silentRuntime } from "../support/runtime.ts";

const LINE = "4915100000001";
const ANA = "4917000000001";

type Certificate = Awaited<ReturnType<typeof makeServerCertificate>>;

/** A stage whose gateway reaches the network in TLS, as it does the real one, and trusts this certificate. */
async function withSecureStage(
  { certPem, keyPem, caPem }: Certificate,
  run: (stage: Stage, networkHost: string) => Promise<void>,
): Promise<void> {
  const caFile = await Deno.makeTempFile({ prefix: "paloma-proxy-", suffix: ".pem" });
  await Deno.writeTextFile(caFile, caPem);
  let port = 0;
  const front = tls.createServer({ cert: certPem, key: keyPem }, (client) => {
    const server = net.connect(port, "127.0.0.1");
    client.on("error", () => {}).once("close", () => server.destroy());
    server.on("error", () => {}).once("close", () => client.destroy());
    client.pipe(server).pipe(client);
  });
  try {
    const host = `127.0.0.1:${await listenOn(front)}`;
    const env = { DENO_CERT: caFile, PALOMA_WHATSAPP_URL: `wss://${host}/ws/chat` };
    await withStage(() => openStage({ env }), (stage) => {
      port = Number(new URL(stage.network.url).port);
      return run(stage, host);
    });
  } finally {
    front.close();
    await Deno.remove(caFile);
  }
}

/** A file goes out, a file comes in. */
async function exchangesFiles(stage: Stage, line: { sessionId: string; number: string }): Promise<void> {
  const file = btoa("a file of its own");
  const sent = { sessionId: line.sessionId, to: ANA, file, filename: "a.txt" };
  await stage.status((await stage.api.call("POST", "/messages/send/document", sent)).messageId, "sent");
  await stage.arrival(ANA, ({ filename }) => filename === "a.txt");
  const back = { to: LINE, file, filename: "b.txt", mimetype: "text/plain", kind: "document" };
  const { id } = await stage.control.call("POST", `/phones/${ANA}/messages`, back);
  const { data } = await stage.event(line, ({ event, data }) => event === "message.received" && data.messageId === id);
  assert.ok(data.media?.url);
}

Deno.test("a line behind a SOCKS5 proxy links, sends and receives through it, names looked up there", async () => {
  const runtime = silentRuntime();
  await withSecureStage(await makeServerCertificate(runtime), async (stage, networkHost) => {
    const proxy = await startSocksServer();
    try {
      for (const number of [LINE, ANA]) await stage.addPhone(number);
      const line = await stage.link(LINE, { proxy: proxy.url });
      assert.equal((await stage.session(line)).proxy, proxy.url.replace("user:secret-of-the-proxy@", ""));
      await exchangesFiles(stage, line);
      for (const host of [networkHost, new URL(stage.network.mediaUrl).host]) {
        assert.ok(proxy.targets.includes(host), `${host}: ${proxy.targets}`);
      }
      assert.doesNotMatch(stage.gateway.log(), /secret-of-the-proxy/);

      // Without the proxy there is no other way.
      await proxy.close();
      const { reason } = await until(async () => {
        const session = await stage.session(line);
        return /proxy/i.test(session.reason ?? "") ? session : null;
      }, "the proxy as the reason");
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
});

const LOGIN = { username: "user", password: "secret-of-the-proxy" };

/** A proxy that asks for the login, spoken to in the clear or, with a certificate, in TLS. */
async function startHttpProxy(certificate: { certPem: string; keyPem: string } | null): Promise<Server> {
  const tls = certificate
    ? { serverType: "https" as const, httpsOptions: { cert: certificate.certPem, key: certificate.keyPem } }
    : {};
  const proxy = new Server({
    port: 0,
    host: "127.0.0.1",
    prepareRequestFunction: ({ username, password }) => ({
      requestAuthentication: username !== LOGIN.username || password !== LOGIN.password,
    }),
    ...tls,
  });
  await proxy.listen();
  return proxy;
}

Deno.test("a line goes over to an HTTP and an HTTPS proxy with a login, and each failure of theirs is named", async () => {
  const runtime = silentRuntime();
  const [known, stranger] = [await makeServerCertificate(runtime), await makeServerCertificate(runtime)];
  const [plain, secure, untrusted] = await Promise.all([null, known, stranger].map(startHttpProxy));
  try {
    await withSecureStage(known!, async (stage) => {
      const line = await stage.linkLine(LINE);
      await stage.addPhone(ANA);
      const patch = (body: Json) => stage.api.call("PATCH", `/sessions/${line.sessionId}`, body);
      const via = (scheme: string, { port }: Server, password = LOGIN.password) =>
        patch({ proxy: `${scheme}://${LOGIN.username}:${password}@127.0.0.1:${port}` });
      const says = (reason: RegExp) =>
        until(async () => {
          const session = await stage.session(line);
          return reason.test(session.reason ?? "") && session.status !== "connected";
        }, `the reason ${reason}`);

      const { data } = await via("http", plain!, "wrong");
      assert.equal(data.proxy, `http://127.0.0.1:${plain!.port}`);
      await says(/refused the login/);
      await via("http", plain!);
      await stage.sessionStatus(line, "connected");
      await exchangesFiles(stage, line);

      await via("https", secure!, "wrong");
      await says(/refused the login/);
      await via("https", untrusted!);
      await says(/proxy https:.* does not carry the connection: .*certificate/i);
      await via("https", secure!);
      await stage.sessionStatus(line, "connected");
      await exchangesFiles(stage, line);
      assert.doesNotMatch(stage.gateway.log(), /secret-of-the-proxy/);

      for (const none of ["ftp://a:1", "http://a:1/path", "127.0.0.1:80"]) {
        const answer = await stage.request("PATCH", `/sessions/${line.sessionId}`, {
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ proxy: none }),
        });
        const { code, errors } = await answer.json();
        assert.deepEqual([answer.status, code, errors[0].path], [400, "validation_failed", "proxy"]);
      }
    });
  } finally {
    await Promise.all([plain, secure, untrusted].map((proxy) => proxy!.close(true)));
  }
});
