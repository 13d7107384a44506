/** What people of an account see and do in the panel, and that it is never another's. */
import assert from "node:assert/strict";
import { DEFAULT_PLANS } from "../../../src/account/plan.ts";
import { Plans } from "../../../src/account/plans.ts";
import { noteBackup } from "../../../src/data/backup.ts";
import { StoreError } from "../../../src/store/kv.ts";
import { type ApiWorld, withApi } from "../../support/api_world.ts";
import { joined, PanelVisit } from "../../support/panel_visit.ts";

const DAY_MS = 24 * 60 * 60_000;

const below = ({ account }: ApiWorld, path = "") => `/accounts/${account.id}${path}`;

/** Every route of `/panel/api` that names an account or an operator's matter, read from the app itself. */
function routesOf(world: ApiWorld): { method: string; path: string }[] {
  return world.app.routes.filter(({ path, method }) => path.startsWith("/panel/api") && method !== "ALL");
}

Deno.test("the API answers whoever is signed in as it answers the key, at no cost to its rate limit", () =>
  withApi(async (world) => {
    const sessionId = await world.linkedSession();
    const root = await joined(world, "root", null);
    const ana = await joined(world, "ana", world.account.id);
    for (let i = 0; i < 5; i++) {
      const { status, headers, body } = await ana.ask("GET", below(world, "/v1/sessions"));
      assert.equal(status, 200);
      assert.equal(headers.get("ratelimit-limit"), null);
      assert.equal(body.data[0]._id, sessionId);
    }
    const key = () => world.call("GET", "/v1/account");
    for (const expected of [200, 200, 429]) {
      const response = await key();
      await response.body?.cancel();
      assert.equal(response.status, expected);
    }
    const message = { sessionId, to: "34600111222", text: "hello" };
    const headers = { "idempotency-key": "one" };
    const send = () => ana.ask("POST", below(world, "/v1/messages/send/text"), message, { headers });
    const [first, second] = [await send(), await send()];
    assert.deepEqual([first.status, second.body.messageId], [202, first.body.messageId]);
    const wrong = await ana.ask("POST", below(world, "/v1/messages/send/text"), { ...message, to: "nobody" });
    assert.deepEqual([wrong.status, wrong.body.code], [400, "validation_failed"]);
    const log = await root.get("/operator/audit");
    assert.equal(log[0].action, "POST /v1/messages/send/text");
    assert.equal(log[0].login, "ana");
  }, { plan: { requestsPerMinute: 2 } }));

Deno.test("the audit log has nobody's number, also not that of whoever made a group, which its old kind of id has", () =>
  withApi(async (world) => {
    const sessionId = await world.linkedSession();
    const root = await joined(world, "root", null);
    const ana = await joined(world, "ana", world.account.id);
    for (const chat of ["34600111222", "34600111222@s.whatsapp.net", "34600111222-1500000000@g.us"]) {
      const read = await ana.ask("POST", below(world, `/v1/sessions/${sessionId}/chats/${chat}/read`), {});
      assert.equal(read.status, 200, JSON.stringify(read.body));
      const [{ action }] = await root.get("/operator/audit");
      assert.equal(action, `POST /v1/sessions/${sessionId}/chats/…/read`);
    }
  }));

Deno.test("an account whose form came before its list of plans gets the default one", () =>
  withApi(async (world) => {
    for (const plan of DEFAULT_PLANS) await new Plans(world.kv).set(plan);
    const root = await joined(world, "root", null);
    const { status, body } = await root.ask("POST", "/operator/accounts", { name: "Bakery" });
    assert.deepEqual([status, body.data?.plan], [200, "free"], JSON.stringify(body));
  }));

Deno.test("a list of recipients is checked by the rules of sends, and nothing is sent", () =>
  withApi(async (world) => {
    const ana = await joined(world, "ana", world.account.id);
    await world.call("PUT", "/v1/optouts/34600111333").then((response) => response.body?.cancel());
    const check = (recipients: unknown) => ana.ask("POST", below(world, "/recipients"), { recipients });
    const { body: { data } } = await check([
      "+34 600 11 12 22",
      "0600111222",
      "34600111333",
      "34600111222@c.us",
      "",
      "4.91555E+11",
    ]);
    assert.deepEqual(data, {
      wrong: [
        { index: 1, message: "begins with 0: give the country code, like 447700900123, or set the account's country" },
        { index: 4, message: "must be a phone number with its country code, like 447700900123" },
        {
          index: 5,
          message: "must be a phone number with its country code, a group JID (…@g.us), a JID that came in an event " +
            "(…@s.whatsapp.net, …@lid), or a username after an @",
        },
        { index: 2, message: "has opted out of your messages" },
      ],
      repeated: 1,
    });
    await world.accounts.update(world.account.id, { country: "ES" });
    assert.deepEqual((await check(["0600111222"])).body.data.wrong, [
      { index: 0, message: "is not a number of ES" },
    ]);
    await world.accounts.update(world.account.id, { country: "DE" });
    assert.deepEqual((await check(["015155500010"])).body.data.wrong, []);
    assert.equal((await check([])).status, 400);
    assert.equal((await check(Array(10_001).fill("34600111222"))).status, 400);
    assert.equal((await check(Array(10_000).fill("34600111222"))).body.data.repeated, 9_999);
    assert.deepEqual((await ana.ask("GET", below(world, "/v1/messages/history"))).body.data, []);
  }));

Deno.test("no route lets a member near another account, or an operator's matters, and none answers a stranger", () =>
  withApi(async (world) => {
    const { account: other } = await world.accounts.create({ name: "other", plan: "tested" });
    await joined(world, "root", null);
    const ana = await joined(world, "ana", world.account.id);
    const own = await world.linkedSession();
    let checked = 0;
    for (const { method, path } of routesOf(world)) {
      const isAccount = path.includes(":accountId");
      const isOperator = path.startsWith("/panel/api/operator/");
      if (!isAccount && !isOperator) continue;
      checked++;
      const real = path.replace("/panel/api", "").replace(":accountId", other.id).replace(":sessionId", own)
        .replace("/*", "/sessions").replace(/:\w+(\{[^}]*\})?/g, "x");
      const stranger = await new PanelVisit(world).ask(method, real, method === "GET" ? undefined : {});
      assert.deepEqual([stranger.status, stranger.body.code], [401, "sign_in_required"], `${method} ${path}`);
      const { status, body } = await ana.ask(method, real, method === "GET" ? undefined : {});
      const expected = isOperator ? [403, "not_permitted"] : [404, "not_found"];
      assert.deepEqual([status, body.code], expected, `${method} ${path}`);
      assert.ok(!JSON.stringify(body).includes("other"), "the other's name");
    }
    assert.ok(checked > 25, `only ${checked} routes were checked`);
    const list = await ana.ask("GET", `/accounts/${other.id}/v1/sessions`);
    assert.equal(list.status, 404);
    const line = await ana.ask("GET", `/accounts/${other.id}/v1/sessions/${own}/chats`);
    assert.equal(line.status, 404);
  }));

Deno.test("a member's own account never shows another's line, webhook or message by its id", () =>
  withApi(async (world) => {
    const { account: other } = await world.accounts.create({ name: "other", plan: "tested" });
    const bob = await joined(world, "bob", other.id);
    const line = await world.linkedSession();
    const send = await world.call("POST", "/v1/messages/send/text", {
      json: { sessionId: line, to: "34600111222", text: "secret" },
    });
    const { messageId } = await send.json();
    const base = `/accounts/${other.id}`;
    for (
      const path of [
        `/v1/sessions/${line}/status`,
        `/v1/sessions/${line}/qr`,
        `/v1/messages/${messageId}/status`,
        `/v1/sessions/${line}/chats`,
        `/v1/sessions/${line}/chats/34600111222/messages`,
      ]
    ) {
      assert.equal((await bob.ask("GET", base + path)).status, 404, path);
    }
    assert.equal((await bob.ask("POST", `${base}/lines/${line}/customer-link`)).status, 404);
    assert.deepEqual((await bob.ask("GET", `${base}/search?q=secret`)).body.data, []);
  }));

Deno.test("an expired or deactivated account can be looked at, or not, but not sent from", () =>
  withApi(async (world) => {
    const ana = await joined(world, "ana", world.account.id);
    await world.accounts.update(world.account.id, { expiresAt: world.runtime.clock.now() });
    assert.equal((await ana.ask("GET", below(world, "/v1/sessions"))).status, 200);
    const send = await ana.ask("POST", below(world, "/v1/sessions"), { name: "late" });
    assert.deepEqual([send.status, send.body.code], [403, "subscription_expired"]);
    await world.accounts.update(world.account.id, { active: false });
    assert.equal((await ana.ask("GET", below(world, "/v1/sessions"))).body.code, "account_deactivated");
  }));

Deno.test("the key is shown on demand, regenerated at once, and one of many regenerations counts", () =>
  withApi(async (world) => {
    const root = await joined(world, "root", null);
    const ana = await joined(world, "ana", world.account.id);
    const pages = await Promise.all([ana.get(below(world)), ana.get("/me"), ana.get("/state")]);
    assert.ok(!JSON.stringify(pages).includes(world.apiKey));
    const shown = await ana.ask("POST", below(world, "/key/show"));
    assert.equal(shown.body.data.apiKey, world.apiKey);
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => ana.ask("POST", below(world, "/key/regenerate"))),
    );
    const keys = answers.flatMap(({ status, body }) => status === 200 ? [body.data.apiKey] : []);
    const valid = await Promise.all(keys.map(async (key) => (await world.callers.authenticate(key)) !== null));
    assert.equal(valid.filter(Boolean).length, 1);
    const old = await world.call("GET", "/v1/account");
    assert.equal((await old.json()).code, "api_key_invalid");
    assert.deepEqual((await root.get("/operator/audit")).map((row: { action: string }) => row.action).slice(-3), [
      "key_shown",
      "joined",
      "joined",
    ]);
  }));

Deno.test("an address limit that leaves out where the person is, is refused until they say that it is meant", () =>
  withApi(async (world) => {
    const ana = await joined(world, "ana", world.account.id);
    const put = (body: object) => ana.ask("PUT", below(world, "/key/places"), { allowedDomains: [], ...body });
    const refused = await put({ allowedIps: ["192.0.2.0/24"] });
    assert.equal(refused.status, 400);
    assert.match(refused.body.detail, /lock out 127\.0\.0\.1/);
    const bad = await put({ allowedIps: ["127.0.0.1", "10.0.0.0/33"], allowedDomains: ["example.com"] });
    assert.equal(bad.body.errors[0].path, "allowedIps.1");
    assert.deepEqual((await ana.get(below(world))).allowedIps, []);
    assert.equal((await put({ allowedIps: ["192.0.2.0/24"], elsewhere: true })).status, 200);
    const denied = await world.call("GET", "/v1/account");
    assert.equal((await denied.json()).code, "ip_not_allowed");
    assert.equal((await put({ allowedIps: [] })).status, 200);
  }));

Deno.test("a person is invited, comes in, and is shown the door", () =>
  withApi(async (world) => {
    const ana = await joined(world, "ana", world.account.id);
    const { body: { data: { token, url } } } = await ana.ask("POST", below(world, "/invitations"), {});
    assert.equal(url, `http://gateway.test/panel/welcome#${token}`);
    const bob = new PanelVisit(world);
    assert.deepEqual((await bob.ask("POST", "/welcome", { token })).body.data, { kind: "member", accountName: "acme" });
    const join = (login: string) => bob.ask("POST", "/join", { token, login, password: "a stork on the chimney" });
    assert.equal((await join("ana")).body.code, "login_taken");
    assert.equal((await join("bob")).status, 200);
    const [, row] = await ana.get(below(world, "/people"));
    assert.equal(row.login, "bob");
    const { body: { data: back } } = await bob.ask("POST", below(world, "/invitations"), {});
    assert.equal((await ana.ask("DELETE", below(world, `/people/${row.id}`))).status, 200);
    assert.equal((await bob.ask("GET", below(world))).body.code, "sign_in_required");
    const { body } = await bob.ask("POST", "/welcome", { token: back.token });
    assert.equal(body.code, "link_dead", "nor does he come back by a link that he has made");
  }));

Deno.test("of two operators who show each other the door at once one stays", () =>
  withApi(async (world) => {
    const [ana, bob] = [await joined(world, "ana", null), await joined(world, "bob", null)];
    const ids = new Map(
      (await ana.get("/operator/people")).map((row: { login: string; id: string }) => [row.login, row.id]),
    );
    const answers = await Promise.all([
      ana.ask("DELETE", `/operator/people/${ids.get("bob")}`),
      bob.ask("DELETE", `/operator/people/${ids.get("ana")}`),
    ]);
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 401]);
    const left = await Promise.all([ana, bob].map((visit) => visit.ask("GET", "/operator/people")));
    assert.deepEqual(left.map(({ status }) => status).sort(), [200, 401]);
  }));

Deno.test("a customer's link links its line, shows nothing else, and is dead after", () =>
  withApi(async (world) => {
    await joined(world, "root", null);
    const ana = await joined(world, "ana", world.account.id);
    const { body: { data: session } } = await ana.ask("POST", below(world, "/v1/sessions"), { name: "Their line" });
    await world.runtime.clock.advance(10);
    const { body: { data: { token } } } = await ana.ask("POST", below(world, `/lines/${session._id}/customer-link`));
    const customer = new PanelVisit(world);
    const look = () => customer.ask("POST", "/link-line", { token });
    const shown = await look();
    assert.deepEqual(Object.keys(shown.body.data).sort(), ["name", "pairingCode", "passkey", "qr", "reason", "status"]);
    assert.partialDeepStrictEqual(shown.body.data, { name: "Their line", passkey: null });
    const confirm = (token: string) => customer.ask("POST", "/link-line/passkey/confirm", { token });
    assert.equal((await confirm(token)).body.code, "passkey_not_requested");
    assert.equal((await confirm("lnk_none")).body.code, "link_dead");
    assert.equal((await customer.ask("GET", below(world))).status, 401);
    const begun = world.network.connections.length;
    world.network.of(session._id).ends("refused");
    await world.runtime.clock.advance(10);
    assert.equal((await look()).body.data.status, "disconnected");
    const again = (token: string) => customer.ask("POST", "/link-line/again", { token });
    assert.equal((await again("lnk_none")).body.code, "link_dead");
    assert.equal((await world.runtime.clock.during(again(token))).status, 200);
    await world.runtime.clock.advance(10);
    assert.equal(world.network.connections.length, begun + 1);
    assert.equal((await again(token)).status, 200, "what goes on is not begun anew");
    assert.equal(world.network.connections.length, begun + 1);
    world.network.of(session._id).links();
    await world.runtime.clock.advance(10);
    assert.equal((await look()).body.data.status, "connected");
    assert.equal((await look()).body.code, "link_dead");
    const another = await ana.ask("POST", below(world, `/lines/${session._id}/customer-link`));
    assert.equal(another.status, 400, "a line that is linked has nothing to link");
  }));

Deno.test("a customer's link is dead after, also where nobody looked while its line was linked", () =>
  withApi(async (world) => {
    const ana = await joined(world, "ana", world.account.id);
    const { body: { data: session } } = await ana.ask("POST", below(world, "/v1/sessions"), { name: "Their line" });
    await world.runtime.clock.advance(10);
    const { body: { data: { token } } } = await ana.ask("POST", below(world, `/lines/${session._id}/customer-link`));
    await world.runtime.clock.advance(10);
    world.network.of(session._id).links();
    await world.runtime.clock.advance(10);
    world.network.of(session._id).ends("logged_out");
    await world.runtime.clock.advance(10);
    const reconnect = ana.ask("POST", below(world, `/v1/sessions/${session._id}/reconnect`));
    assert.equal((await world.runtime.clock.during(reconnect)).status, 200);
    for (const step of ["", "/again", "/passkey/confirm"]) {
      const { body } = await new PanelVisit(world).ask("POST", `/link-line${step}`, { token });
      assert.equal(body.code, "link_dead", `the owner's next QR is not for that customer: ${step}`);
    }
  }));

Deno.test("what was sent, failed and received is counted by day, once, whoever looks", () =>
  withApi(async (world) => {
    const ana = await joined(world, "ana", world.account.id);
    const event = (name: string) => ({ event: name, sessionId: "ses_x", sessionName: "x", data: {} }) as never;
    await world.log(event("message.sent"), event("message.sent"), event("message.failed"), event("message.received"));
    const look = () => ana.get(below(world, "/usage?days=7"));
    const [first] = await Promise.all([look(), look()]);
    assert.deepEqual(first.days.map(({ sent, failed, received }: Record<string, number>) => [sent, failed, received]), [
      [2, 1, 1],
    ]);
    await world.runtime.clock.advance(24 * 60 * 60_000);
    await ana.ask("POST", "/sign-in", { login: "ana", password: "a dove on the roof" });
    await world.log(event("message.received"));
    assert.deepEqual(
      (await look()).days.map(({ received }: { received: number }) => received),
      [1, 1],
    );
  }));

/** Reads a stream until it tells something. */
function hearing(world: ApiWorld, stream: Response) {
  const reader = stream.body!.pipeThrough(new TextDecoderStream()).getReader();
  const streamed = async (piece: string) => {
    for (let text = ""; !text.includes(piece);) {
      const read = reader.read();
      await world.runtime.clock.advance(300);
      const { value, done } = await read;
      assert.ok(!done, `the stream ended before ${piece}`);
      text += value;
    }
  };
  return { reader, streamed };
}

Deno.test("the live stream tells events and changes of lines, of this account alone, and ends with the sign-in", () =>
  withApi(async (world) => {
    const ana = await joined(world, "ana", world.account.id);
    const stream = await world.call("GET", `/panel/api${below(world, "/live")}`, {
      key: null,
      headers: { cookie: ana.cookie! },
    });
    assert.equal(stream.status, 200);
    const { reader, streamed } = hearing(world, stream);
    await streamed("event: ready");
    await world.linkedSession();
    await streamed("event: lines");
    await world.log({ event: "message.sent", sessionId: "ses_x", sessionName: "x", data: {} } as never);
    await streamed('event: happened\ndata: ["message.sent"]');
    await ana.ask("POST", "/sign-out");
    await world.log({ event: "message.sent", sessionId: "ses_x", sessionName: "x", data: {} } as never);
    const read = reader.read();
    await world.runtime.clock.advance(300);
    assert.equal((await read).done, true);
  }));

Deno.test("an account has so many pages open at a time, and one that is closed makes room", () =>
  withApi(async (world) => {
    const ana = await joined(world, "ana", world.account.id);
    const live = (method: string) =>
      world.call(method, `/panel/api${below(world, "/live")}`, { key: null, headers: { cookie: ana.cookie! } });
    const open: Response[] = [];
    for (let i = 0; i < 50; i++) {
      assert.equal((await live("HEAD")).status, 200);
      open.push(await live("GET"));
      assert.equal(open.at(-1)!.status, 200);
    }
    const refused = await live("GET");
    assert.equal(refused.status, 429);
    assert.equal((await refused.json()).code, "too_much_at_once");
    await open.pop()!.body!.cancel();
    open.push(await live("GET"));
    assert.equal(open.at(-1)!.status, 200);
    for (const stream of open) await stream.body!.cancel();

    // A store that is away ends them all, and they make room.
    const readers = [];
    for (let i = 0; i < 50; i++) readers.push((await live("GET")).body!.getReader());
    for (const reader of readers) await reader.read();
    const ends = readers.map((reader) => reader.read());
    const { get } = world.kv;
    world.kv.get = () => Promise.reject(new StoreError("unavailable", "no answer"));
    const ended = Promise.allSettled(ends);
    await world.runtime.clock.advance(25_000);
    assert.ok((await ended).every(({ status }) => status === "rejected"));
    world.kv.get = get;
    const after = await live("GET");
    assert.equal(after.status, 200);
    await after.body!.cancel();
  }));

Deno.test("an operator's stream tells that any line has changed, and is nobody else's", () =>
  withApi(async (world) => {
    const live = (headers: Record<string, string>) =>
      world.call("GET", "/panel/api/operator/live", { key: null, headers });
    const ana = await joined(world, "ana", world.account.id);
    const refused = await live({ cookie: ana.cookie! });
    assert.notEqual(refused.status, 200);
    await refused.body?.cancel();
    const olga = await joined(world, "olga", null);
    const { reader, streamed } = hearing(world, await live({ cookie: olga.cookie! }));
    await streamed("event: ready");
    await world.linkedSession();
    await streamed("event: lines");
    await olga.ask("POST", "/sign-out");
    await world.linkedSession();
    const read = reader.read();
    await world.runtime.clock.advance(300);
    assert.equal((await read).done, true);
  }));

Deno.test("operators are told of a backup that is missing or older than a week, and not of a newer one", () =>
  withApi(async (world) => {
    const olga = await joined(world, "olga", null);
    const { clock } = world.runtime;
    assert.ok(!JSON.stringify(await olga.get("/operator/attention")).includes("backup"));
    clock.jump(8 * DAY_MS);
    const again = await joined(world, "olga2", null);
    const { items } = await again.get("/operator/attention");
    assert.deepEqual(items.filter(({ kind }: { kind: string }) => kind.startsWith("backup")), [
      { kind: "backup_missing", at: null },
    ]);
    await noteBackup(world.kv, clock);
    const { items: after } = await again.get("/operator/attention");
    assert.ok(!JSON.stringify(after).includes("backup"));
    assert.equal((await again.ask("GET", "/operator/backups/..%2Fsecret.key")).status, 404);
    assert.equal((await again.get("/operator/backups")).lastAt, clock.now());
  }));

Deno.test("the payload of a delivery is its event, of one's own account, as long as it is kept", () =>
  withApi(async (world) => {
    const ana = await joined(world, "ana", world.account.id);
    await world.linkedSession();
    const [event] = await ana.get(below(world, "/events"));
    assert.deepEqual(await ana.get(below(world, `/events/${event.id}`)), event);
    for (const [id, status] of [["evt_0000000000000001", 404], ["x", 400]] as const) {
      assert.equal((await ana.ask("GET", below(world, `/events/${id}`))).status, status, id);
    }
    const { account: other } = await world.accounts.create({ name: "other", plan: "tested" });
    const bob = await joined(world, "bob", other.id);
    assert.equal((await bob.ask("GET", `/accounts/${other.id}/events/${event.id}`)).status, 404);
  }));

Deno.test("a plan's sending hours are days, times and a place, and what they cannot be is said of them", () =>
  withApi(async (world) => {
    const olga = await joined(world, "olga", null);
    const bounds = { sessions: 1, daily: null, monthly: null, delayMinMs: 0, delayMaxMs: 0, requestsPerMinute: null };
    const put = (hours: unknown) => olga.ask("PUT", "/operator/plans/office", { ...bounds, hours });
    const hours = { days: ["mon", "fri"], from: "09:00", to: "18:00", timeZone: "Europe/Madrid" };
    assert.deepEqual((await put(hours)).body.data.hours, hours);
    for (const wrong of [{ ...hours, days: [] }, { ...hours, to: "08:00" }, { ...hours, timeZone: "Mars/Base" }]) {
      const { status, body } = await put(wrong);
      assert.deepEqual([status, body.errors[0].path], [400, "hours"], JSON.stringify(body));
    }
    assert.equal((await put({ ...hours, days: ["lun"] })).status, 400);
    assert.equal((await put(null)).body.data.hours, null);
  }));
