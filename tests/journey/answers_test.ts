/** Templates, tags and choices, judged at the phones, also after `kill -9`. */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import { accepted, post, refused } from "../support/api_calls.ts";
import { openStage, type Stage, withStage } from "../support/stage.ts";

const LINE = "4915560000001";
const CUSTOMER = "4917560000001";
const OTHER = "4917560000002";

async function restart(stage: Stage): Promise<void> {
  await stage.gateway.kill();
  await stage.gateway.start();
}

/** Sends to the customer; resolves to the message's id. */
async function send(stage: Stage, kind: string, json: Json): Promise<string> {
  return (await accepted(post(stage, `/messages/send/${kind}`, { json: { to: CUSTOMER, ...json } }))).messageId;
}

const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();

Deno.test("templates arrive as they were when they were accepted, and reminders end with the payment", (t) =>
  withStage(openStage, async (stage) => {
    await stage.addPhone(CUSTOMER);
    const line = await stage.linkLine(LINE);
    const text = "Hello {{name}}, invoice {{ number }} is due.";
    await stage.api.call("POST", "/templates", { name: "due", text, header: "Acme", footer: "{{name}}" });
    await stage.api.call("POST", "/templates", { name: "due", language: "es", text: "Hola {{1}}" });

    await t.step("in the language of the recipient, also in a bulk", async () => {
      const id = await send(stage, "template", { template: "due", variables: { name: "Anna", number: "7" } });
      await stage.arrival(CUSTOMER, (m) => m.text === "*Acme*\n\nHello Anna, invoice 7 is due.\n\nAnna");
      const { data } = await stage.api.call("GET", `/messages/${id}`);
      assert.equal(data.text, "*Acme*\n\nHello Anna, invoice 7 is due.\n\nAnna");
      const messages = ["es_MX", "es"].map((language, i) => ({
        to: CUSTOMER,
        template: "due",
        language,
        variables: [`n${i}`],
      }));
      await accepted(post(stage, "/messages/send/bulk", { json: { messages } }));
      for (const name of ["n0", "n1"]) await stage.arrival(CUSTOMER, (m) => m.text === `Hola ${name}`);
    });

    await t.step("with the texts of its accept, after a change and kill -9", async () => {
      await stage.api.call("POST", `/sessions/${line.sessionId}/queue/pause`);
      await send(stage, "template", { template: "due", language: "es", variables: ["old"] });
      await stage.api.call("PUT", "/templates/due?language=es", { text: "Buenas {{1}}" });
      await stage.api.call("DELETE", "/templates/due");
      await restart(stage);
      await stage.sessionStatus(line, "connected");
      await stage.api.call("POST", `/sessions/${line.sessionId}/queue/resume`);
      await stage.arrival(CUSTOMER, (m) => m.text === "Hola old");
    });

    await t.step("one call cancels what waits with a tag, after kill -9 too", async () => {
      const tags = ["invoice-1"];
      const ids: string[] = [];
      for (const days of [1, 2, 3]) {
        ids.push(await send(stage, "text", { text: "due", sendAt: inDays(days), tags }));
      }
      const sent = await send(stage, "text", { text: "the invoice", tags });
      await stage.status(sent, "sent");
      await restart(stage);
      const { data } = await stage.api.call("DELETE", "/messages?tag=invoice-1");
      assert.deepEqual(data, { cancelled: 3 });
      assert.deepEqual((await stage.api.call("DELETE", "/messages?tag=invoice-1")).data, { cancelled: 0 });
      const { data: found } = await stage.api.call("GET", "/messages/history?tag=invoice-1");
      assert.deepEqual(found.map(({ messageId, status }: Json) => [messageId, status]), [
        [sent, "sent"],
        ...ids.toReversed().map((id) => [id, "failed"]),
      ]);
      const failed = await stage.event(
        line,
        ({ event, data }) => event === "message.failed" && data.messageId === ids[0],
      );
      assert.deepEqual([failed.data.error.code, failed.data.tags], ["cancelled", tags]);
    });

    await t.step("a reply cancels, a reaction does not", async () => {
      await stage.sessionStatus(line, "connected");
      const id = await send(stage, "text", { text: "due", sendAt: inDays(1), cancelOnReply: true });
      const other = await send(stage, "text", { text: "news", sendAt: inDays(1) });
      const [{ id: seen }] = await stage.inbox(CUSTOMER);
      const { id: reaction } = await stage.control.call("POST", `/phones/${CUSTOMER}/react`, { id: seen, emoji: "👍" });
      await stage.event(line, ({ data }) => data.messageId === reaction);
      assert.equal((await stage.api.call("GET", `/messages/${id}/status`)).status, "queued");
      const { id: reply } = await stage.control.call("POST", `/phones/${CUSTOMER}/messages`, {
        to: LINE,
        text: "paid",
      });
      await stage.event(line, ({ data }) => data.messageId === reply);
      const { error } = await stage.api.call("GET", `/messages/${id}/status`);
      assert.equal(error.code, "cancelled_by_reply");
      assert.equal((await stage.api.call("GET", `/messages/${other}/status`)).status, "queued");
    });
  }));

Deno.test("an answer to choices is one event, however it comes", (t) =>
  withStage(openStage, async (stage) => {
    await stage.addPhone(CUSTOMER);
    await stage.addPhone(OTHER);
    const line = await stage.linkLine(LINE);
    const options = [{ id: "del", label: "Délivery", description: "free" }, { label: "Pick up" }];
    const body = { text: "How?", footer: "Acme", options };
    const says = async (act: string, json: Json) =>
      (await stage.control.call("POST", `/phones/${CUSTOMER}/${act}`, json)).id;
    /** The answers so far, once the message `id` is an event of the line. */
    const answers = async (id: string) => {
      await stage.event(line, ({ event, data }) => event === "message.received" && data.messageId === id);
      return (await stage.events(line)).filter(({ event }) => event === "choice.made")
        .map(({ data }) => [data.messageId, data.id, data.how]);
    };
    const all: unknown[] = [];

    const first = await send(stage, "choices", body);
    await t.step("by number or label", async () => {
      await stage.arrival(CUSTOMER, (m) => m.text === "How?\n\n1. Délivery – free\n2. Pick up\n\nAcme");
      const said = [["1", "del"], [" 2) ", "2"], ["delivery", "del"], ["3", null], ["1 please", null]] as const;
      for (const [text, id] of said) {
        if (id) all.push([first, id, "text"]);
        assert.deepEqual(await answers(await says("messages", { to: LINE, text })), all, text);
      }
    });

    const styles = { buttons: "", list: "" };
    await t.step("by a tap, also on the older of two, and after kill -9", async () => {
      const seen: Record<string, string> = {};
      for (const style of ["buttons", "list"] as const) {
        styles[style] = await send(stage, "choices", { ...body, style });
        const item = await stage.arrival(CUSTOMER, (m) => m[style] !== null);
        seen[style] = item.id;
        assert.deepEqual(item[style].map(({ id, label }: Json) => [id, label]), [["del", "Délivery"], [
          "2",
          "Pick up",
        ]]);
        assert.equal(item.footer, "Acme");
      }
      await restart(stage);
      await stage.sessionStatus(line, "connected");
      for (const style of ["buttons", "list"] as const) {
        all.push([styles[style], "2", "tap"]);
        assert.deepEqual(await answers(await says("tap", { id: seen[style], choice: "2" })), all);
      }
    });

    await t.step("a vote in a group", async () => {
      const { id: group } = await stage.control.call("POST", "/groups", {
        subject: "G",
        participants: [LINE, CUSTOMER],
      });
      const asked = await send(stage, "choices", { ...body, to: group });
      const { id } = await stage.arrival(CUSTOMER, (m) => m.poll !== null);
      await says("vote", { id, options: ["Pick up"] });
      const { data } = await stage.event(
        line,
        ({ event, data }) => event === "choice.made" && data.messageId === asked,
      );
      assert.deepEqual([data.id, data.how, data.chat], ["2", "vote", group]);
    });

    await t.step("refusals", async () => {
      const wrong: [string, Json][] = [
        ["options.1.label", { options: [{ label: "A" }, { label: "á" }] }],
        ["options.1.id", { options: [{ label: "A", id: "2" }, { label: "B" }] }],
        ["options", { style: "poll", options: [{ label: "A" }] }],
        ["options", { options: [] }],
        ["style", { style: "menu" }],
      ];
      for (const [path, change] of wrong) {
        const json = { to: OTHER, ...body, ...change };
        const { body: { errors } } = await refused(
          post(stage, "/messages/send/choices", { json }),
          400,
          "validation_failed",
        );
        assert.equal(errors[0].path, path);
      }
    });
  }));
