/** Proposals: what an agent drafts waits until a person approves it, judged at the phones, also after `kill -9`. */
import assert from "node:assert/strict";
import { httpClient, type Json } from "../../src/cli/client.ts";
import { openStage, type Stage, withStage } from "../support/stage.ts";

const LINE = "4915560000001";
const CUSTOMER = "4917560000001";

async function restart(stage: Stage): Promise<void> {
  await stage.gateway.kill();
  await stage.gateway.start();
}

Deno.test("a draft leaves once it is approved, once, in its place, whatever is killed", (t) =>
  withStage(openStage, async (stage) => {
    await stage.addPhone(CUSTOMER);
    const line = await stage.linkLine(LINE);
    const { data: { key } } = await stage.api.call("POST", "/account/keys", {
      name: "agent",
      scopes: ["read", "propose"],
    });
    const agent = stage.secrets.watch(httpClient(stage.gateway.baseUrl, { "x-api-key": key }));
    const draft = async (text: string, json: Json = {}): Promise<string> =>
      (await agent.call("POST", "/messages/send/text", { to: CUSTOMER, text, ...json })).messageId;
    const approve = (id: string) => stage.api.call("POST", `/messages/${id}/approve`);
    const texts = async () => (await stage.inbox(CUSTOMER)).map(({ text }) => text);
    const waiting = async () =>
      (await stage.api.call("GET", "/messages/proposals")).data.map(({ messageId }: Json) => messageId);

    await t.step("killed after the accept, it waits on, and holds up nothing", async () => {
      const id = await draft("first draft");
      await restart(stage);
      await stage.sessionStatus(line, "connected");
      assert.deepEqual(await waiting(), [id]);
      const { data } = await stage.event(line, ({ event }) => event === "message.proposed");
      assert.deepEqual(data, { messageId: id, to: CUSTOMER, type: "text", text: "first draft", by: "agent" });
      await stage.sendText(line, CUSTOMER, "from a person");
      await stage.arrival(CUSTOMER, ({ text }) => text === "from a person");
      await stage.api.call("PATCH", `/messages/${id}`, { text: "first, read" });
      await approve(id);
      await stage.arrival(CUSTOMER, ({ text }) => text === "first, read");
      await stage.status(id, "sent");
      assert.deepEqual(await waiting(), []);
    });

    await t.step("killed after the approval, it leaves, once, before what came later", async () => {
      await stage.api.call("POST", `/sessions/${line.sessionId}/queue/pause`);
      const early = await draft("early draft");
      await stage.sendText(line, CUSTOMER, "came later");
      await approve(early);
      await restart(stage);
      await assert.rejects(approve(early), /not_waiting_for_approval|approved/);
      await stage.sessionStatus(line, "connected");
      await stage.api.call("POST", `/sessions/${line.sessionId}/queue/resume`);
      await stage.arrival(CUSTOMER, ({ text }) => text === "came later");
      assert.deepEqual((await texts()).slice(-2), ["early draft", "came later"]);
    });

    await t.step(
      "many approvals and cancellations at once, with a kill among them: each as it was answered",
      async () => {
        const ids: string[] = [];
        for (let i = 0; i < 12; i++) ids.push(await draft(`one of many ${i}`));
        const answers = ids.map((id, i) =>
          Promise.allSettled([approve(id), i % 2 ? stage.api.call("DELETE", `/messages/${id}`) : approve(id)])
        );
        await answers[0];
        await restart(stage);
        const settled = await Promise.all(answers);
        await stage.sessionStatus(line, "connected");
        for (const [i, id] of ids.entries()) {
          const approved = settled[i]!.some(({ status }, j) => status === "fulfilled" && (i % 2 === 0 || j === 0));
          const cancelled = i % 2 === 1 && settled[i]![1]!.status === "fulfilled";
          if (cancelled) {
            await stage.status(id, "failed");
          } else if (approved) {
            await stage.status(id, "sent");
          } else if ((await waiting()).includes(id)) {
            // Its answers were lost with the process, before their commits.
            await approve(id);
            await stage.status(id, "sent");
          }
        }
        const said = (await texts()).filter((text) => text.startsWith("one of many"));
        assert.equal(new Set(said).size, said.length, "none arrived twice");
      },
    );

    await t.step("a time and a template are kept; time ends what nobody decides", async () => {
      await stage.api.call("POST", "/templates", { name: "due", text: "Hello {{name}}" });
      const { messageId } = await agent.call("POST", "/messages/send/template", {
        to: CUSTOMER,
        template: "due",
        variables: { name: "Anna" },
        sendAt: new Date(Date.now() + 1_500).toISOString(),
      });
      await approve(messageId);
      await stage.arrival(CUSTOMER, ({ text }) => text === "Hello Anna");
      const undecided = await draft("never read", { ttl: 1 });
      const { error } = await stage.status(undecided, "failed");
      assert.equal(error.code, "expired");
      assert.ok(!(await texts()).includes("never read"));
    });
  }));
