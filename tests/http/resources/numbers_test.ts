/** Every place that takes a number, and every way to write one: each way does what the digits do, or is refused. */
import assert from "node:assert/strict";
import { type ApiWorld, type CallOptions, withApi } from "../../support/api_world.ts";

const DIGITS = "447700900123";
const SAME = [
  "+447700900123",
  "00447700900123",
  "+44 7700 900-123",
  "+44 (0)7700/900.123",
  "(+44) 7700 900123",
  "\u202a+44 7700 900123\u202c",
  "+44\u00a07700\u00a0900\u00a0123",
];
const NATIONAL = ["07700900123", "07700 900-123", "(07700) 900123"];
const REFUSED = ["07700900123", "+07700900123", "1212555", "999123456789", "34600111222333", "Ana", "44+7700900123"];

type Request = [method: string, path: string, options: CallOptions];
const json = (method: string, path: string, body: unknown): Request => [method, path, { json: body }];
const PDF = btoa("%PDF-1.7 an invoice");

function form(to: string): CallOptions {
  const body = new FormData();
  body.append("to", to);
  body.append("file", new File(["a"], "a.txt"));
  return { body };
}

const PLACES: Record<string, (number: string, session: string) => Request> = {
  "a text's recipient": (to) => json("POST", "/v1/messages/send/text", { to, text: "hi" }),
  "a form's recipient": (to) => ["POST", "/v1/messages/send/file", form(to)],
  "a document's recipient": (to) => json("POST", "/v1/messages/send/document", { to, file: PDF, filename: "a.pdf" }),
  "a PDF's number": (number) =>
    json("POST", "/v1/message/send/pdf", { number, file: PDF, filename: "a.pdf", message: "" }),
  "an item of a bulk": (to, sessionId) =>
    json("POST", "/v1/messages/send/bulk", { sessionId, messages: [{ to, text: "hi" }] }),
  "a location's recipient": (to) => json("POST", "/v1/messages/send/location", { to, latitude: 1, longitude: 2 }),
  "a mention": (number) => json("POST", "/v1/messages/send/text", { to: DIGITS, text: "hi", mentions: [number] }),
  "a contact card's phone": (phone) =>
    json("POST", "/v1/messages/send/contact", { to: DIGITS, contacts: [{ name: "Ana", phone }] }),
  "the audience of a status": (number) => json("POST", "/v1/messages/send/status", { text: "hi", audience: [number] }),
  "the number to check": (number, id) => json("POST", `/v1/sessions/${id}/check-number`, { number }),
  "a contact": (number, id) => ["GET", `/v1/sessions/${id}/contacts/${encodeURIComponent(number)}`, {}],
  "a contact to block": (number, id) => ["PUT", `/v1/sessions/${id}/contacts/${encodeURIComponent(number)}/block`, {}],
  "a chat": (number, id) =>
    json("POST", `/v1/sessions/${id}/chats/${encodeURIComponent(number)}/presence`, { state: "typing" }),
  "a participant": (number, id) => json("POST", `/v1/sessions/${id}/groups`, { name: "G", participants: [number] }),
  "the phone to link by code": (pairingPhone) => json("POST", "/v1/sessions", { name: "x", pairingPhone }),
  "an opt-out": (number) => ["PUT", `/v1/optouts/${encodeURIComponent(number)}`, {}],
  "a filter of the history": (number) => ["GET", `/v1/messages/history?recipient=${encodeURIComponent(number)}`, {}],
  "the number to erase": (number) => ["DELETE", `/v1/data/${encodeURIComponent(number)}`, {}],
};

/** The answer in an account of its own, without what is new in each: ids and times. */
async function answer(world: ApiWorld, place: string, number: string): Promise<{ status: number; body: string }> {
  const session = (await world.services.lines.list(world.account.id))[0]!.id;
  const response = await world.runtime.clock.during(world.call(...PLACES[place]!(number, session)));
  const text = (await response.text()).replaceAll(/(\w{3})_\w{26}/g, "$1_").replaceAll(
    /"[\d-]+T[\d:.]+Z"|\d+@g\.us/g,
    "",
  );
  return { status: response.status, body: text };
}

async function withSession(work: (world: ApiWorld) => Promise<void>): Promise<void> {
  await withApi(async (world) => {
    await world.linkedSession();
    await work(world);
  });
}

for (const place of Object.keys(PLACES)) {
  Deno.test(`${place} is read however it is written`, () =>
    withSession(async (world) => {
      const expected = await answer(world, place, DIGITS);
      assert.ok(expected.status < 300, JSON.stringify(expected));
      for (const number of SAME) assert.deepEqual(await answer(world, place, number), expected, number);
      await world.call("PATCH", "/v1/account", { json: { country: "GB" } });
      for (const number of NATIONAL) assert.deepEqual(await answer(world, place, number), expected, number);
    }));

  Deno.test(`${place} that cannot be is refused, and costs nothing`, () =>
    withSession(async (world) => {
      for (const number of REFUSED) {
        const { status, body } = await answer(world, place, number);
        const inPath = PLACES[place]!(number, "ses_1")[1].includes(encodeURIComponent(number)) &&
          !place.includes("filter");
        assert.equal(status, inPath ? 404 : 400, `${number}: ${body}`);
        assert.match(body, /country code|numbering plan/, number);
      }
      const { data } = await (await world.call("GET", "/v1/account")).json();
      assert.equal(data.used.daily, 0);
    }));
}

Deno.test("records show digits, however the recipient was written", () =>
  withSession(async (world) => {
    await answer(world, "a text's recipient", "+44 (0)7700 900 123");
    await answer(world, "a text's recipient", "447700900123@c.us");
    const { data } = await (await world.call("GET", "/v1/messages/history")).json();
    assert.deepEqual(data.map(({ to }: { to: string }) => to), ["447700900123@s.whatsapp.net", DIGITS]);
  }));

Deno.test("each field of the account changes alone, and a country that there is not is refused", () =>
  withApi(async (world) => {
    const edit = async (json: unknown) => await (await world.call("PATCH", "/v1/account", { json })).json();
    assert.deepEqual((await edit({ country: "de" })).data.country, "DE");
    assert.deepEqual((await edit({ optOutWords: ["STOP"] })).data.country, "DE");
    const { data } = await edit({ country: null });
    assert.deepEqual([data.country, data.optOutWords], [null, ["STOP"]]);
    assert.equal((await edit({ country: "XX" })).errors[0].path, "country");
    assert.equal((await edit({ country: 49 })).status, 400);
  }));

Deno.test("a JSON integer is no number", () =>
  withSession(async (world) => {
    const response = await world.call("POST", "/v1/messages/send/text", { json: { to: 447700900123, text: "hi" } });
    assert.equal(response.status, 400);
  }));
