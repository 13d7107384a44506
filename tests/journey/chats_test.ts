/** Chats over the API: what was said on either side, what is unread, and that one person is one chat. */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import { accepted, post } from "../support/api_calls.ts";
import { openStage, withStage } from "../support/stage.ts";
import { until } from "../support/until.ts";

const LINE = "4915560000001";
const CUSTOMER = "4917560000001";
const OTHER = "4917560000002";

Deno.test("a chat shows both sides, what became of each message, and what is unread", (t) =>
  withStage(openStage, async (stage) => {
    await stage.addPhone(CUSTOMER, "Ana");
    await stage.addPhone(OTHER, "Ben");
    const line = await stage.linkLine(LINE);
    const base = `/sessions/${line.sessionId}`;
    const chat = async (of = CUSTOMER): Promise<Json> => (await stage.api.call("GET", `${base}/chats/${of}`)).data;
    const messages = async (query = "", of = CUSTOMER): Promise<{ data: Json[]; next: string | null }> =>
      await stage.api.call("GET", `${base}/chats/${of}/messages${query}`);
    const say = async (text: string, more: Json = {}, from = CUSTOMER): Promise<string> => {
      const { id } = await stage.control.call("POST", `/phones/${from}/messages`, { to: LINE, text, ...more });
      await stage.event(line, ({ data }) => data.messageId === id);
      return id;
    };
    let hello = "";

    await t.step("what a customer writes is unread until it is answered", async () => {
      hello = await say("hello");
      await say("anybody there?");
      assert.deepEqual(
        [(await chat()).unread, (await chat()).name, (await chat()).lastMessage.text],
        [2, "Ana", "anybody there?"],
      );
      const { data: unread } = await stage.api.call("GET", `${base}/chats?unread=true`);
      assert.deepEqual(unread.map((one: Json) => one.chat), [CUSTOMER]);
      const { data: wrote } = await stage.api.call("GET", `${base}/chats?wrote=true`);
      assert.deepEqual(wrote.map((one: Json) => one.chat), [CUSTOMER]);
      const sent = await stage.sendText(line, CUSTOMER, "yes");
      await stage.status(sent, "sent");
      assert.equal((await chat()).unread, 0);
      const { data } = await messages();
      assert.deepEqual(data.map(({ direction, text }) => [direction, text]), [
        ["out", "yes"],
        ["in", "anybody there?"],
        ["in", "hello"],
      ]);
      assert.deepEqual(
        [data[0]!.messageId, data[0]!.author, data[2]!.author, data[2]!.messageId],
        [sent, null, { number: CUSTOMER, name: "Ana" }, hello],
      );
    });

    await t.step("one person is one chat, also without the number", async () => {
      await say("from the hidden one", { hideNumber: true });
      const { data } = await stage.api.call("GET", `${base}/chats`);
      assert.equal(data.length, 1);
      assert.equal((await messages()).data.length, 4);
      assert.match((await chat()).lid, /@lid$/);
      assert.equal((await messages("", (await chat()).lid)).data.length, 4);
    });

    await t.step("reactions, edits and deletions show at their messages", async () => {
      await accepted(post(stage, "/messages/send/reaction", { json: { messageId: hello, emoji: "👍" } }));
      await until(async () => (await messages()).data.at(-1)!.reactions.length > 0);
      const [own] = (await messages()).data.filter(({ messageId }) => messageId.startsWith("msg_"));
      const arrived = await stage.arrival(CUSTOMER, ({ text }) => text === "yes");
      await stage.control.call("POST", `/phones/${CUSTOMER}/react`, { id: arrived.id, emoji: "❤️" });
      await until(async () =>
        (await messages()).data.find(({ messageId }) => messageId === own!.messageId)!.reactions.length > 0
      );
      assert.deepEqual((await messages()).data.map(({ reactions }) => reactions), [
        [],
        [{ number: CUSTOMER, emoji: "❤️" }],
        [],
        [{ number: LINE, emoji: "👍" }],
      ]);
      await stage.control.call("POST", `/phones/${CUSTOMER}/edit`, { id: hello, text: "hello!" });
      await until(async () => (await messages()).data.at(-1)!.text === "hello!");
      await stage.control.call("POST", `/phones/${CUSTOMER}/revoke`, { id: hello });
      await until(async () => (await messages()).data.at(-1)!.deletedAt !== null);
      assert.equal((await messages()).data.at(-1)!.text, null);
    });

    await t.step("pages neither skip nor repeat while messages arrive", async () => {
      const whole = (await messages("?limit=100")).data.map(({ messageId }) => messageId);
      const paged: string[] = [];
      let query = "?limit=1";
      for (let i = 0; i < whole.length; i++) {
        const { data, next } = await messages(query);
        paged.push(...data.map(({ messageId }) => messageId));
        if (i < 2) await say(`between ${i}`);
        query = `?limit=1&before=${next}`;
      }
      assert.deepEqual(paged, whole);
      const newer = (await messages(`?after=${whole[0]}`)).data.map(({ text }) => text);
      assert.deepEqual(newer, ["between 1", "between 0"]);
      const older = (await messages(`?before=${whole[1]}`)).data.map(({ messageId }) => messageId);
      assert.deepEqual(older, whole.slice(2));
    });

    await t.step("reading a chat makes it read", async () => {
      assert.ok((await chat()).unread > 0);
      await stage.api.call("POST", `${base}/chats/${CUSTOMER}/read`);
      assert.equal((await chat()).unread, 0);
    });

    await t.step("reading on the owner's phone makes read what was there, and not what came later", async () => {
      await say("one");
      const seen = await say("two");
      await say("three");
      assert.equal((await chat()).unread, 3);
      await stage.arrival(LINE, ({ id }) => id === seen);
      await stage.control.call("POST", `/phones/${LINE}/read`, { id: seen });
      await until(async () => (await chat()).unread === 1);
      await stage.api.call("POST", `${base}/chats/${CUSTOMER}/read`, {
        messageId: (await messages()).data[0]!.messageId,
      });
      assert.equal((await chat()).unread, 0);
    });

    await t.step("the list is by last activity, and is searched by name and number", async () => {
      await say("I am Ben", {}, OTHER);
      const list = async (query: string) =>
        (await stage.api.call("GET", `${base}/chats${query}`)).data.map((one: Json) => one.name);
      assert.deepEqual(await list(""), ["Ben", "Ana"]);
      assert.deepEqual(await list("?q=an"), ["Ana"]);
      assert.deepEqual(await list(`?q=${OTHER.slice(-4)}`), ["Ben"]);
      const first = await stage.api.call("GET", `${base}/chats?limit=1`);
      assert.deepEqual(await list(`?limit=1&after=${first.next}`), ["Ana"]);
      const { data } = await stage.api.call("GET", `${base}/contacts`);
      assert.deepEqual(data.map(({ number, name }: Json) => [number, name]), [[CUSTOMER, "Ana"], [OTHER, "Ben"]]);
    });

    await t.step("a group is a chat with its name, and tells who wrote", async () => {
      const { id: gid } = await stage.control.call("POST", "/groups", {
        subject: "Family",
        participants: [CUSTOMER, LINE],
      });
      const { id } = await stage.control.call("POST", `/phones/${CUSTOMER}/messages`, { to: gid, text: "all here?" });
      await stage.event(line, ({ data }) => data.messageId === id);
      const { name, isGroup, number, lastMessage } = await chat(gid);
      assert.deepEqual([name, isGroup, number, lastMessage.author], ["Family", true, null, {
        number: CUSTOMER,
        name: "Ana",
      }]);
      const sent = await stage.sendText(line, gid, "yes");
      await stage.status(sent, "sent");
      assert.deepEqual([(await chat(gid)).unread, (await messages("", gid)).data.length], [0, 2]);
    });

    await t.step("an erased person leaves no chat", async () => {
      await stage.api.call("DELETE", `/data/${OTHER}`);
      await until(async () => (await stage.request("GET", `${base}/chats/${OTHER}`)).status === 404);
      assert.deepEqual((await stage.api.call("GET", `${base}/chats`)).data.map((one: Json) => one.name), [
        "Family",
        "Ana",
      ]);
    });

    await t.step("what is not there is refused", async () => {
      assert.equal((await stage.request("GET", `${base}/chats/4917560000009`)).status, 404);
      assert.equal((await stage.request("GET", `${base}/chats?after=nothing`)).status, 400);
      assert.equal((await stage.request("GET", `${base}/chats/${CUSTOMER}/messages?before=nothing`)).status, 400);
    });
  }));
