/**
 * `/cloud`: the shape of WhatsApp's Cloud API, with any version in the path. It maps onto the services, which own the
 * rules; what it sends passes the same checks as the API's sends.
 */
import type { Hono } from "@hono/hono";
import { LRUCache } from "lru-cache";
import type { Caller } from "../account/account.ts";
import { requireScope } from "../account/keys.ts";
import { atMost } from "../base/at_most.ts";
import { answerJson, problemOf } from "../http/api/answer.ts";
import { onBehalf } from "../http/api/on_behalf.ts";
import type { ApiContext, ApiEnv } from "../http/api/route.ts";
import { homeCountry } from "../http/api/schemas.ts";
import type { Services } from "../http/api/services.ts";
import { endBody } from "../http/app.ts";
import { MIB, parseJson, readBytes } from "../http/body/body.ts";
import type { Line } from "../line/line.ts";
import { accountEndpoints } from "./account.ts";
import { type Emulation, makeEmulatedCheck } from "./emulation.ts";
import { type Asked, type Endpoints, type OfPhone } from "./endpoint.ts";
import { CloudError, errorBody, noAccount, noSuchPath, ofProblem, unknownPhone, wrongParameter } from "./errors.ts";
import { type Fields, withoutNull } from "./fields.ts";
import { mediaById, mediaOfPhone } from "./media.ts";
import { PHONE_ENDPOINTS } from "./phone.ts";
import { sendingEndpoints } from "./sending.ts";
import { SUBSCRIPTIONS } from "./subscriptions.ts";
import { debugToken } from "./token.ts";

const JSON_HEADERS = { "content-type": "application/json", "cache-control": "no-store" };
/** Phone numbers whose line is remembered. */
const MOST_REMEMBERED = 10_000;
/** Before the version comes the room's own name, and after it what the official API has. */
const PATH = /^\/cloud(?:\/v\d+(?:\.\d+)?(?=\/|$))?\/([^/]*)\/?(.*)$/s;
/** Longer than the digits of any phone number. */
const MEDIA_ID = /^\d{16,}$/;

export function addCloud(app: Hono<ApiEnv>, services: Services, emulation: Emulation | null = null): void {
  const { kv, admission, budgets, lines, runtime: { clock } } = services;
  const lineIds = new LRUCache<string, string>(atMost(MOST_REMEMBERED));
  const check = emulation && makeEmulatedCheck({ kv, emulation, clock });
  const ofPhone: OfPhone = { ...PHONE_ENDPOINTS, ...mediaOfPhone(services), ...sendingEndpoints(services, check) };
  const ofAccount = { ...accountEndpoints(services, emulation), ...SUBSCRIPTIONS };
  const ofMedia = mediaById(services);
  const ofNone = debugToken(services);

  /** Resolves to the line of a phone number's id; while it is linked and remembered, without a read. */
  async function lineOf(accountId: string, phone: string): Promise<Line> {
    const isNamed = (line: Line) => line.id === phone || line.phone === phone;
    const place = `${accountId} ${phone}`;
    const remembered = lineIds.get(place);
    const row = remembered && await lines.forSending(accountId, remembered).catch(() => null);
    if (row && isNamed(row.value)) return row.value;
    const line = (await lines.list(accountId)).find(isNamed);
    if (!line) throw unknownPhone();
    lineIds.set(place, line.id);
    return line;
  }

  async function checkAccount(accountId: string, id: string): Promise<void> {
    if (id === accountId || (await lines.list(accountId)).some(({ phone }) => phone === id)) return;
    throw noAccount();
  }

  function askedOf(c: ApiContext, caller: Caller): Asked {
    const query = (name: string) => c.req.query(name) || undefined;
    return {
      c,
      caller,
      query,
      async body() {
        using inMemory = budgets.bodies.open(caller.account.id);
        const bytes = await readBytes(c.req.raw, { maxBytes: MIB, count: (bytes) => inMemory.add(bytes) });
        const isForm = /^application\/x-www-form-urlencoded/i.test(c.req.header("content-type") ?? "");
        const given = isForm
          ? Object.fromEntries(new URLSearchParams(new TextDecoder().decode(bytes)))
          : parseJson(bytes);
        const body = withoutNull(given);
        if (typeof body !== "object" || body === null || Array.isArray(body)) {
          throw wrongParameter("the body must be an object");
        }
        return body as Fields;
      },
      checkKey: () => admission.authenticate(c, "query"),
      async call(method, path, body) {
        const init = body && { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
        const response = await onBehalf(app, { c, caller }, new Request(`http://cloud${path}`, { method, ...init }));
        const answer = await response.json();
        if (response.ok) return answer;
        const { code, status, detail, retryAfterSeconds } = answer;
        throw ofProblem({ code, status, message: detail, extras: { retryAfterSeconds } });
      },
    };
  }

  async function serve<Named>(asked: Asked, named: Named, endpoints: Endpoints<Named>, name: string) {
    const endpoint = endpoints[name];
    if (!endpoint) throw noSuchPath();
    const { scope } = endpoint;
    // What a key proposes may name files that it uploads.
    if (scope !== null) requireScope(asked.caller, scope, ...scope === "send" ? ["propose" as const] : []);
    return await endpoint.handle({ ...asked, ...named });
  }

  async function answer(c: ApiContext, caller: Caller): Promise<Fields | Response> {
    const asked = askedOf(c, caller);
    const accountId = caller.account.id;
    const [, id = "", edge = ""] = PATH.exec(c.req.path) ?? [];
    const method = c.req.method === "HEAD" ? "GET" : c.req.method;
    const name = `${method} ${edge}`;
    if (id === "media" && MEDIA_ID.test(edge)) {
      return await serve(asked, { mediaId: edge }, ofMedia, `${method} content`);
    }
    if (Object.hasOwn(ofNone, `${method} ${id}`) && edge === "") {
      return await serve(asked, {}, ofNone, `${method} ${id}`);
    }
    if (MEDIA_ID.test(id) && edge === "") return await serve(asked, { mediaId: id }, ofMedia, name);
    if (Object.hasOwn(ofAccount, name) && (edge !== "" || id === accountId)) {
      await checkAccount(accountId, id);
      return await serve(asked, {}, ofAccount, name);
    }
    return await serve(asked, { line: await lineOf(accountId, id) }, ofPhone, name);
  }

  async function admitted(c: ApiContext): Promise<Fields | Response> {
    // As for the API's sends (`http/server.ts`): the commit checks the key, which may have been valid a moment ago.
    const inCommit = c.req.path.endsWith("/messages") && c.req.header("idempotency-key") === undefined;
    const caller = await (inCommit ? admission.recognise : admission.authenticate)(c, "query");
    c.set("caller", caller);
    try {
      await admission.count(c, caller);
      const { country } = caller.account;
      return await (country ? homeCountry.run(country, () => answer(c, caller)) : answer(c, caller));
    } catch (error) {
      if (caller.keyRow) await admission.authenticate(c, "query");
      throw error;
    }
  }

  app.all("/cloud/*", async (c: ApiContext) => {
    c.set("route", "/cloud");
    try {
      const body = await admitted(c);
      return body instanceof Response ? body : answerJson(c, { status: 200, body, headers: JSON_HEADERS });
    } catch (error) {
      const refusal = error instanceof CloudError ? error : ofProblem(problemOf(error));
      if (refusal.status >= 500) c.set("failure", error);
      await endBody(c, clock);
      const { status, retryAfterSeconds } = refusal;
      const retry: Record<string, string> = retryAfterSeconds === undefined
        ? {}
        : { "retry-after": String(retryAfterSeconds) };
      const body = errorBody(refusal, c.get("requestId"));
      return answerJson(c, { status, body, headers: { ...JSON_HEADERS, ...retry } });
    }
  });
}
