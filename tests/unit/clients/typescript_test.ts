import assert from "node:assert/strict";
import { makeSecret, signatureHeaders } from "../../../src/webhook/signature.ts";
import { systemRandom } from "../../../src/runtime.ts";
import {
  EventGapError,
  Paloma,
  PalomaConnectionError,
  PalomaError,
  verifyWebhook,
  WebhookVerificationError,
} from "../../../clients/typescript/src/index.ts";

const TEXT = { to: "447700900123", text: "hi" };

/** A client of a gateway that gives these answers, one each, and keeps the requests. */
function scripted(answers: (() => Response)[]): { paloma: Paloma; requests: Request[] } {
  const requests: Request[] = [];
  const fetch = (...[input, init]: Parameters<typeof globalThis.fetch>) => {
    requests.push(new Request(input, init));
    const answer = answers.shift();
    assert.ok(answer, `${requests.length} requests are too many`);
    // As `fetch` does where a connection is lost.
    return Promise.try(answer);
  };
  return { paloma: new Paloma("http://gateway.test/v1/", "pk_x", { fetch }), requests };
}

const accepted = () => Response.json({ messageId: "msg_x", status: "queued", jobId: "job_x" }, { status: 202 });
const lost = () => {
  throw new TypeError("connection reset");
};
const problem = (status: number, code: string, headers: HeadersInit = {}) => () =>
  Response.json({ code, title: "No.", status }, { status, headers });
const atOnce = { "retry-after": "0" };

Deno.test("a send that is tried again has one key in all tries, and the next send another", async () => {
  const { paloma, requests } = scripted([lost, problem(503, "busy", atOnce), accepted, accepted, accepted]);
  await paloma.sendText(TEXT);
  await paloma.sendText(TEXT);
  await paloma.sendText(TEXT, { idempotencyKey: "invoice-1" });
  const keys = requests.map(({ headers }) => headers.get("idempotency-key"));
  assert.equal(new Set(keys.slice(0, 3)).size, 1);
  assert.equal(new Set(keys).size, 3);
  assert.equal(keys[4], "invoice-1");
  assert.deepEqual(await Promise.all(requests.map((request) => request.json())), requests.map(() => TEXT));
  assert.equal(requests[0]!.url, "http://gateway.test/v1/messages/send/text");
});

const REFUSALS = [
  ["a refusal is not tried again", "POST", problem(400, "validation_failed"), "validation_failed"],
  ["nor is a conflict", "POST", problem(409, "session_not_connected", atOnce), "session_not_connected"],
  [
    "a wait of hours is for the caller",
    "POST",
    problem(429, "quota_exceeded", { "retry-after": "7200" }),
    "quota_exceeded",
  ],
  ["a change is not asked of WhatsApp twice", "POST", problem(504, "network_timeout", atOnce), "network_timeout"],
  [
    "a deletion that may be done is not repeated",
    "DELETE",
    problem(503, "storage_unavailable", atOnce),
    "storage_unavailable",
  ],
  ["an error within the gateway is not repeated", "GET", problem(500, "internal_error"), "internal_error"],
] as const;

for (const [name, method, answer, code] of REFUSALS) {
  Deno.test(name, async () => {
    const { paloma, requests } = scripted([answer]);
    const asked = method === "POST"
      ? paloma.sendText(TEXT)
      : method === "GET"
      ? paloma.request("GET /account")
      : paloma.request("DELETE /webhooks/{id}", { path: { id: "a/b" } });
    const error = await asked.then(() => assert.fail("no error"), (error) => error);
    assert.ok(error instanceof PalomaError);
    assert.equal(error.code, code);
    assert.equal(error.problem.title, "No.");
    assert.equal(requests.length, 1);
    if (code === "quota_exceeded") assert.equal(error.retryAfterMs, 7_200_000);
    if (method === "DELETE") assert.equal(requests[0]!.url, "http://gateway.test/v1/webhooks/a%2Fb");
  });
}

Deno.test("what a busy gateway or a proxy in its place answers is tried again, and a wait is as long as it says", async () => {
  const proxy = () => new Response("<h1>Bad gateway</h1>", { status: 502, headers: atOnce });
  const { paloma, requests } = scripted([problem(429, "rate_limited", { "retry-after": "1" }), proxy, accepted]);
  const begun = performance.now();
  await paloma.sendText(TEXT);
  assert.ok(performance.now() - begun >= 1_000);
  assert.equal(requests.length, 3);
});

Deno.test("tries end, a lost deletion is not repeated, and an aborted wait ends at once", async () => {
  const twice = scripted([lost, lost]);
  await assert.rejects(twice.paloma.sendText(TEXT, { attempts: 2 }), PalomaConnectionError);
  const { paloma } = scripted([lost, problem(429, "rate_limited", { "retry-after": "50" })]);
  await assert.rejects(paloma.request("DELETE /webhooks/{id}", { path: { id: "wh_x" } }), PalomaConnectionError);
  const ending = new AbortController();
  const waiting = paloma.sendText(TEXT, { signal: ending.signal });
  ending.abort(new Error("enough"));
  await assert.rejects(waiting, /enough/);
});

const event = (number: number) => ({ id: `evt_${1_000_000_000 + number}`, event: "webhook.test", data: {} });
const page = (data: object[], next: string | null, gap = false) => () => Response.json({ data, next, gap });
/** A stream that ends after these events. */
const stream = (...events: { id: string }[]) => () =>
  new Response(
    ["retry: 2000\n\n", ...events.map((event) => `id: ${event.id}\nevent: x\ndata: ${JSON.stringify(event)}\n\n`)].join(
      "",
    ),
  );

Deno.test("events go from pages to the stream, and on from the cursor after an interruption", async () => {
  const { paloma, requests } = scripted([
    page([event(1), event(2)], event(2).id),
    lost,
    page([], null),
    stream(event(3), event(4)),
    page([event(5)], null),
  ]);
  const seen: string[] = [];
  for await (const { id } of paloma.events({ after: event(0).id, types: ["webhook.test"] })) {
    if (seen.push(id) === 5) break;
  }
  assert.deepEqual(seen, [1, 2, 3, 4, 5].map((number) => event(number).id));
  const cursors = requests.map(({ url }) => new URL(url)).map((url) => [url.pathname, url.searchParams.get("after")]);
  const [feed, live] = ["/v1/events", "/v1/events/stream"];
  assert.deepEqual(cursors, [
    [feed, event(0).id],
    [feed, event(2).id],
    [feed, event(2).id],
    [live, event(2).id],
    [feed, event(4).id],
  ]);
});

Deno.test("a gap in the events throws, unless the caller takes note of it", async () => {
  const gap = () => page([event(9)], null, true);
  const unaware = scripted([gap()]).paloma.events({ after: event(1).id });
  await assert.rejects(unaware.next(), (error) => error instanceof EventGapError && error.cursor === event(1).id);
  const noted: string[] = [];
  const aware = scripted([gap()]).paloma.events({ after: event(1).id, onGap: (cursor) => noted.push(cursor) });
  assert.equal((await aware.next()).value.id, event(9).id);
  assert.deepEqual(noted, [event(1).id]);
  await aware.return(undefined as never);
});

Deno.test("an event stream that the gateway refuses for good ends with its error", async () => {
  const { paloma } = scripted([page([], null), problem(401, "api_key_invalid")]);
  await assert.rejects(paloma.events({ after: "now" }).next(), { code: "api_key_invalid" });
});

const [old, current, other] = Array.from({ length: 3 }, () => makeSecret(systemRandom)) as [string, string, string];
const body = new TextEncoder().encode('{"event":"webhook.test","data":{"text":"größer"}}');
const signed = (secrets: string[], at = Date.now()) => signatureHeaders({ id: "evt_1", at, body, secrets });
const only = (headers: Record<string, string>, prefix: string) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith(prefix)));

Deno.test("a webhook is verified by either family of headers and either secret", async () => {
  const rotated = signed([current, old]);
  for (const headers of [rotated, only(rotated, "x-"), only(rotated, "webhook-"), new Headers(rotated)]) {
    for (const secrets of [old, current, [current, old], [other, old]]) {
      assert.equal((await verifyWebhook(body, headers, secrets)).event, "webhook.test");
    }
  }
  const asNode = {
    "X-Webhook-Signature": signed([current])["x-webhook-signature"]!,
    cookie: ["a", "b"],
    host: undefined,
  };
  assert.equal((await verifyWebhook(new TextDecoder().decode(body), asNode, current)).event, "webhook.test");
});

Deno.test("a webhook that is forged, altered, unsigned or old is refused", async () => {
  const headers = signed([current]);
  const altered = body.map((byte, i) => i === 30 ? byte ^ 1 : byte);
  const cases = [
    [body, headers, other],
    [altered, headers, current],
    [altered, only(headers, "x-"), current],
    [body, {}, current],
    [body, { "x-webhook-signature": "" }, current],
    [body, { "x-webhook-signature": "zz" }, current],
    [body, { ...headers, "webhook-signature": "v1,***" }, current],
    [body, { ...headers, "webhook-timestamp": "soon" }, current],
    [body, { ...headers, "webhook-id": "evt_2" }, current],
    [body, signed([current], Date.now() - 301_000), current],
    [body, headers, []],
    [body, headers, ""],
    [body, headers, "whsec_"],
  ] as const;
  for (const [number, [bytes, given, secret]] of cases.entries()) {
    await assert.rejects(verifyWebhook(bytes, given, secret), WebhookVerificationError, `case ${number}`);
  }
  await verifyWebhook(body, signed([current], Date.now() - 301_000), current, { toleranceSeconds: 310 });
});
