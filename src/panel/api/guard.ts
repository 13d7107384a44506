/**
 * Guards `/panel/api`: checks who may use it, from where, and that the request comes from the panel's own page.
 * Handlers receive only checked input.
 *
 * Against forged requests: the cookie is `SameSite=Strict`, and a change needs a header that no form can send. If the
 * browser states the requesting site (`Sec-Fetch-Site`), it must be this one. There is no CORS.
 */
import { Buffer } from "node:buffer";
import type { Hono } from "@hono/hono";
import { getCookie } from "@hono/hono/cookie";
import { serialize } from "@hono/hono/utils/cookie";
import type { z } from "zod";
import type { Account } from "../../account/account.ts";
import type { Accounts } from "../../account/accounts.ts";
import { isInNetworks, parseNetwork } from "../../base/addresses.ts";
import { notFound } from "../../errors.ts";
import { type ApiContext, type ApiEnv, ok } from "../../http/api/route.ts";
import { answerJson, problemOf, renderProblem } from "../../http/api/answer.ts";
import { validate } from "../../base/validation.ts";
import { send } from "../../http/app.ts";
import { MIB, parseJson, readBytes } from "../../http/body/body.ts";
import { makeClientAddress, peerOf } from "../../http/edge/auth.ts";
import type { Audit } from "../audit.ts";
import type { People } from "../logins/people.ts";
import type { SignIns, Visitor } from "../logins/sign_ins.ts";
import { Refusal } from "../refusal.ts";
import { onlyOwners } from "./roles.ts";

export const API = "/panel/api";
/** A header that no form on another site can send. */
const OWN_HEADER = "x-paloma-panel";
const MAX_BODY = MIB;
/** Limit for ids in paths and queries. The longest are those of passkeys; the store's keys cannot be longer. */
const MOST_ID_BYTES = 1_400;
const LOOPBACK = ["127.0.0.0/8", "::1"].map(parseNetwork);
const MONTH_SECONDS = 30 * 24 * 60 * 60;

export interface Asked<Body = unknown> {
  c: ApiContext;
  body: Body;
  /** Returns a parameter of the path. */
  param(name: string): string;
  query(name: string): string | null;
  /** The client's address; the forwarded one behind a trusted proxy. */
  address: string;
}

export interface AskedByPerson<Body = unknown> extends Asked<Body> {
  visitor: Visitor;
  /** Records the person's action in the audit log. */
  did(action: string, accountId?: string | null): Promise<void>;
}

export interface AskedOfAccount<Body = unknown> extends AskedByPerson<Body> {
  account: Account;
}

type Handle<Request> = (request: Request) => Promise<unknown>;
type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

interface PanelRoute<Body> {
  method: Method;
  /** Relative to `/panel/api`. */
  path: string;
  body?: z.ZodType<Body>;
  /** Of an account: whether its agents may call it, too. */
  agents?: true;
}

export type Guard = ReturnType<typeof makeGuard>;

interface GuardDeps {
  app: Hono<ApiEnv>;
  people: People;
  signIns: SignIns;
  accounts: Pick<Accounts, "get">;
  audit: Audit;
  trustedProxies: readonly string[];
  publicUrl: string | null;
}

/** A handler returns the JSON of the answer, nothing for no data, or a Response, which is passed on. */
export function makeGuard(deps: GuardDeps) {
  const { app, people, signIns, accounts, audit, publicUrl } = deps;
  const clientAddress = makeClientAddress(deps.trustedProxies);
  const proxies = deps.trustedProxies.map(parseNetwork);

  /** Returns the gateway's origin (scheme and host) as the browser sees it. */
  function origin(c: ApiContext): URL {
    const forwarded = (name: string) => isInNetworks(proxies, peerOf(c)) ? c.req.header(name) : undefined;
    const host = forwarded("x-forwarded-host") ?? c.req.header("host") ?? "localhost";
    const known = publicUrl === null ? null : new URL(publicUrl);
    if (known?.host === host) return new URL(known.origin);
    const scheme = forwarded("x-forwarded-proto") === "https" ? "https" : "http";
    return new URL(URL.canParse(`http://${host}`) ? `${scheme}://${host}` : "http://localhost");
  }

  const isSecure = (c: ApiContext) => origin(c).protocol === "https:";
  const cookieName = (c: ApiContext) => isSecure(c) ? "__Host-paloma" : "paloma";

  /** Resolves to the person who makes the request; null if nobody is signed in. */
  async function visitorOf(c: ApiContext): Promise<Visitor | null> {
    const token = getCookie(c, cookieName(c));
    return token ? await signIns.visitor(token) : null;
  }

  /** Resolves to the account, if the person may act for it. Throws Problem not_found. */
  async function accountOf({ person }: Visitor, accountId: string): Promise<Account> {
    const mayAct = person.accountId === null || person.accountId === accountId;
    const account = mayAct ? await accounts.get(accountId) : null;
    if (account === null) throw notFound("account");
    return account;
  }

  /**
   * Whether the request comes from the gateway's own machine. A trusted proxy that forwards no client address counts,
   * too: this is how requests come in through a port that Docker publishes on the machine's loopback.
   */
  const isOwnMachine = (c: ApiContext) =>
    isInNetworks(LOOPBACK, clientAddress(c)) ||
    isInNetworks(proxies, peerOf(c)) && c.req.header("x-forwarded-for") === undefined;

  async function checkPlace(c: ApiContext): Promise<void> {
    if (!isOwnMachine(c) && !await people.hasOperator()) {
      throw new Refusal(
        "not_permitted",
        "Until there is an operator, the panel can only be opened on the gateway's own machine, or through a tunnel to it.",
      );
    }
    if (c.req.method === "GET" || c.req.method === "HEAD") return;
    const site = c.req.header("sec-fetch-site");
    if (c.req.header(OWN_HEADER) === undefined || (site !== undefined && site !== "same-origin")) {
      throw new Refusal("not_permitted", "Changes are taken from the panel's own pages only.");
    }
  }

  /** Adds a route. `admit` decides who may call it; its result is passed to the handler. */
  function register<Body, Found extends object>(
    { method, path, body: schema }: PanelRoute<Body>,
    admit: (c: ApiContext) => Promise<Found>,
    handle: Handle<Asked<Body> & Found>,
  ): void {
    const full = API + path;
    app.on(method, full, async (c: ApiContext) => {
      c.set("route", full);
      try {
        await checkPlace(c);
        const params: Record<string, string> = c.req.param();
        const given = [...Object.values(params), ...Object.values(c.req.query())];
        if (given.some((id) => Buffer.byteLength(id) > MOST_ID_BYTES)) throw notFound("page");
        const found = await admit(c);
        const body = schema && validate(schema, parseJson(await readBytes(c.req.raw, { maxBytes: MAX_BODY })));
        const param = (name: string) => params[name] ?? "";
        const query = (name: string) => c.req.query(name) || null;
        const answer = await handle({ c, body: body as Body, param, query, address: clientAddress(c), ...found });
        return send(c, answer instanceof Response ? answer : ok(answer ?? { data: {} }));
      } catch (error) {
        return refuse(c, error);
      }
    });
  }

  async function admitPerson(c: ApiContext) {
    const visitor = await visitorOf(c);
    if (visitor === null) throw new Refusal("sign_in_required", "Sign in first.");
    const { id: personId, login, accountId: own } = visitor.person;
    const did = (action: string, accountId = own) =>
      audit.write({ personId, login, address: clientAddress(c), accountId, action });
    return { visitor, did };
  }

  return {
    open: <Body = undefined>(route: PanelRoute<Body>, handle: Handle<Asked<Body>>) =>
      register(route, () => Promise.resolve({}), handle),
    /** Adds a route for everybody who is signed in. */
    person: <Body = undefined>(route: PanelRoute<Body>, handle: Handle<AskedByPerson<Body>>) =>
      register(route, admitPerson, handle),
    operator: <Body = undefined>(route: PanelRoute<Body>, handle: Handle<AskedByPerson<Body>>) =>
      register(route, async (c) => {
        const found = await admitPerson(c);
        if (found.visitor.person.accountId !== null) throw new Refusal("not_permitted", "Only operators may do this.");
        return found;
      }, handle),
    /** Adds a route for owners of the account `:accountId` and operators; for others the account does not exist. */
    account: <Body = undefined>(route: PanelRoute<Body>, handle: Handle<AskedOfAccount<Body>>) =>
      register(route, async (c) => {
        const { visitor, did } = await admitPerson(c);
        const { accountId = "" }: Record<string, string> = c.req.param();
        const account = await accountOf(visitor, accountId);
        if (visitor.person.role === "agent" && !route.agents) throw onlyOwners();
        return { visitor, account, did: (action: string) => did(action, account.id) };
      }, handle),
    visitorOf,
    accountOf,
    origin,
    /** Sets the browser's cookie; null removes it. */
    setToken(c: ApiContext, token: string | null): void {
      const options = { path: "/", httpOnly: true, sameSite: "Strict", secure: isSecure(c) } as const;
      // Not with Hono's own `header()`, which does not affect a response written straight to the connection.
      c.get("headers")["set-cookie"] = serialize(cookieName(c), token ?? "", {
        ...options,
        maxAge: token === null ? 0 : MONTH_SECONDS,
      });
    },
  };
}

function refuse(c: ApiContext, error: unknown): Response {
  if (!(error instanceof Refusal)) return renderProblem(c, problemOf(error));
  const { code, status, message: detail, retryAfterSeconds } = error;
  const headers: Record<string, string> = { "content-type": "application/problem+json", "cache-control": "no-store" };
  if (retryAfterSeconds !== undefined) headers["retry-after"] = String(retryAfterSeconds);
  return answerJson(c, {
    status,
    body: { type: "about:blank", title: detail, status, detail, code, requestId: c.get("requestId") },
    headers,
  });
}
