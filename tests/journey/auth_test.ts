/** Who may call, from where, and how often: a real gateway, its operator's commands, and clients behind proxies. */
import assert from "node:assert/strict";
import { answerOf, type ApiAnswer, post, refused } from "../support/api_calls.ts";
import { runCommand } from "../support/gateway_process.ts";
import { openStage, type Stage, withStage } from "../support/stage.ts";
import { until } from "../support/until.ts";

const PROXIES = { env: { PALOMA_TRUSTED_PROXIES: "127.0.0.0/8,10.0.0.0/8" } };

// deno-fmt-ignore
const FORWARDED: readonly [forwardedFor: string | null, status: number, why: string][] = [
  ["203.0.113.7", 200, "an address that is listed"],
  ["203.0.113.8", 403, "one beside it"],
  ["198.51.100.200", 200, "inside of a CIDR"],
  ["198.51.101.1", 403, "outside of it"],
  ["2001:db8::42", 200, "inside of an IPv6 CIDR"],
  ["2001:db9::1", 403, "outside of it"],
  ["::ffff:203.0.113.7", 200, "IPv4 mapped into IPv6 counts as IPv4"],
  ["192.0.2.33", 200, "and so it does in the list"],
  ["203.0.113.7:4711", 200, "with a port"],
  ["[2001:db8::1]:4711", 200, "IPv6 with a port"],
  ["8.8.8.8, 203.0.113.7", 200, "the last one that the proxy saw"],
  ["203.0.113.7, 8.8.8.8", 403, "what stands left of the client may be invented"],
  ["8.8.8.8, 203.0.113.7, 10.1.2.3", 200, "a trusted proxy is looked through"],
  ["203.0.113.7, 8.8.8.8, 10.1.2.3", 403, "as far as there are trusted ones"],
  ["nonsense", 403, "what is no address"],
  [null, 403, "the proxy itself"],
];

Deno.test("allowed IPs are those of the client, behind proxies that the operator trusts", (t) =>
  withStage(() => openStage(PROXIES), async (stage) => {
    const allowedIps = "203.0.113.7,198.51.100.0/24,2001:db8::/32,::ffff:192.0.2.33";
    await runCommand(["account", "restrict", stage.accountId, "--allowed-ips", allowedIps], stage.env);
    await answers(() => from(stage, null), 403);
    for (const [forwardedFor, status, why] of FORWARDED) {
      await t.step(`${forwardedFor ?? "no header"} is ${status}: ${why}`, async () => {
        const answer = await from(stage, forwardedFor);
        assert.deepEqual([answer.status, answer.body.code], [status, status === 403 ? "ip_not_allowed" : undefined]);
      });
    }
    await t.step("an empty list lets everybody in again", async () => {
      await runCommand(["account", "restrict", stage.accountId, "--allowed-ips", ""], stage.env);
      await answers(() => from(stage, "8.8.8.8"), 200);
    });
  }));

Deno.test({
  name: "without trusted proxies X-Forwarded-For is anybody's word, and IPv4 is known in IPv6 clothes",
  ignore: !hasIpv6(),
  fn: () =>
    withStage(() => openStage({ env: { PALOMA_HOST: "::" } }), async (stage) => {
      const { port } = new URL(stage.gateway.baseUrl);
      const ask = (headers: Record<string, string>) =>
        answerOf(fetch(`http://127.0.0.1:${port}/v1/sessions`, { headers: { "x-api-key": stage.apiKey, ...headers } }));
      await runCommand(["account", "restrict", stage.accountId, "--allowed-ips", "203.0.113.7"], stage.env);
      await answers(() => ask({}), 403);
      const { body } = await refused(ask({ "x-forwarded-for": "203.0.113.7" }), 403, "ip_not_allowed");
      assert.match(body.detail, / 127\.0\.0\.1\.$/);
      await runCommand(["account", "restrict", stage.accountId, "--allowed-ips", "127.0.0.0/8"], stage.env);
      await answers(() => ask({ "x-forwarded-for": "8.8.8.8" }), 200);
    }),
});

/** Containers without IPv6 are common. */
function hasIpv6(): boolean {
  try {
    Deno.listen({ hostname: "::", port: 0 }).close();
    return true;
  } catch {
    return false;
  }
}

// deno-fmt-ignore
const PAGES: readonly [headers: Record<string, string>, status: number][] = [
  [{ origin: "https://example.com" }, 200],
  [{ origin: "https://www.example.com" }, 200],
  [{ origin: "http://EXAMPLE.com:3000" }, 200],
  [{ origin: "https://a.b.shop.example.org" }, 200],
  [{ origin: "https://example.org" }, 403],
  [{ origin: "https://notexample.com" }, 403],
  [{ origin: "https://example.com.evil.test" }, 403],
  [{ origin: "null" }, 403],
  [{ referer: "https://app.example.com/orders/7" }, 200],
  [{ referer: "https://evil.test/?https://example.com" }, 403],
  [{ origin: "https://evil.test", referer: "https://example.com/" }, 403],
  [{}, 403],
];

Deno.test("allowed domains are those of the page, and a browser there can use the API", (t) =>
  withStage(openStage, async (stage) => {
    const domains = "example.com,shop.example.org";
    await runCommand(["account", "restrict", stage.accountId, "--allowed-domains", domains], stage.env);
    await answers(() => list(stage), 403);
    for (const [headers, status] of PAGES) {
      await t.step(`${JSON.stringify(headers)} is ${status}`, async () => {
        const answer = await list(stage, headers);
        assert.deepEqual([answer.status, answer.body.code], [
          status,
          status === 403 ? "domain_not_allowed" : undefined,
        ]);
        // So that the page's script can read a refusal too.
        assert.equal(answer.headers.get("access-control-allow-origin"), headers.origin ?? null);
      });
    }
    await t.step("the preflight needs no key and allows what the API takes", async () => {
      const { status, headers } = await answerOf(fetch(`${stage.gateway.baseUrl}/messages/send/text`, {
        method: "OPTIONS",
        headers: {
          origin: "https://www.example.com",
          "access-control-request-method": "POST",
          "access-control-request-headers": "content-type,idempotency-key,x-api-key",
        },
      }));
      assert.equal(status, 204);
      assert.equal(headers.get("access-control-allow-origin"), "https://www.example.com");
      assert.match(headers.get("access-control-allow-methods") ?? "", /\bPOST\b/);
      const allowed = headers.get("access-control-allow-headers")?.split(", ") ?? [];
      for (const name of ["x-api-key", "content-type", "idempotency-key"]) assert.ok(allowed.includes(name), name);
    });
    await t.step("the page's script may read what is left of quota and rate", async () => {
      const { headers } = await list(stage, { origin: "https://example.com" });
      const exposed = headers.get("access-control-expose-headers")?.split(", ") ?? [];
      for (const name of ["retry-after", "x-quota-daily-remaining", "ratelimit-remaining"]) {
        assert.ok(exposed.includes(name), name);
      }
    });
  }));

Deno.test("a key works while its account does, and where the specification says", (t) =>
  withStage(openStage, async (stage) => {
    const command = (...words: string[]) => runCommand(["account", ...words], stage.env);

    await t.step("no key, a wrong one, and a Bearer key outside of the PDF endpoint are 401", async () => {
      const bare = (headers: Record<string, string>) => list(stage, { "x-api-key": "", ...headers });
      await refused(bare({}), 401, "api_key_missing");
      await refused(bare({ "x-api-key": "nonsense" }), 401, "api_key_invalid");
      await refused(bare({ "x-api-key": `${stage.apiKey}x` }), 401, "api_key_invalid");
      await refused(bare({ authorization: `Bearer ${stage.apiKey}` }), 401, "api_key_missing");
      const pdf = (token: string) =>
        post(stage, "/message/send/pdf", { json: {}, headers: { "x-api-key": "", authorization: `Bearer ${token}` } });
      await refused(pdf(stage.apiKey), 400, "validation_failed");
      await refused(pdf("nonsense"), 401, "api_key_invalid");
    });

    await t.step("an expired subscription is 403 on reads too, until it is prolonged", async () => {
      await command("expire", stage.accountId);
      await answers(() => list(stage), 403);
      await refused(list(stage), 403, "subscription_expired");
      await refused(post(stage, "/sessions", { json: { name: "late" } }), 403, "subscription_expired");
      await command("expire", stage.accountId, "--at", "2999-01-01");
      await answers(() => list(stage), 200);
    });

    await t.step("a deactivated account is 401 until it is active again", async () => {
      await command("deactivate", stage.accountId);
      await answers(() => list(stage), 401);
      await refused(list(stage), 401, "account_deactivated");
      await command("activate", stage.accountId);
      await answers(() => list(stage), 200);
    });

    await t.step("a new key works at once, the old one no more", async () => {
      assert.equal((await list(stage)).status, 200);
      const { apiKey } = JSON.parse(await command("rotate-key", stage.accountId, "--json"));
      stage.secrets.add(apiKey);
      await refused(list(stage), 401, "api_key_invalid");
      assert.equal((await list(stage, { "x-api-key": apiKey })).status, 200);
    });
  }));

Deno.test("a key has the requests a minute that its plan says, and the headers count them", () =>
  withStage(() => openStage({ plan: { delayMinMs: 0, delayMaxMs: 0, requestsPerMinute: 600 } }), async (stage) => {
    const answers = await Promise.all(Array.from({ length: 650 }, () => list(stage)));
    const taken = answers.filter(({ status }) => status === 200);
    assert.equal(taken.length, 600);
    const left = taken.map(({ headers }) => Number(headers.get("ratelimit-remaining"))).sort((a, b) => b - a);
    assert.deepEqual(left, Array.from({ length: 600 }, (_, i) => 599 - i));
    assert.equal(taken[0]!.headers.get("ratelimit-limit"), "600");
    for (const { status, body, headers } of answers.filter((answer) => !taken.includes(answer))) {
      assert.deepEqual([status, body.code, headers.get("ratelimit-remaining")], [429, "rate_limited", "0"]);
      const retryAfter = Number(headers.get("retry-after"));
      assert.ok(retryAfter >= 1 && retryAfter <= 60, `Retry-After is ${retryAfter}`);
    }
    const other = JSON.parse(await runCommand(["account", "create", "--name", "other", "--json"], stage.env));
    stage.secrets.add(other.apiKey);
    assert.equal((await list(stage, { "x-api-key": other.apiKey })).status, 200);
  }));

/** Lists the sessions, which every key may. */
function list(stage: Stage, headers: Record<string, string> = {}): Promise<ApiAnswer> {
  return answerOf(stage.request("GET", "/sessions", { headers }));
}

function from(stage: Stage, forwardedFor: string | null): Promise<ApiAnswer> {
  return list(stage, forwardedFor === null ? {} : { "x-forwarded-for": forwardedFor });
}

async function answers(ask: () => Promise<ApiAnswer>, status: number): Promise<void> {
  await until(async () => (await ask()).status === status, `status ${status}`);
}
