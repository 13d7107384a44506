/** The reverse proxy of `ops/nginx.conf`, run for real: event streams, uploads of 100 MB, a path, whose address counts. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { runCommand, tryProgram } from "../support/gateway_process.ts";
import { hasNginx, startNginx, TLS } from "../support/nginx.ts";
import { openStage, type Stage, withStage } from "../support/stage.ts";
import { until } from "../support/until.ts";
import { tempFolder } from "../support/temp_folder.ts";

const LINE = "4915200000021";
const ANA = "4917000000021";

const curlArgs = (url: string) => [
  "--silent",
  "--show-error",
  "--cacert",
  join(TLS, "ca.pem"),
  "--resolve",
  `hook.test:${new URL(url).port}:127.0.0.1`,
];

async function curl(url: string, path: string, ...more: string[]): Promise<{ status: string; body: string }> {
  const { stdout } = await tryProgram(
    "/usr/bin/curl",
    [...curlArgs(url), "-w", "\n%{http_code}", ...more, url + path],
    {},
  );
  const end = stdout.lastIndexOf("\n");
  return { status: stdout.slice(end + 1), body: stdout.slice(0, end) };
}

async function onProxy(run: (stage: Stage, url: string) => Promise<void>): Promise<void> {
  await withStage(() => openStage({ env: { PALOMA_TRUSTED_PROXIES: "127.0.0.1" } }), async (stage) => {
    await using temp = await tempFolder();
    const nginx = await startNginx(new URL(stage.gateway.baseUrl).port, temp.path);
    try {
      await run(stage, nginx.url);
    } finally {
      await nginx.stop();
    }
  });
}

Deno.test({
  name: `behind nginx, events come at once and 100 MB go up${await hasNginx() ? "" : " (skipped: no nginx)"}`,
  ignore: !await hasNginx(),
  fn: () =>
    onProxy(async (stage, url) => {
      const line = await stage.linkLine(LINE);
      await stage.addPhone(ANA);
      const key = ["-H", `x-api-key: ${stage.apiKey}`];

      const stream = new Deno.Command("/usr/bin/curl", {
        args: [...curlArgs(url), "--no-buffer", ...key, `${url}/v1/events/stream?after=now`],
        stdout: "piped",
      }).spawn();
      let events = "";
      const read = stream.stdout.pipeThrough(new TextDecoderStream()).pipeTo(
        new WritableStream({ write: (text) => void (events += text) }),
      );
      await until(() => events !== "", "the stream to open");

      const file = await Deno.makeTempFile({ prefix: "paloma-upload-" });
      await Deno.truncate(file, 100_000_000);
      const form = ["-F", `to=${ANA}`, "-F", `sessionId=${line.sessionId}`, "-F", `file=@${file};filename=big.bin`];
      const sent = await curl(url, "/v1/messages/send/file", ...key, ...form);
      await Deno.remove(file);
      assert.equal(sent.status, "202", sent.body);
      await until(() => events.includes("message.sent"), "message.sent on the stream, through the proxy");
      stream.kill("SIGTERM");
      await stream.status;
      await read;
    }),
});

Deno.test({
  name: `behind nginx, a path stands before the API${await hasNginx() ? "" : " (skipped: no nginx)"}`,
  ignore: !await hasNginx(),
  fn: () =>
    onProxy(async (stage, url) => {
      const key = ["-H", `x-api-key: ${stage.apiKey}`];
      assert.equal((await curl(url, "/paloma/v1/sessions", ...key)).status, "200");
      const page = await curl(url, "/paloma/docs");
      assert.equal(page.status, "200");
      const loaded = [...page.body.matchAll(/(?:src|href)="([^"#]+\.(?:js|css|json))"/g)].map(([, file]) => file!);
      assert.ok(loaded.length >= 4);
      for (const file of loaded) {
        const { pathname } = new URL(file, `${url}/paloma/docs`);
        assert.ok(pathname.startsWith("/paloma/"), `${file} is loaded from outside of the path`);
        assert.equal((await curl(url, pathname)).status, "200", pathname);
      }
    }),
});

Deno.test({
  name: `behind nginx, the client's own address counts${await hasNginx() ? "" : " (skipped: no nginx)"}`,
  ignore: !await hasNginx(),
  fn: () =>
    onProxy(async (stage, url) => {
      const key = ["-H", `x-api-key: ${stage.apiKey}`];
      await runCommand(["account", "restrict", stage.accountId, "--allowed-ips", "127.0.0.7"], stage.env);
      const status = async (address: string, ...more: string[]) =>
        (await curl(url, "/v1/sessions", ...key, "--interface", address, ...more)).status;
      await until(async () => await status("127.0.0.1") === "403", "the limit to hold");
      assert.equal(await status("127.0.0.7"), "200");
      // What a client claims of itself is not believed.
      assert.equal(await status("127.0.0.1", "-H", "X-Forwarded-For: 127.0.0.7"), "403");
      assert.equal((await curl(url, "/metrics", "--interface", "127.0.0.7")).status, "403");
      assert.equal((await curl(url, "/metrics")).status, "200");
      for (const path of ["/paloma/metrics", "/paloma//metrics", "/paloma/%6detrics"]) {
        assert.equal((await curl(url, path, "--interface", "127.0.0.7")).status, "403", path);
      }
    }),
});
