/** Tenants take turns, and none has more than its share. */
import assert from "node:assert/strict";
import { FairSemaphore } from "../../../src/base/fair_semaphore.ts";
import { testRuntime } from "../../support/runtime.ts";

/** Work that says when it began, and ends when it is told to. */
class Works {
  readonly begun: string[] = [];
  readonly #ends = new Map<string, () => void>();

  add(turns: FairSemaphore, name: string, lane?: string): Promise<string> {
    return turns.run({ tenant: name[0]!, ...(lane ? { lane } : {}) }, async () => {
      this.begun.push(name);
      await new Promise<void>((resolve) => this.#ends.set(name, resolve));
      return name;
    });
  }

  async end(name: string): Promise<void> {
    this.#ends.get(name)!();
    await settled();
  }
}

async function settled(): Promise<void> {
  for (let i = 0; i < 10; i++) await Promise.resolve();
}

Deno.test("one more than its share waits for a place of its own tenant", async () => {
  const turns = new FairSemaphore({ inAll: 10, each: 2 });
  const works = new Works();
  for (const name of ["a1", "a2", "a3", "b1"]) void works.add(turns, name);
  await settled();
  assert.deepEqual(works.begun, ["a1", "a2", "b1"]);
  assert.equal(turns.waiting, 1);
  await works.end("b1");
  assert.equal(turns.waiting, 1);
  await works.end("a1");
  assert.deepEqual(works.begun, ["a1", "a2", "b1", "a3"]);
});

Deno.test("a tenant that comes late is served before the rest of a flood", async () => {
  const turns = new FairSemaphore({ inAll: 1, each: 1 });
  const works = new Works();
  for (const name of ["a1", "a2", "a3", "b1", "b2"]) void works.add(turns, name);
  for (const name of ["a1", "a2", "b1", "a3"]) {
    await settled();
    await works.end(name);
  }
  assert.deepEqual(works.begun, ["a1", "a2", "b1", "a3", "b2"]);
});

Deno.test("the lanes of a tenant take turns as tenants do", async () => {
  const turns = new FairSemaphore({ inAll: 1, each: 1 });
  const works = new Works();
  for (const [name, lane] of [["a1", "x"], ["a2", "x"], ["a3", "x"], ["a4", "y"]]) void works.add(turns, name!, lane);
  for (const name of ["a1", "a2", "a4"]) {
    await settled();
    await works.end(name);
  }
  assert.deepEqual(works.begun, ["a1", "a2", "a4", "a3"]);
});

Deno.test("work that fails gives its place back", async () => {
  const turns = new FairSemaphore({ inAll: 1, each: 1 });
  await assert.rejects(turns.run({ tenant: "a" }, () => Promise.reject(new Error("no"))), /no/);
  assert.equal(await turns.run({ tenant: "a" }, () => Promise.resolve(7)), 7);
  assert.equal(turns.waiting, 0);
});

Deno.test("what is not wanted any more leaves the queue, and its place goes to the next", async () => {
  const turns = new FairSemaphore({ inAll: 1, each: 1 });
  const works = new Works();
  const unwanted = new AbortController();
  void works.add(turns, "a1");
  const dropped = turns.run({ tenant: "a", signal: unwanted.signal }, () => Promise.resolve("never"));
  const next = works.add(turns, "a2");
  unwanted.abort(new Error("nobody waits"));
  await assert.rejects(dropped, /nobody waits/);
  await works.end("a1");
  assert.deepEqual(works.begun, ["a1", "a2"]);
  await works.end("a2");
  assert.equal(await next, "a2");
  await assert.rejects(turns.run({ tenant: "a", signal: unwanted.signal }, () => Promise.resolve()), /nobody waits/);
});

Deno.test("a place rests for as long as its work took", async () => {
  const { clock } = testRuntime();
  const turns = new FairSemaphore({ inAll: 2, each: 1, restBy: clock });
  const works = new Works();
  for (const name of ["a1", "a2", "b1"]) void works.add(turns, name);
  await settled();
  await clock.advance(300);
  await works.end("a1");
  await clock.advance(299);
  assert.deepEqual(works.begun, ["a1", "b1"]);
  await clock.advance(1);
  assert.deepEqual(works.begun, ["a1", "b1", "a2"]);
});
