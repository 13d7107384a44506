/** Messages both ways through the bridge to Chatwoot, while all three are killed in turn. */
import assert from "node:assert/strict";
import { openBridge } from "../../../tests/support/chatwoot_bridge.ts";
import type { Stage } from "../../../tests/support/stage.ts";
import { until } from "../../../tests/support/until.ts";

const LINE = "4915550100001";
const CUSTOMERS = ["447700900123", "447700900124", "447700900125"];

/** Throws unless each message arrives once, in order, on both sides; resolves to how many kills there were. */
export async function bothWays(stage: Stage, { messages }: { messages: number }): Promise<{ kills: number }> {
  const line = await stage.linkLine(LINE);
  for (const number of CUSTOMERS) await stage.addPhone(number);
  await using bridge = await openBridge(stage, line);
  const { chatwoot } = bridge;
  const conversationOf = (number: string) =>
    chatwoot.conversations.find(({ contact_id }) =>
      chatwoot.contacts.find(({ id }) => id === contact_id).phone_number === `+${number}`
    );
  const customer = (i: number) => CUSTOMERS[i % CUSTOMERS.length]!;
  const say = async (i: number) =>
    void await stage.control.call("POST", `/phones/${customer(i)}/messages`, { to: LINE, text: `question ${i}` });
  for (const i of CUSTOMERS.keys()) await say(i);
  await until(() => CUSTOMERS.every(conversationOf), "a conversation for each customer");

  chatwoot.losesAnswers = 7;
  let kills = 0;
  const victims = [
    () => bridge.restart(),
    async () => (await chatwoot.kill(), chatwoot.start()),
    async () => (await stage.gateway.kill(), await stage.gateway.start()),
  ];
  const killEvery = Math.ceil(messages / 6);
  // The last ones after all kills: what came twice would have come before them.
  const all = messages + CUSTOMERS.length;
  for (let i = 0; i < all; i++) {
    if (i >= CUSTOMERS.length) await say(i);
    await chatwoot.agentSays(conversationOf(customer(i))!.id, `answer ${i}`);
    if (i < messages && i % killEvery === killEvery - 1) await victims[kills++ % victims.length]!();
  }
  for (const [n, number] of CUSTOMERS.entries()) {
    const expected = (word: string) =>
      Array.from({ length: all }, (_, i) => i).filter((i) => customer(i) === customer(n)).map((i) => `${word} ${i}`);
    const questions = () =>
      chatwoot.of(conversationOf(number)!.id).filter(({ message_type }) => message_type === 0).map(({ content }) =>
        content
      );
    const answers = async () => (await stage.inbox(number)).map(({ text }) => text);
    await until(() => questions().length >= expected("question").length, `the questions of ${number} in Chatwoot`);
    await until(async () => (await answers()).length >= expected("answer").length, `the answers to ${number}`);
    assert.deepEqual(questions(), expected("question"));
    assert.deepEqual(await answers(), expected("answer"));
  }
  assert.equal(chatwoot.conversations.length, CUSTOMERS.length);
  assert.deepEqual(chatwoot.violations, []);
  return { kills };
}
