/**
 * `/panel/api/accounts/{id}/v1/…`: the public API on behalf of the signed-in person. All pages of an account use it, so
 * an owner may do what a key may do, an agent a part of it, and access to data is checked in one place. It does not
 * count towards the customer's rate limit.
 */
import type { Hono } from "@hono/hono";
import { assertActive, assertSubscribed, type Caller } from "../../account/account.ts";
import type { Callers } from "../../account/callers.ts";
import { Problem } from "../../errors.ts";
import type { ApiContext, ApiEnv } from "../../http/api/route.ts";
import type { Runtime } from "../../runtime.ts";
import { API, type AskedOfAccount, type Guard } from "./guard.ts";
import { assertForAgents } from "./roles.ts";

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;
/** Headers that the browser adds, and headers with credentials of another caller. */
const DROPPED = ["cookie", "authorization", "x-api-key", "origin", "referer"];

export function addAct({ app, guard, callers, runtime: { clock } }: {
  app: Hono<ApiEnv>;
  guard: Guard;
  callers: Pick<Callers, "of">;
  runtime: Pick<Runtime, "clock">;
}) {
  /** Returns the caller. Throws if the person is no longer signed in, or the account may not act. */
  async function callerOf(c: ApiContext, accountId: string, method: string): Promise<Caller> {
    const visitor = await guard.visitorOf(c);
    if (visitor) await guard.accountOf(visitor, accountId);
    const caller = visitor && await callers.of(accountId);
    if (!caller) throw new Problem("api_key_invalid", "You are not signed in any more.");
    assertActive(caller.account);
    if (method !== "GET") assertSubscribed(caller.account, clock.now());
    return caller;
  }

  /** Calls the API on the person's behalf. */
  async function fetch(
    { c, account }: Pick<AskedOfAccount, "c" | "account">,
    path: string,
    init: RequestInit = {},
  ): Promise<Response> {
    const admitted = { caller: () => callerOf(c, account.id, init.method ?? "GET") };
    return await app.fetch(new Request(new URL(path, "http://panel"), init), { admitted });
  }

  const path = "/accounts/:accountId/v1/*";
  for (const method of METHODS) {
    guard.account({ method, path, agents: true }, async (asked) => {
      const { c, account, visitor } = asked;
      const { pathname, search } = new URL(c.req.url);
      const inner = pathname.slice(`${API}/accounts/${account.id}`.length) + search;
      if (visitor.person.role === "agent") assertForAgents(method, pathOf(inner));
      const headers = new Headers(c.req.raw.headers);
      for (const name of DROPPED) headers.delete(name);
      const body = method === "GET" ? {} : { body: c.req.raw.body, duplex: "half" };
      const response = await fetch(asked, inner, { method, headers, ...body });
      if (method !== "GET" && response.ok) await asked.did(`${method} ${withoutNumbers(pathOf(inner))}`);
      return response;
    });
  }
  return { fetch };
}

const pathOf = (inner: string) => inner.split("?")[0]!;

/** Returns the path without phone numbers, because the audit log is kept longer than data about people. */
function withoutNumbers(path: string): string {
  return path.split("/").map((part) => /^\d+(-\d+)?((@|%40)[a-z.]+)?$/i.test(part) ? "…" : part).join("/");
}
