/** `paloma listen`, as a developer runs it beside a gateway. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import type { Json } from "../../src/cli/client.ts";
import { palomaCommand, spawnToEnd, tryCommand } from "../support/gateway_process.ts";
import { listen, Listening } from "../support/listening.ts";
import { answering, Receiver } from "../support/receiver.ts";
import { onStage, type Stage } from "../support/stage.ts";
import { inTime, until } from "../support/until.ts";

const LINE = "4915200000005";
const ANA = "4917000000001";

function writes({ control }: Stage, text: string): Promise<Json> {
  return control.call("POST", `/phones/${ANA}/messages`, { to: LINE, text });
}

onStage("events are printed as they come, and after a break none is missing", async (stage) => {
  await stage.addPhone(ANA, "Ana");
  const line = await stage.linkLine(LINE);
  const listening = listen(stage, ["--json", "--events", "message.received"]);
  await listening.says(/Listening to/);
  const first = await writes(stage, "hello listener");
  const { id, event, data } = await listening.event("the first", ({ data }) => data.messageId === first.id);
  assert.match(id, /^evt_/);
  assert.deepEqual([event, data.text, data.number], ["message.received", "hello listener", ANA]);

  await stage.gateway.kill();
  await listening.says(/The stream broke/);
  const missed = await writes(stage, "did you miss me?");
  await stage.gateway.start();
  await stage.sessionStatus(line, "connected");
  const last = await writes(stage, "and the last");
  await listening.event("the last", ({ data }) => data.messageId === last.id);
  const ids = listening.lines.map((line) => JSON.parse(line).data.messageId);
  assert.deepEqual(ids, [first.id, missed.id, last.id], "each once, in order");
  assert.equal(await listening.end(), 0);
});

onStage("for a person it is one line an event, whatever strangers write", async (stage) => {
  await stage.addPhone(ANA, "Ana");
  await stage.linkLine(LINE);
  await writes(stage, "two\nlines \u001b[31mred\u202Ereversed");
  await until(async () => {
    const { data } = await stage.api.call("GET", "/events?types=message.received");
    return data.length > 0 ? true : null;
  }, "the event");
  const listening = listen(stage, ["--after", "start"]);
  const line = await until(() => listening.lines.find((line) => line.includes("two")), "the line");
  assert.match(
    line,
    /^\d\d:\d\d:\d\d message\.received +line \d+ · from 4917000000001, conversation: two lines \[31mred reversed$/,
  );
  assert.ok(listening.lines.some((line) => / session\.connected +line \d+ · as 4915200000005$/.test(line)));
  assert.equal(await listening.end(), 0);
});

onStage(
  "through a webhook each request is checked, handed on, and the webhook leaves with the command",
  async (stage) => {
    await stage.addPhone(ANA, "Ana");
    await stage.linkLine(LINE);
    const endpoint = await Receiver.start(answering(503));
    const listening = listen(stage, ["--webhook", "--json", "--forward", endpoint.url]);
    const url = (await listening.says(/http:\/\/127\.0\.0\.1:\d+\//))!;
    const [, secret] = /: (whsec_\S+)/.exec(await listening.says(/Its secret, .*: whsec_\S+/))!;
    stage.secrets.add(secret!);
    const written = await writes(stage, "through the webhook");
    const seen = await listening.event("the request", ({ data }) => data?.messageId === written.id);
    assert.deepEqual(seen.verified, { signature: true, standardSignature: true });
    assert.equal(seen.forwarded, 503);
    assert.equal(seen.data.text, "through the webhook");

    const handedOn = endpoint.requests.find(({ headers }) => headers["webhook-id"] === seen.id)!;
    assert.match(String(handedOn.headers["x-webhook-signature"]), /^[0-9a-f]{64}$/);
    const { id, event, verified: _, forwarded: __, ...rest } = seen;
    assert.deepEqual(JSON.parse(handedOn.body), { event, ...rest }, "as it came");
    // The printed secret is the one by which the endpoint verifies what is handed on.
    const signed = [seen.id, handedOn.headers["webhook-timestamp"], handedOn.body].join(".");
    const key = Uint8Array.fromBase64(secret!.replace("whsec_", ""));
    const signature = createHmac("sha256", key).update(signed).digest("base64");
    assert.equal(handedOn.headers["webhook-signature"], `v1,${signature}`);
    const { data: [webhook] } = await stage.api.call("GET", "/webhooks");
    const delivery: Json = await until(async () => {
      const { data } = await stage.api.call("GET", `/webhooks/${webhook.id}/deliveries`);
      return data.find(({ eventId }: Json) => eventId === id);
    }, "the delivery in the log");
    assert.deepEqual([delivery.status, delivery.attempts[0].status], ["pending", 503]);

    const forged = await fetch(url, { method: "POST", headers: { "x-webhook-signature": "00" }, body: "{}" });
    assert.equal(forged.status, 503);
    const refused = await listening.event("the forged one", ({ verified }) => !verified.signature);
    assert.equal(refused.verified.standardSignature, false);
    assert.equal(await listening.end(), 1, "a wrong signature is a failure");
    assert.deepEqual((await stage.api.call("GET", "/webhooks")).data, []);
    await endpoint.close();
  },
);

Deno.test("Ctrl-C while the gateway still makes the webhook removes it too", async () => {
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  const calls: string[] = [];
  const gateway = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async ({ method, url }) => {
    calls.push(`${method} ${new URL(url).pathname}`);
    if (method === "DELETE") return Response.json({ data: {} });
    asked.resolve();
    await answer.promise;
    return Response.json({ data: { id: "whk_1", secret: "whsec_c2VjcmV0" } }, { status: 201 });
  });
  const url = `http://127.0.0.1:${gateway.addr.port}/v1`;
  const child = spawnToEnd(palomaCommand(["listen", "--webhook", "--url", url], { PALOMA_API_KEY: "pk_any" }));
  await inTime(asked.promise, "the webhook to be asked for");
  child.kill("SIGINT");
  answer.resolve();
  const { code, signal } = await child.output();
  assert.deepEqual([code, signal], [0, null]);
  assert.deepEqual(calls, ["POST /v1/webhooks", "DELETE /v1/webhooks/whk_1"]);
  await gateway.shutdown();
});

Deno.test("a webhook stays when the gateway has gone, and the command names it", async () => {
  const gateway = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    () => Response.json({ data: { id: "whk_1", secret: "whsec_c2VjcmV0" } }, { status: 201 }),
  );
  const listening = new Listening(`http://127.0.0.1:${gateway.addr.port}/v1`, "pk_any", ["--webhook"]);
  await listening.says(/Webhook whk_1 listens/);
  await gateway.shutdown();
  assert.equal(await listening.end(), 1);
  await listening.says(/Webhook whk_1 was not removed: .*Nothing answers.*DELETE \/v1\/webhooks\/whk_1/s);
});

Deno.test("a webhook whose requests nobody reads any more, as behind `| head`, is removed", async () => {
  let removed = false;
  const called = Promise.withResolvers<string>();
  const gateway = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    if (request.method === "DELETE") {
      removed = true;
      return Response.json({ data: {} });
    }
    const { url } = await request.json();
    called.resolve(url);
    return Response.json({ data: { id: "whk_1", secret: "whsec_c2VjcmV0" } }, { status: 201 });
  });
  const url = `http://127.0.0.1:${gateway.addr.port}/v1`;
  const child = spawnToEnd(palomaCommand(["listen", "--webhook", "--url", url], { PALOMA_API_KEY: "pk_any" }));
  const webhook = await inTime(called.promise, "the webhook to be asked for");
  await child.stdout.cancel();
  await fetch(webhook, { method: "POST", body: "{}" });
  const [{ code }] = await Promise.all([child.status, child.stderr.pipeTo(new WritableStream())]);
  assert.deepEqual([code, removed], [0, true]);
  await gateway.shutdown();
});

onStage("what cannot work is said at once", async ({ gateway, apiKey }) => {
  const url = ["--url", gateway.baseUrl];
  const taken = new URL(gateway.baseUrl).port;
  const cases: [args: string[], env: Record<string, string>, code: number, says: RegExp][] = [
    [url, { PALOMA_DATA_DIR: "nowhere" }, 1, /There is no data in/],
    [[...url, "--forward", "http://127.0.0.1:1/"], { PALOMA_API_KEY: apiKey }, 2, /needs --webhook/],
    [[...url, "--port", "70000"], { PALOMA_API_KEY: apiKey }, 2, /is not a port number/],
    [[...url, "--webhook", "--port", taken], { PALOMA_API_KEY: apiKey }, 1, /Cannot listen on port \d+: .*in use/],
    [[...url, "--port", "9000"], { PALOMA_API_KEY: apiKey }, 2, /--port needs --webhook/],
    [[...url, "--webhook", "--after", "start"], { PALOMA_API_KEY: apiKey }, 2, /--after is for the stream/],
    [[...url, "--key", "pk_wrong"], {}, 1, /answered 401/],
    [[...url, "--events", "message.nonsense"], { PALOMA_API_KEY: apiKey }, 1, /answered 400/],
    [
      ["--url", "http://127.0.0.1:1/v1"],
      { PALOMA_API_KEY: apiKey },
      1,
      /cannot be reached/,
    ],
    [
      ["--webhook", "--url", "http://127.0.0.1:1/v1"],
      { PALOMA_API_KEY: apiKey },
      1,
      /cannot be reached/,
    ],
    [
      ["--url", "localhost:8080/v1"],
      { PALOMA_API_KEY: apiKey },
      2,
      /--url: "localhost:8080\/v1" is not a URL with http/,
    ],
    [
      [...url, "--webhook", "--forward", "localhost:3000/hook"],
      { PALOMA_API_KEY: apiKey },
      2,
      /--forward: "localhost:3000\/hook" is not a URL with http/,
    ],
    [
      [...url, "--webhook", "--session", "ses_00000000000000000000000000"],
      { PALOMA_API_KEY: apiKey },
      1,
      /answered 404/,
    ],
  ];
  const outcomes = await Promise.all(cases.map(([args, env]) => tryCommand(["listen", ...args], env)));
  for (const [i, { code, stdout, stderr }] of outcomes.entries()) {
    const [args, , expected, says] = cases[i]!;
    assert.equal(code, expected, `${args.join(" ")}: ${stderr}`);
    assert.match(stderr, says);
    assert.doesNotMatch(stderr, /^ +at /m, "a stack");
    assert.equal(stdout, "");
  }
});
