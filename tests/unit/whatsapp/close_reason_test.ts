/** Close codes, as the network uses them. */
import assert from "node:assert/strict";
import { reasonOf } from "../../../src/whatsapp/baileys/close_reason.ts";

/** An error as the library ends with. */
function ended(message: string, statusCode: number): Error {
  return Object.assign(new Error(message), { output: { statusCode } });
}

const FROM_THE_NETWORK: [code: number, kind: string][] = [
  [515, "restart"],
  [440, "replaced"],
  [401, "logged_out"],
  [403, "logged_out"],
  [408, "unavailable"],
  [428, "unavailable"],
  [500, "unavailable"],
  [503, "unavailable"],
  [599, "unavailable"],
];

for (const [code, kind] of FROM_THE_NETWORK) {
  Deno.test(`code ${code} of the network is ${kind}`, () => {
    for (const message of ["Stream Errored (conflict)", "Connection Failure"]) {
      const reason = reasonOf(ended(message, code));
      assert.equal(reason.kind, kind);
      assert.equal(reason.code, code);
    }
  });
}

Deno.test("codes that the library gives to a dropped or silent socket are lost, and no log-out", () => {
  for (
    const [message, code] of [["Connection Terminated", 428], ["Connection was lost", 408], [
      "WebSocket Error (401)",
      401,
    ]] as const
  ) {
    assert.deepEqual({ ...reasonOf(ended(message, code)), detail: "" }, { kind: "lost", code: null, detail: "" });
  }
  assert.equal(reasonOf(undefined).kind, "lost");
});

Deno.test("a network that cannot be reached is no lost connection: the reason says what the system said", () => {
  for (
    const [message, cause] of [
      ["WebSocket Error (connect ECONNREFUSED 127.0.0.1:1)", "ECONNREFUSED"],
      ["WebSocket Error (getaddrinfo ENOTFOUND web.whatsapp.com)", "ENOTFOUND"],
    ] as const
  ) {
    const detail = `WhatsApp cannot be reached (${cause}).`;
    assert.deepEqual(reasonOf(ended(message, 408)), { kind: "lost", code: null, detail });
  }
});

Deno.test("a ban for a while is tried again at its end, and after an hour at the soonest", () => {
  const banned = (data: unknown) => reasonOf(Object.assign(ended("Connection Failure", 402), { data })).retryAfterMs;
  assert.equal(banned({ reason: "402", expire: "86400" }), 86_400_000);
  for (const data of [undefined, null, {}, { expire: "60" }, { expire: "soon" }]) assert.equal(banned(data), 3_600_000);
});

Deno.test("a removal that comes without a code, which the library takes for another client, is one", () => {
  const data = { tag: "conflict", attrs: { type: "device_removed" } };
  const removed = reasonOf(Object.assign(ended("Stream Errored (conflict)", 440), { data }));
  assert.equal(removed.kind, "logged_out");
  const replaced = reasonOf(Object.assign(ended("Stream Errored (conflict)", 440), { data: { ...data, attrs: {} } }));
  assert.equal(replaced.kind, "replaced");
});
