import assert from "node:assert/strict";
import { type Service, startServices, together } from "../../../src/base/service.ts";

function noted(name: string, notes: string[], failing: "start" | "stop" | null = null): Service {
  const step = (what: "start" | "stop") => () => {
    notes.push(`${what} ${name}`);
    return failing === what ? Promise.reject(new Error(`${name} cannot ${what}`)) : Promise.resolve();
  };
  return { start: step("start"), stop: step("stop") };
}

Deno.test("services start in order and stop in reverse", async () => {
  const notes: string[] = [];
  const stack = new AsyncDisposableStack();
  await startServices(stack, [noted("a", notes), noted("b", notes)]);
  await stack.disposeAsync();
  assert.deepEqual(notes, ["start a", "start b", "stop b", "stop a"]);
});

Deno.test("a start that fails stops that service and those before it, and starts none behind", async () => {
  const notes: string[] = [];
  const stack = new AsyncDisposableStack();
  const services = [noted("a", notes), noted("b", notes, "start"), noted("c", notes)];
  await assert.rejects(startServices(stack, services), /b cannot start/);
  await stack.disposeAsync();
  assert.deepEqual(notes, ["start a", "start b", "stop b", "stop a"]);
});

Deno.test("of services together each is stopped, also when one cannot stop, and that is thrown", async () => {
  const notes: string[] = [];
  const both = together(noted("a", notes, "stop"), noted("b", notes));
  await both.start();
  await assert.rejects(both.stop(), /a cannot stop/);
  assert.deepEqual(notes, ["start a", "start b", "stop a", "stop b"]);
});
