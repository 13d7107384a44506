/** The feed and its stream: what a client that was away reads afterwards, whatever the gateway went through. */
import assert from "node:assert/strict";
import type { Json } from "../../src/cli/client.ts";
import { onStage, type Stage } from "../support/stage.ts";
import { until } from "../support/until.ts";

const FIRST = "4915200000007";
const SECOND = "4915200000008";
const ANA = "4917000000001";

async function writes({ control }: Stage, to: string, text: string): Promise<string> {
  return (await control.call("POST", `/phones/${ANA}/messages`, { to, text })).id;
}

/** Reads page after page until there is nothing after the cursor. */
async function read({ api }: Stage, query: string, limit: number): Promise<Json[]> {
  const events: Json[] = [];
  for (let after = "";;) {
    const { data, next, gap } = await api.call("GET", `/events?limit=${limit}${query}${after}`);
    assert.ok(data.length <= limit);
    assert.equal(gap, false);
    events.push(...data);
    if (next === null) return events;
    after = `&after=${next}`;
  }
}

onStage("the feed is read by cursor, by type and by session, and each event is there once", async (stage) => {
  await stage.addPhone(ANA);
  const first = await stage.linkLine(FIRST);
  const second = await stage.linkLine(SECOND);
  const wanted: string[] = [];
  for (let i = 0; i < 12; i++) wanted.push(await writes(stage, i % 3 === 0 ? SECOND : FIRST, `fed ${i}`));
  const messageId = await stage.sendText(first, ANA, "one that goes out");
  const received = (events: Json[]) => events.filter(({ event }) => event === "message.received");
  const all = await until(async () => {
    const events = await read(stage, "", 7);
    const delivered = events.some(({ data }) => data.messageId === messageId && data.status === "delivered");
    return delivered && received(events).length === 12 ? events : null;
  }, "all events");

  const ids = all.map(({ id }) => id);
  assert.deepEqual(ids, [...new Set(ids)].sort(), "ids sort in the order of the log, each once");
  for (const { id, createdAt, sessionName, ...rest } of all) {
    assert.match(id, /^evt_/);
    assert.equal(new Date(createdAt).toISOString(), createdAt);
    assert.match(sessionName, /^line /);
    assert.deepEqual(Object.keys(rest).sort(), ["data", "event", "sessionId"]);
  }
  // Two chats on two lines: each in its order.
  for (
    const [{ sessionId }, mine] of [[first, (i: number) => i % 3 !== 0], [second, (i: number) => i % 3 === 0]] as const
  ) {
    const ofSession = await read(stage, `&sessionId=${sessionId}`, 3);
    assert.deepEqual(ofSession, all.filter((event) => event.sessionId === sessionId));
    assert.deepEqual(received(ofSession).map(({ data }) => data.messageId), wanted.filter((_, i) => mine(i)));
  }
  const types = "message.sent,message.status";
  assert.deepEqual(
    await read(stage, `&types=${types}`, 1),
    all.filter(({ event }) => types.split(",").includes(event)),
  );
  const refused = await stage.request("GET", "/events?types=message.nonsense");
  assert.equal(refused.status, 400);
  await refused.body?.cancel();
});

onStage(
  "a stream that breaks goes on after the last event that was seen: nothing is lost, nothing comes twice",
  async (stage) => {
    await stage.addPhone(ANA);
    const line = await stage.linkLine(FIRST);
    const seen: Json[] = [];
    const wanted: string[] = [];
    for (let life = 1; life <= 3; life++) {
      const stream = await openStream(stage, seen.at(-1)?.id ?? null);
      for (let i = 0; i < 10; i++) wanted.push(await writes(stage, FIRST, `in life ${life}, ${i}`));
      // The client is killed in the middle of what comes, or the gateway is.
      await stream.read(seen, (event) => event.data.messageId === wanted.at(-4));
      if (life === 2) await stream.leave();
      await stage.gateway.kill();
      wanted.push(await writes(stage, FIRST, `between life ${life} and the next`));
      await stream.leave();
      await stage.gateway.start();
      await stage.sessionStatus(line, "connected");
    }
    const stream = await openStream(stage, seen.at(-1)!.id);
    await stream.read(seen, (event) => event.data.messageId === wanted.at(-1));
    await stream.leave();
    assert.deepEqual(seen.map(({ data }) => data.messageId), wanted);
    assert.deepEqual(seen, await read(stage, "&types=message.received", 100), "as the feed shows it");
  },
);

/** The stream of received messages, after an event. */
async function openStream(stage: Stage, lastEventId: string | null) {
  const ended = new AbortController();
  const response = await stage.request("GET", "/events/stream?types=message.received", {
    headers: lastEventId === null ? {} : { "last-event-id": lastEventId },
    signal: ended.signal,
  });
  assert.equal(response.status, 200);
  assert.match(response.headers.get("content-type")!, /^text\/event-stream/);
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  return {
    /** Takes events, as somebody does who is interrupted right after the one that is the last. */
    async read(seen: Json[], isLast: (event: Json) => boolean): Promise<void> {
      for (;;) {
        const blocks = text.split("\n\n");
        while (blocks.length > 1) {
          const [, id, name, data] = /^id: (.*)\nevent: (.*)\ndata: (.*)$/.exec(blocks.shift()!) ?? [];
          text = blocks.join("\n\n");
          if (!data) continue;
          const event = JSON.parse(data);
          assert.deepEqual([event.id, event.event], [id, name]);
          seen.push(event);
          if (isLast(event)) return;
        }
        const { value, done } = await reader.read();
        assert.equal(done, false, "the stream goes on");
        text += value;
      }
    },
    async leave(): Promise<void> {
      ended.abort();
      await reader.cancel().catch(() => {});
    },
  };
}
