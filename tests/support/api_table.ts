/** Tables of requests and answers: what must appear, and what must not. They run on any `ApiStage`. */
import assert from "node:assert/strict";
import type { ApiStage, CallOptions } from "./api_world.ts";

/** What the requests of a table may use. */
export interface Given {
  stage: ApiStage;
  /** A session that is linked and connected. */
  session: string;
}

export interface Case {
  /** A sentence. */
  name: string;
  ask(given: Given): [method: string, path: string, options?: CallOptions];
  status: number;
  /** Pieces of the body's text, as they stand in it. */
  contains?: readonly (string | RegExp)[];
  lacks?: readonly (string | RegExp)[];
  /** Null: the header must not be there. */
  headers?: Readonly<Record<string, string | RegExp | null>>;
}

/** What runs a case by its name: a test context, or something like one. */
export interface Steps {
  step(name: string, run: () => Promise<void>): Promise<unknown>;
}

/** Runs each case as a step of the test. */
export async function runTable(t: Steps, given: Given, cases: readonly Case[]): Promise<void> {
  for (const entry of cases) {
    await t.step(entry.name, async () => {
      const response = await given.stage.call(...entry.ask(given));
      await expectAnswer(response, entry);
    });
  }
}

export async function expectAnswer(response: Response, expected: Omit<Case, "name" | "ask">): Promise<string> {
  const text = await response.text();
  assert.equal(response.status, expected.status, text);
  for (const piece of expected.contains ?? []) assert.ok(found(text, piece), `${piece} is missing in ${text}`);
  for (const piece of expected.lacks ?? []) assert.ok(!found(text, piece), `${piece} must not be in ${text}`);
  for (const [name, value] of Object.entries(expected.headers ?? {})) {
    const got = response.headers.get(name);
    const fits = value instanceof RegExp ? got !== null && value.test(got) : got === value;
    assert.ok(fits, `header ${name} is ${got}, expected ${value}`);
  }
  assert.match(response.headers.get("x-request-id") ?? "", /^req_/);
  if (response.status >= 400) expectProblem(response, text);
  return text;
}

/** What every error has. */
function expectProblem(response: Response, text: string): void {
  assert.equal(response.headers.get("content-type"), "application/problem+json");
  const problem = JSON.parse(text);
  assert.equal(problem.status, response.status);
  assert.equal(problem.requestId, response.headers.get("x-request-id"));
  assert.equal(problem.type, `/docs#error-${problem.code}`);
  for (const name of ["title", "detail"]) assert.ok(problem[name].length > 0, `${name} is empty`);
  assert.ok(!/\bat .*\.ts:\d+/.test(text), "a stack trace was shown");
}

function found(text: string, piece: string | RegExp): boolean {
  return typeof piece === "string" ? text.includes(piece) : piece.test(text);
}

/** The contains of a validation problem at this path. */
export function wrong(path: string, message: RegExp = /./): RegExp[] {
  return [/"code":"validation_failed"/, new RegExp(`"path":"${path.replaceAll(".", "\\.")}"`), message];
}

/** The contains of a problem with this code. */
export function problem(code: string): string[] {
  return [`"code":"${code}"`];
}

/** An id that is well formed and nobody's. */
export function nobodys(prefix: string): string {
  return `${prefix}_${"0".repeat(26)}`;
}
