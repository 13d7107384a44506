/** Who comes into the panel, and how. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { firstRunLink, makeLinks } from "../../../src/panel/logins/links.ts";
import { totpCode } from "../../../src/panel/logins/totp.ts";
import { panelKeys, type Person } from "../../../src/panel/rows.ts";
import { sweepPanel } from "../../../src/panel/sweep.ts";
import { Change } from "../../../src/store/kv.ts";
import { withApi } from "../../support/api_world.ts";
import { keysUnder } from "../../support/send_world.ts";
import { joined, linkFor, PanelVisit, PASSWORD } from "../../support/panel_visit.ts";

const MINUTE_MS = 60_000;

Deno.test("until there is an operator the panel opens on the gateway's own machine only", () =>
  withApi(async (world) => {
    const visit = new PanelVisit(world);
    const from = "198.51.100.7";
    const refused = await visit.ask("GET", "/state", undefined, { from });
    assert.deepEqual([refused.status, refused.body.code], [403, "not_permitted"]);
    const token = await linkFor(world, { kind: "operator" });
    const join = { token, login: "ana", password: PASSWORD };
    assert.equal((await visit.ask("POST", "/join", join, { from })).status, 403);
    assert.partialDeepStrictEqual(await visit.get("/state"), { hasOperator: false, person: null });
    assert.equal((await visit.ask("POST", "/join", join)).status, 200);
    assert.equal((await visit.ask("GET", "/state", undefined, { from })).status, 200);
  }));

Deno.test("until there is an operator a trusted proxy speaks for whom it names, else for the machine it is on", () =>
  withApi(async (world) => {
    const visit = new PanelVisit(world);
    const status = async (from: string, forwarded?: string) => {
      const headers: Record<string, string> = forwarded === undefined ? {} : { "x-forwarded-for": forwarded };
      return (await visit.ask("GET", "/state", undefined, { from, headers })).status;
    };
    assert.equal(await status("172.18.0.1"), 200, "Docker's bridge, for a port of the machine's loopback");
    assert.equal(await status("172.18.0.1", "127.0.0.1"), 200);
    assert.equal(await status("172.18.0.1", "198.51.100.7"), 403);
    assert.equal(await status("172.18.0.5", "172.18.0.1"), 403);
    assert.equal(await status("172.18.0.1", ""), 403);
    assert.equal(await status("198.51.100.7"), 403);
  }, { trustedProxies: ["172.16.0.0/12"] }));

Deno.test("a link makes one login, and is dead after", () =>
  withApi(async (world) => {
    const visit = new PanelVisit(world);
    const people = { hasOperator: async () => (await visit.get("/state")).hasOperator };
    const links = makeLinks(world);
    const panelUrl = "http://gateway.test/panel";
    const link = await firstRunLink({ people, links, panelUrl });
    const token = link!.split("#")[1]!;
    const join = (login: string) => visit.ask("POST", "/join", { token, login, password: PASSWORD });
    const answers = await Promise.all(Array.from({ length: 4 }, (_, i) => join(`ana${i}`)));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 404, 404, 404]);
    assert.equal((await visit.ask("POST", "/welcome", { token })).body.code, "link_dead");
    assert.equal(await firstRunLink({ people, links, panelUrl }), null);
    const late = await linkFor(world, { kind: "operator" });
    await world.runtime.clock.advance(61 * MINUTE_MS);
    assert.equal((await visit.ask("POST", "/welcome", { token: late })).body.code, "link_dead");
  }));

Deno.test("nobody makes links without end: each is a row, and another in the log of all", () =>
  withApi(async (world) => {
    const ana = await joined(world, "ana", world.account.id);
    const invite = async () => (await ana.ask("POST", `/accounts/${world.account.id}/invitations`, {})).status;
    const answers = [];
    for (let i = 0; i < 40; i++) answers.push(await invite());
    assert.deepEqual([answers.filter((status) => status === 200).length, answers.at(-1)], [30, 429]);
    assert.equal((await keysUnder(world.kv, panelKeys.links())).length, 30);
    await world.runtime.clock.advance(61 * MINUTE_MS);
    assert.equal(await invite(), 200);
  }));

Deno.test("a password is right or wrong, whoever asks, and six wrong ones make whoever asks wait", () =>
  withApi(async (world) => {
    await joined(world, "ana", null);
    const visit = new PanelVisit(world);
    const signIn = (login: string, password: string, from = "127.0.0.1") =>
      visit.ask("POST", "/sign-in", { login, password }, { from });
    for (let i = 0; i < 5; i++) {
      const { status, body } = await signIn("ana", "wrong password");
      assert.deepEqual([status, body.code], [401, "sign_in_failed"]);
    }
    const sixth = await signIn("ana", PASSWORD);
    assert.deepEqual([sixth.status, sixth.body.code], [429, "too_many_attempts"]);
    assert.ok(Number(sixth.headers.get("retry-after")) > 0);
    assert.equal((await signIn("nobody", "wrong password")).body.code, "sign_in_failed", "a name is not given away");
    assert.equal((await signIn("ana", PASSWORD, "198.51.100.7")).status, 200, "she is not locked out elsewhere");
    await world.runtime.clock.advance(15 * MINUTE_MS);
    assert.equal((await signIn("ANA ", PASSWORD)).status, 200);
  }));

Deno.test("whoever guesses from all addresses of an IPv6 network is one", () =>
  withApi(async (world) => {
    await joined(world, "ana", null);
    const visit = new PanelVisit(world);
    const signIn = (password: string, from: string) =>
      visit.ask("POST", "/sign-in", { login: "ana", password }, { from });
    assert.equal((await signIn(PASSWORD, "2001:db8:0:1::a")).status, 200);
    assert.equal((await visit.ask("POST", "/sign-out", undefined, { from: "2001:db8:0:1::a" })).status, 200);
    for (let i = 0; i < 50; i++) await signIn("wrong password", `198.51.100.${i % 10}`);
    assert.equal((await signIn(PASSWORD, "2001:db8:0:2::a")).body.code, "too_many_attempts");
    for (let i = 0; i < 5; i++) {
      assert.equal(
        (await signIn("wrong password", `2001:db8:0:1::b${i}`)).body.code,
        "sign_in_failed",
        "where she was",
      );
    }
    assert.equal((await signIn(PASSWORD, "2001:db8:0:1::c")).body.code, "too_many_attempts");
  }));

Deno.test("strangers who guess lock a login for each other, not for whoever has signed in from where they are", () =>
  withApi(async (world) => {
    await joined(world, "ana", null);
    const visit = new PanelVisit(world);
    const signIn = (password: string, from: string) =>
      visit.ask("POST", "/sign-in", { login: "ana", password }, { from });
    const home = "203.0.113.9";
    assert.equal((await signIn(PASSWORD, home)).status, 200);
    assert.equal((await visit.ask("POST", "/sign-out", undefined, { from: home })).status, 200);
    for (let i = 0; i < 50; i++) await signIn("wrong password", `198.51.100.${i % 10}`);
    assert.equal((await signIn(PASSWORD, "198.51.100.77")).body.code, "too_many_attempts");
    const ana = await signIn(PASSWORD, home);
    assert.equal(ana.status, 200);
    assert.equal((await visit.ask("POST", "/me/totp", { password: PASSWORD }, { from: home })).status, 200);
    for (let i = 0; i < 5; i++) assert.equal((await signIn("wrong password", home)).body.code, "sign_in_failed");
    assert.equal((await signIn(PASSWORD, home)).body.code, "too_many_attempts", "nor may anybody guess there");
  }));

Deno.test("of many wrong passwords at once no more are told to be wrong than one after another", () =>
  withApi(async (world) => {
    await joined(world, "ana", null);
    const visit = new PanelVisit(world);
    const guesses = Array.from({ length: 8 }, (_, i) => `wrong password ${i}`);
    const answers = await Promise.all([...guesses, PASSWORD].map((password) => {
      return visit.ask("POST", "/sign-in", { login: "ana", password });
    }));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [401, 401, 401, 401, 401, 429, 429, 429, 429]);
  }));

Deno.test("whoever proves the old password while it is being changed is not in by it", () =>
  withApi(async (world) => {
    const ana = await joined(world, "ana", null);
    let isChanged = false;
    const changing = ana.ask("PUT", "/me/password", { present: PASSWORD, password: "a stork on the chimney" });
    void changing.then(() => isChanged = true);
    // Hashes wait for each other: the last of these reads the old one, and is proven right when the new one stands.
    const others: PanelVisit[] = [];
    while (!isChanged) {
      others.push(new PanelVisit(world));
      await others.at(-1)!.ask("POST", "/sign-in", { login: "ana", password: PASSWORD });
    }
    assert.equal((await changing).status, 200);
    assert.equal((await ana.ask("GET", "/me")).status, 200);
    for (const visit of others) assert.equal((await visit.ask("GET", "/me")).status, 401);
  }));

Deno.test("whoever shows passkeys that nobody has locks out nobody else", () =>
  withApi(async (world) => {
    await joined(world, "ana", null);
    const visit = new PanelVisit(world);
    const show = (id: string, from: string) => visit.ask("POST", "/sign-in/passkey", { response: { id } }, { from });
    for (let i = 0; i < 50; i++) {
      assert.equal((await show(`nobodys${i}`, `198.51.100.${i % 10}`)).body.code, "sign_in_failed");
    }
    const { body } = await show("another", "203.0.113.9");
    assert.equal(body.code, "sign_in_failed");
    assert.match(body.detail, /passkey/);
  }));

Deno.test("a code of the authenticator app is asked for, and counts once", () =>
  withApi(async (world) => {
    const ana = await joined(world, "ana", null);
    assert.equal((await ana.ask("POST", "/me/totp", { password: "not hers at all" })).status, 400);
    const made = await ana.ask("POST", "/me/totp", { password: PASSWORD });
    const secret = fromBase32(made.body.data.secret);
    const code = () => totpCode(secret, Math.floor(world.runtime.clock.now() / 30_000));
    assert.equal((await ana.ask("POST", "/me/totp/confirm", { code: "000000" })).status, 400);
    assert.equal((await ana.ask("POST", "/me/totp/confirm", { code: code() })).status, 200);
    await world.runtime.clock.advance(MINUTE_MS);

    const visit = new PanelVisit(world);
    const signIn = (more: object) => visit.ask("POST", "/sign-in", { login: "ana", password: PASSWORD, ...more });
    assert.equal((await signIn({})).body.code, "second_factor_required");
    assert.equal((await signIn({ code: "000000" })).body.code, "sign_in_failed");
    assert.equal((await signIn({ code: code() })).status, 200);
    assert.equal((await signIn({ code: code() })).body.code, "sign_in_failed", "a code that was used");
    const entries: { action: string }[] = await ana.get("/operator/audit");
    assert.equal(entries.filter(({ action }) => action === "sign_in_failed").length, 2, "a wrong code is on record");
  }));

Deno.test("an authenticator app that is in use is not replaced by one that may never be", () =>
  withApi(async (world) => {
    const ana = await joined(world, "ana", null);
    const setUp = () => ana.ask("POST", "/me/totp", { password: PASSWORD });
    await setUp();
    const { data } = (await setUp()).body;
    const code = totpCode(fromBase32(data.secret), Math.floor(world.runtime.clock.now() / 30_000));
    assert.equal((await ana.ask("POST", "/me/totp/confirm", { code })).status, 200);

    const again = await setUp();
    assert.deepEqual([again.status, again.body.code], [409, "totp_in_use"]);
    assert.equal((await ana.get("/me")).totp, true);
    assert.equal((await ana.ask("POST", "/me/totp/remove", { password: PASSWORD })).status, 200);
    assert.equal((await setUp()).status, 200);
  }));

Deno.test("whoever sits at somebody's browser cannot try passwords without end", () =>
  withApi(async (world) => {
    const ana = await joined(world, "ana", null);
    const routes = ["/me/totp", "/me/totp/remove", "/me/passkeys/options"];
    const codes = async (password: string, paths: string[]) => {
      const answers = [];
      for (const path of paths) answers.push((await ana.ask("POST", path, { password })).body.code);
      return answers;
    };
    const wrong = await codes("not hers at all", [...routes, "/me/totp", "/me/totp/remove"]);
    assert.deepEqual(wrong, Array(5).fill("validation_failed"));
    assert.deepEqual(await codes(PASSWORD, routes), Array(3).fill("too_many_attempts"));
  }));

Deno.test("a sign-in is ended from another browser, by a new password, and by time", () =>
  withApi(async (world) => {
    const first = await joined(world, "ana", null);
    const second = new PanelVisit(world);
    const signIn = () => second.ask("POST", "/sign-in", { login: "ana", password: PASSWORD });
    await signIn();
    const { signIns } = await first.get("/me");
    assert.equal(signIns.length, 2);
    const other = signIns.find((row: { current: boolean }) => !row.current);
    assert.equal((await first.ask("DELETE", `/me/sign-ins/${other.id}`)).status, 200);
    assert.equal((await second.ask("GET", "/me")).body.code, "sign_in_required");

    await signIn();
    const change = { present: PASSWORD, password: "another dove on the roof" };
    assert.equal((await first.ask("PUT", "/me/password", { ...change, present: "wrong" })).status, 400);
    assert.equal((await first.ask("PUT", "/me/password", change)).status, 200);
    assert.equal((await second.ask("GET", "/me")).status, 401);
    assert.equal((await first.ask("GET", "/me")).status, 200);
    await world.runtime.clock.advance(25 * 60 * MINUTE_MS);
    assert.equal((await first.ask("GET", "/me")).status, 401);
    assert.ok(await sweepPanel(world.kv, world.runtime.clock.now(), new AbortController().signal) > 0);
  }));

Deno.test("nothing that a copied store could be used for stands in it readable", () =>
  withApi(async (world) => {
    const ana = await joined(world, "ana", null);
    const { body } = await ana.ask("POST", "/me/totp", { password: PASSWORD });
    const token = ana.cookie!.split("=")[1]!;
    for await (const { key, value } of world.kv.list({ prefix: panelKeys.people() })) {
      const text = JSON.stringify([key, value], (_, v) => v instanceof Uint8Array ? Buffer.from(v).toString("hex") : v);
      for (const secret of [PASSWORD, body.data.secret, Buffer.from(fromBase32(body.data.secret)).toString("hex")]) {
        assert.ok(!text.includes(secret));
      }
    }
    for await (const { key } of world.kv.list({ prefix: panelKeys.signIns() })) assert.ok(!key.includes(token));
  }));

Deno.test("a cookie is for this site alone, and for TLS alone where there is TLS", () =>
  withApi(async (world) => {
    await joined(world, "ana", null);
    const signIn = async (headers: Record<string, string>) => {
      const visit = new PanelVisit(world);
      const answer = await visit.ask("POST", "/sign-in", { login: "ana", password: PASSWORD }, { headers });
      return [answer.headers.get("set-cookie")!, await visit.ask("GET", "/me", undefined, { headers })] as const;
    };
    const [plain] = await signIn({});
    assert.match(plain, /^paloma=.*Path=\/; HttpOnly; SameSite=Strict$/);
    const [secure, answer] = await signIn({ "x-forwarded-proto": "https", "x-forwarded-host": "wa.example.com" });
    assert.match(secure, /^__Host-paloma=.*Path=\/; HttpOnly; Secure; SameSite=Strict$/);
    assert.equal(answer.status, 200);
  }, { trustedProxies: ["127.0.0.1"] }));

Deno.test("a change that another site's page could send is refused", () =>
  withApi(async (world) => {
    const ana = await joined(world, "ana", null);
    const refused = async (headers: Record<string, string>) => {
      const { status, body } = await ana.ask("POST", "/sign-out", undefined, { headers });
      assert.deepEqual([status, body.code], [403, "not_permitted"]);
    };
    await refused({ "sec-fetch-site": "same-site" });
    await refused({ "sec-fetch-site": "cross-site" });
    const bare = await world.call("POST", "/panel/api/sign-out", { key: null, headers: { cookie: ana.cookie! } });
    assert.equal(bare.status, 403);
    await bare.body?.cancel();
    assert.equal(bare.headers.get("access-control-allow-origin"), null);
    assert.equal((await ana.ask("GET", "/me")).status, 200);
    assert.equal(
      (await ana.ask("POST", "/sign-out", undefined, { headers: { "sec-fetch-site": "same-origin" } })).status,
      200,
    );
    assert.equal((await ana.ask("GET", "/me")).status, 401);
  }));

function fromBase32(text: string): Uint8Array<ArrayBuffer> {
  const bits = [...text].map((c) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(c).toString(2).padStart(5, "0")).join(
    "",
  );
  return Uint8Array.from(bits.match(/.{8}/g)!, (byte) => parseInt(byte, 2));
}

Deno.test("an id that is longer than any key of the store is nobody's", () =>
  withApi(async (world) => {
    const ana = await joined(world, "ana", null);
    const signIn = async (id: string) => (await ana.ask("POST", "/sign-in/passkey", { response: { id } })).status;
    assert.deepEqual([await signIn("€".repeat(1_000)), await signIn("a".repeat(1_364))], [400, 401]);
    const id = "€".repeat(1_000);
    const asked: [method: string, path: string, json?: unknown][] = [
      ["GET", `/accounts/${id}`],
      ["GET", `/operator/audit?before=${id}`],
      ["DELETE", `/operator/people/${id}`],
      ["DELETE", `/me/sign-ins/${id}`],
      ["PATCH", `/operator/accounts/${id}`, { name: "x" }],
    ];
    for (const [method, path, json] of asked) {
      assert.equal((await ana.ask(method, path, json)).status, 404, `${method} ${path.slice(0, 20)}`);
    }
  }));

Deno.test("of passkeys that are removed at the same time none comes back", () =>
  withApi(async (world) => {
    const ana = await joined(world, "ana", null);
    const { value: id } = await world.kv.get<string>(panelKeys.login("ana"));
    const { value: person } = await world.kv.get<Person>(panelKeys.person(id!));
    const common = { publicKey: new Uint8Array(1), counter: 0, transports: [], createdAt: 0, lastUsedAt: null };
    const passkeys = ["one", "two", "three"].map((id) => ({ id, name: id, ...common }));
    const change = new Change().set(panelKeys.person(id!), { ...person!, passkeys });
    for (const passkey of passkeys) change.set(panelKeys.passkey(passkey.id), id!);
    await world.kv.commit(change);
    const removed = await Promise.all(["one", "two"].map((id) => ana.ask("DELETE", `/me/passkeys/${id}`)));
    assert.deepEqual(removed.map(({ status }) => status), [200, 200]);
    assert.deepEqual((await ana.get("/me")).passkeys.map(({ id }: { id: string }) => id), ["three"]);
    assert.equal((await ana.ask("DELETE", "/me/passkeys/one")).status, 404);
  }));

Deno.test("the bare address leads browsers to the panel, whatever they accept, and programs nowhere", () =>
  withApi(async (world) => {
    const asked: [Record<string, string>, number][] = [
      [{ accept: "text/html,application/xhtml+xml" }, 302],
      [{ accept: "*/*", "sec-fetch-mode": "navigate" }, 302],
      [{ accept: "*/*", "user-agent": "Mozilla/5.0 (X11; Linux x86_64)" }, 302],
      [{ accept: "*/*", "user-agent": "curl/8.5.0" }, 404],
      [{}, 404],
    ];
    for (const [headers, status] of asked) {
      const response = await world.app.request("/", { headers });
      assert.equal(response.status, status, JSON.stringify(headers));
      assert.equal(response.headers.get("location"), status === 302 ? "panel" : null);
      await response.body?.cancel();
    }
  }));
