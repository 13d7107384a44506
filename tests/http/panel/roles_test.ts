/** What an agent of an account may do in the panel: of every route, those that answering chats needs, and no other. */
import assert from "node:assert/strict";
import { ROUTES } from "../../../src/http/resources/resources.ts";
import { withApi } from "../../support/api_world.ts";
import { joined, joinedBy } from "../../support/panel_visit.ts";

/** The operations of the API that agents may call. */
const ALLOWED = [
  /^get \/v1\/sessions$/,
  /^get \/v1\/sessions\/\{id\}\/(chats|contacts)(\/|$)/,
  /^get \/v1\/sessions\/\{id\}\/groups$/,
  /^post \/v1\/sessions\/\{id\}\/(chats\/\{chat\}\/(read|presence)|check-number)$/,
  /^post \/v1\/messages\/send\/(?!bulk|status)/,
  /^get \/v1\/messages\/(history|proposals|\{id\}|\{id\}\/status)$/,
  /^(delete|patch) \/v1\/messages\/\{id\}$/,
  /^post \/v1\/messages\/\{id\}\/approve$/,
  /^get \/v1\/templates/,
];
/** The panel's own routes of an account that agents may call. */
const OWN = [
  "GET /accounts/:accountId",
  "GET /accounts/:accountId/attention",
  "GET /accounts/:accountId/lines/:sessionId/names",
  "GET /accounts/:accountId/live",
  "GET /accounts/:accountId/search",
];

Deno.test("an agent reaches of the API what answering chats needs, and of the panel's routes no other", () =>
  withApi(async (world) => {
    const { account } = world;
    const agent = await joinedBy(world, "ada", { kind: "member", accountId: account.id, role: "agent" });
    const sessionId = await world.linkedSession();
    // What needs no key is not below `/v1`, and not called on anybody's behalf.
    const routes = ROUTES.filter(({ path }) => path.startsWith("/v1/"));
    const refused: string[] = [];
    for (const { method, path } of routes) {
      const real = path.replace("/sessions/{id}", `/sessions/${sessionId}`).replaceAll(/\{\w+\}/g, "34600111222");
      const body = method === "get" ? undefined : {};
      const { status, body: answer } = await agent.ask(method.toUpperCase(), `/accounts/${account.id}${real}`, body);
      const isRefused = status === 403 && answer.code === "not_permitted";
      if (isRefused) refused.push(`${method} ${path}`);
    }
    const expected = routes.map(({ method, path }) => `${method} ${path}`)
      .filter((name) => !ALLOWED.some((pattern) => pattern.test(name)));
    assert.deepEqual(refused, expected);
    assert.ok(refused.length > 60 && routes.length - refused.length > 20, `${refused.length} of ${routes.length}`);

    const panel = world.app.routes.filter(({ path, method }) => path.startsWith("/panel/api") && method !== "ALL");
    let checked = 0;
    for (const { method, path } of panel) {
      const below = path.replace("/panel/api", "");
      const isOperator = below.startsWith("/operator/");
      if (!isOperator && !below.startsWith("/accounts/:accountId")) continue;
      if (below.endsWith("/v1/*") || OWN.includes(`${method} ${below}`)) continue;
      checked++;
      const real = below.replace(":accountId", account.id).replace(":sessionId", sessionId).replace(/:\w+/g, "x");
      const { status, body } = await agent.ask(method, real, method === "GET" ? undefined : {});
      assert.deepEqual([status, body.code], [403, "not_permitted"], `${method} ${below}`);
    }
    assert.ok(checked > 20, `only ${checked} routes were checked`);
  }));

Deno.test("an agent's path is read as the router reads it, and the account's places and key are not shown", () =>
  withApi(async (world) => {
    const { account } = world;
    const agent = await joinedBy(world, "ada", { kind: "member", accountId: account.id, role: "agent" });
    for (const path of ["/v1/web%68ooks", "/v1//webhooks", "/v1/messages/../webhooks", "/v1/account%2fkeys", "/v1/%"]) {
      const { status } = await agent.ask("GET", `/accounts/${account.id}${path}`);
      assert.ok([400, 403, 404].includes(status), `${path}: ${status}`);
    }
    assert.deepEqual(Object.keys(await agent.get(`/accounts/${account.id}`)).sort(), [
      "active",
      "expiresAt",
      "id",
      "name",
      "plan",
    ]);
    assert.equal((await agent.get("/state")).person.role, "agent");
    assert.equal((await agent.ask("GET", "/me")).status, 200);
  }));

Deno.test("an invitation is listed by its name until it is used or withdrawn, and makes who joins what it says", () =>
  withApi(async (world) => {
    const root = await joined(world, "root", null);
    const ana = await joined(world, "ana", world.account.id);
    const at = `/accounts/${world.account.id}/invitations`;
    const open = async () =>
      (await ana.get(at)).map(({ name, role }: { name: string | null; role: string }) => [name, role]).toSorted();
    const { body: { data: maria } } = await ana.ask("POST", at, { name: "Maria, till 2", role: "agent" });
    await ana.ask("POST", at, {});
    assert.deepEqual(await open(), [[null, "owner"], ["Maria, till 2", "agent"]]);
    assert.ok(!JSON.stringify(await ana.get(at)).includes(maria.token));
    assert.deepEqual((await ana.ask("POST", at, { role: "king" })).body.code, "validation_failed");
    const { account: other } = await world.accounts.create({ name: "other", plan: "tested" });
    const bob = await joined(world, "bob", other.id);
    const { id } = (await ana.get(at)).find(({ role }: { role: string }) => role === "owner");
    for (const where of [`/accounts/${other.id}/invitations/${id}`, at.replace(world.account.id, "x") + `/${id}`]) {
      assert.equal((await bob.ask("DELETE", where)).status, 404);
    }
    assert.equal((await root.ask("DELETE", `/operator/invitations/${id}`)).status, 404);
    assert.equal((await ana.ask("DELETE", `${at}/${id}`)).status, 200);
    assert.deepEqual(await open(), [["Maria, till 2", "agent"]]);
    const join = { token: maria.token, login: "maria", password: "a dove on the roof" };
    assert.equal((await root.ask("POST", "/join", join)).status, 200);
    assert.deepEqual(await open(), []);
    const [, person] = (await ana.get(`/accounts/${world.account.id}/people`)).toSorted(
      (a: { login: string }, b: { login: string }) => a.login < b.login ? -1 : 1,
    );
    assert.deepEqual([person.login, person.name, person.role], ["maria", "Maria, till 2", "agent"]);

    const operators = await joined(world, "olga", null);
    const { body: { data: withdrawn } } = await operators.ask("POST", "/operator/invitations", { name: "Tom" });
    const [tom] = await operators.get("/operator/invitations");
    assert.equal(tom.name, "Tom");
    assert.equal((await operators.ask("DELETE", `/operator/invitations/${tom.id}`)).status, 200);
    const late = await bob.ask("POST", "/join", { ...join, token: withdrawn.token, login: "tom" });
    assert.deepEqual([late.status, late.body.code], [404, "link_dead"]);
  }));
