/** A browser at the panel's API: it keeps its cookie, and sends the header that our own pages send. */
import assert from "node:assert/strict";
import { makeLinks } from "../../src/panel/logins/links.ts";
import type { Purpose } from "../../src/panel/rows.ts";
import type { ApiWorld, CallOptions } from "./api_world.ts";

export const PASSWORD = "a dove on the roof";

export interface PanelAnswer {
  status: number;
  // deno-lint-ignore no-explicit-any
  body: any;
  headers: Headers;
}

export class PanelVisit {
  readonly #world: ApiWorld;
  cookie: string | null = null;

  constructor(world: ApiWorld) {
    this.#world = world;
  }

  async ask(method: string, path: string, json?: unknown, options: CallOptions = {}): Promise<PanelAnswer> {
    const { headers, ...rest } = options;
    const response = await this.#world.call(method, `/panel/api${path}`, {
      key: null,
      ...rest,
      ...(json !== undefined && { json }),
      headers: { "x-paloma-panel": "1", ...(this.cookie && { cookie: this.cookie }), ...headers },
    });
    const set = response.headers.get("set-cookie");
    if (set) this.cookie = set.split(";")[0]!;
    const text = await response.text();
    return { status: response.status, body: text === "" ? null : JSON.parse(text), headers: response.headers };
  }

  /** As `ask`, for what has to succeed; the answer's `data`. */
  // deno-lint-ignore no-explicit-any
  async get(path: string): Promise<any> {
    const { status, body } = await this.ask("GET", path);
    assert.equal(status, 200, JSON.stringify(body));
    return body.data;
  }
}

/** A one-time link's token. */
export async function linkFor(world: ApiWorld, purpose: Purpose): Promise<string> {
  return (await makeLinks(world).make(purpose)).token;
}

/** Somebody with a login, signed in. */
export async function joined(world: ApiWorld, login: string, accountId: string | null): Promise<PanelVisit> {
  return await joinedBy(world, login, accountId === null ? { kind: "operator" } : { kind: "member", accountId });
}

/** Somebody with a login by such a link, signed in. */
export async function joinedBy(world: ApiWorld, login: string, purpose: Purpose): Promise<PanelVisit> {
  const visit = new PanelVisit(world);
  const token = await linkFor(world, purpose);
  const { status, body } = await visit.ask("POST", "/join", { token, login, password: PASSWORD });
  assert.equal(status, 200, JSON.stringify(body));
  return visit;
}
