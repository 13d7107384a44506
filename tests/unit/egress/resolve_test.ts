/** Where a name's addresses come from, and that names which hang hold nothing up. */
import assert from "node:assert/strict";
import { makeResolve } from "../../../src/egress/resolve.ts";
import { ManualClock } from "../../support/runtime.ts";

const clock = new ManualClock();

/** Sources that know only what is given, and remember what the system was asked. */
function sources(given: Partial<Parameters<typeof makeResolve>[1]> = {}) {
  const asked: string[] = [];
  const system = given.system ?? (() => Promise.reject(new Error("ENOTFOUND")));
  return {
    asked,
    hosts: () => Promise.resolve("127.0.0.1 localhost\n10.0.0.7 erp.internal  ERP # the old one\n::1 localhost"),
    dns: () => Promise.reject(new Deno.errors.NotFound()),
    ...given,
    system(hostname: string) {
      asked.push(hostname);
      return system(hostname);
    },
  };
}

Deno.test("names of the hosts file have its addresses, whatever DNS says", async () => {
  const known = sources({ dns: () => Promise.resolve(["8.8.8.8"]) });
  const resolve = makeResolve(clock, known);
  assert.deepEqual(await resolve("localhost"), ["127.0.0.1", "::1"]);
  assert.deepEqual(await resolve("LocalHost."), ["127.0.0.1", "::1"]);
  assert.deepEqual(await resolve("erp"), ["10.0.0.7"]);
  assert.deepEqual(await resolve("erp.internal"), ["10.0.0.7"]);
  assert.deepEqual(known.asked, []);
});

Deno.test("a name has its addresses of both kinds, IPv4 first; one kind is enough", async () => {
  const both = makeResolve(
    clock,
    sources({ dns: (_, kind) => Promise.resolve(kind === "A" ? ["8.8.8.8"] : ["2001::8"]) }),
  );
  assert.deepEqual(await both("files.test"), ["8.8.8.8", "2001::8"]);
  const one = makeResolve(
    clock,
    sources({
      dns: (name, kind) =>
        kind === "A" ? Promise.resolve([`${name}:A`]) : Promise.reject(new Deno.errors.TimedOut("no answer")),
    }),
  );
  assert.deepEqual(await one("files.test"), ["files.test.:A"]);
});

Deno.test("a name server that never answers about IPv6 does not keep a name's IPv4 addresses", async () => {
  const dns = (_: string, kind: "A" | "AAAA") =>
    kind === "A" ? Promise.resolve(["8.8.8.8"]) : new Promise<never>(() => {});
  const resolving = makeResolve(clock, sources({ dns }))("files.test");
  await clock.advance(1_000);
  assert.deepEqual(await resolving, ["8.8.8.8"]);
});

Deno.test("what DNS does not know, and names without a dot, are asked of the system", async () => {
  const known = sources({ system: (name) => Promise.resolve(name === "db" ? ["fd00::1", "10.0.0.1"] : ["10.0.0.2"]) });
  const resolve = makeResolve(clock, known);
  assert.deepEqual(await resolve("db"), ["10.0.0.1", "fd00::1"]);
  assert.deepEqual(await resolve("printer.local"), ["10.0.0.2"]);
  assert.deepEqual(known.asked, ["db", "printer.local"]);
});

Deno.test("a name server that does not answer is not asked again by way of the system", async () => {
  const known = sources({ dns: () => Promise.reject(new Deno.errors.TimedOut("no answer")) });
  await assert.rejects(makeResolve(clock, known)("slow.test"), Deno.errors.TimedOut);
  assert.deepEqual(known.asked, []);
});

Deno.test("names that hang take few of the system's threads, and those who wait for one get it", async () => {
  const hanging = new Map<string, (addresses: string[]) => void>();
  const known = sources({ system: (name) => new Promise((answer) => hanging.set(name, answer)) });
  const resolve = makeResolve(clock, known);
  const names = Array.from({ length: 40 }, (_, i) => `host${i}`);
  const answers = Promise.all([...names, ...names].map((name) => resolve(name)));
  let asked = 0;
  while (asked < names.length) {
    await new Promise((settled) => setTimeout(settled, 0));
    assert.ok(hanging.size > 0 && hanging.size <= 4, `${hanging.size} at once`);
    asked += hanging.size;
    for (const [name, answer] of hanging) answer([name]);
    hanging.clear();
  }
  assert.deepEqual((await answers).flat(), [...names, ...names]);
  assert.equal(known.asked.length, names.length);
});
