/** Verifications: a customer's own message proves the number, judged at the phones, also after `kill -9`. */
import assert from "node:assert/strict";
import { readQrPng } from "../../src/base/qr_png.ts";
import type { Json } from "../../src/cli/client.ts";
import { until } from "../support/until.ts";
import { type LinkedLine, openStage, type Stage, withStage } from "../support/stage.ts";

const LINE = "4915560000001";
const OTHER_LINE = "4915560000002";
const CUSTOMER = "4917560000001";
const STRANGER = "4917560000002";

async function restart(stage: Stage, lines: readonly LinkedLine[]): Promise<void> {
  await stage.gateway.kill();
  await stage.gateway.start();
  for (const line of lines) await stage.sessionStatus(line, "connected");
}

Deno.test("a customer proves a number by sending the code, once", (t) =>
  withStage(openStage, async (stage) => {
    for (const number of [CUSTOMER, STRANGER]) await stage.addPhone(number);
    const line = await stage.linkLine(LINE);
    const other = await stage.linkLine(OTHER_LINE);
    const open = async (json: Json = {}): Promise<Json> => (await stage.api.call("POST", "/verifications", json)).data;
    const get = async (id: string) => (await stage.api.call("GET", `/verifications/${id}`)).data;
    /** The phone writes; resolves once that is an event, to what the verifications have told so far. */
    async function says(number: string, text: string, to = line, chat = to.number): Promise<unknown[]> {
      const { id } = await stage.control.call("POST", `/phones/${number}/messages`, { to: chat, text });
      await stage.event(to, ({ event, data }) => event === "message.received" && data.messageId === id);
      const events = [...await stage.events(line), ...await stage.events(other)];
      return events.filter(({ event }) => event.startsWith("verification."))
        .map(({ event, data }) => [event, data.id, data.number ?? data.reason]);
    }
    const passed: unknown[] = [];

    await t.step("by the link, which the QR holds too", async () => {
      const { id, link, qr, text, code } = await open({ purpose: "Log in to Acme" });
      assert.equal(text, `Log in to Acme: ${code}`);
      assert.equal(readQrPng(qr), link);
      const { host, pathname, searchParams } = new URL(link);
      assert.deepEqual([host, pathname], ["wa.me", `/${LINE}`]);
      passed.push(["verification.passed", id, CUSTOMER]);
      assert.deepEqual(await says(CUSTOMER, searchParams.get("text")!), passed);
      const { status, number, chat } = await get(id);
      assert.deepEqual([status, number], ["passed", CUSTOMER]);
      assert.match(chat, /@(lid|s\.whatsapp\.net)$/);
      assert.deepEqual(await says(STRANGER, text), passed, "a code counts once");
    });

    await t.step("only at its line, in a chat of two, however it is written", async () => {
      const { id, code } = await open({ sessionId: line.sessionId });
      assert.deepEqual(await says(CUSTOMER, code, other), passed);
      const { id: group } = await stage.control.call("POST", "/groups", {
        subject: "G",
        participants: [LINE, CUSTOMER],
      });
      assert.deepEqual(await says(CUSTOMER, code, line, group), passed);
      assert.equal((await get(id)).status, "pending");
      passed.push(["verification.passed", id, CUSTOMER]);
      const typed = `Here it is: ${code.slice(0, 4).toLowerCase()} ${code.slice(4).toLowerCase()}!`;
      assert.deepEqual(await says(CUSTOMER, typed), passed);
    });

    await t.step("another number than the one asked for fails it", async () => {
      const { id, code } = await open({ number: `+${CUSTOMER}` });
      const told = await says(STRANGER, code);
      assert.deepEqual(told.filter((one) => !passed.some((it) => JSON.stringify(it) === JSON.stringify(one))), [
        ["verification.failed", id, "other_number"],
      ]);
      passed.splice(0, passed.length, ...told);
      assert.deepEqual(await says(CUSTOMER, code), passed, "it has ended");
      assert.equal((await get(id)).status, "failed");
    });

    await t.step("once also when the gateway is killed before and after the message", async () => {
      const asked = await open();
      await restart(stage, [line, other]);
      const { id } = await stage.control.call("POST", `/phones/${CUSTOMER}/messages`, { to: LINE, text: asked.code });
      // Killed while it works: the message is kept before, or delivered again after.
      await restart(stage, [line, other]);
      await stage.event(line, ({ event, data }) => event === "message.received" && data.messageId === id);
      passed.push(["verification.passed", asked.id, CUSTOMER]);
      const told = await says(STRANGER, asked.code);
      assert.deepEqual(told.filter((one) => (one as string[])[1] === asked.id), [passed.at(-1)]);
      assert.equal((await get(asked.id)).status, "passed");
    });

    await t.step("erased with the number", async () => {
      const { id } = await open({ number: CUSTOMER });
      const { data: erasure } = await stage.api.call("DELETE", `/data/${CUSTOMER}`);
      await until(
        async () => (await stage.api.call("GET", `/erasures/${erasure.id}`)).data.status === "done",
        "the end of the erasure",
      );
      const answer = await stage.request("GET", `/verifications/${id}`);
      assert.equal(answer.status, 404);
      assert.deepEqual((await stage.events(line)).filter(({ data }) => JSON.stringify(data).includes(CUSTOMER)), []);
    });
  }));
