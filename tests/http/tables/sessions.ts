/** Requests of `/v1/sessions` and what they answer. */
import { ASSERTION } from "../../support/api_calls.ts";
import { type Case, nobodys, problem, wrong } from "../../support/api_table.ts";

const NOBODY = nobodys("ses");
const SESSION =
  /\{"_id":"ses_[0-9a-z]{26}","name":"[^"]+","status":"\w+","phone":("\d+"|null),"lastUsed":"\d{4}-[^"]+Z","createdAt":"\d{4}-[^"]+Z"/;

export const sessionCases: readonly Case[] = [
  {
    name: "the list holds each session with the fields of the specification",
    ask: () => ["GET", "/v1/sessions"],
    status: 200,
    contains: [/^\{"data":\[\{/, SESSION, '"status":"connected"'],
    lacks: ["accountId", "generation", "pairingCode", '"qr"'],
    headers: { "cache-control": "no-store", "content-type": "application/json" },
  },
  {
    name: "a session is created in an envelope",
    ask: () => ["POST", "/v1/sessions", { json: { name: "Sales 📞" } }],
    status: 201,
    contains: [/^\{"data":\{"_id"/, '"name":"Sales 📞"', '"phone":null'],
    lacks: ["accountId"],
  },
  {
    name: "a session is created for a pairing code",
    ask: () => ["POST", "/v1/sessions", { json: { name: "By code", pairingPhone: "34600111222" } }],
    status: 201,
    contains: ['"name":"By code"'],
  },
  {
    name: "a session needs a name",
    ask: () => ["POST", "/v1/sessions", { json: {} }],
    status: 400,
    contains: wrong("name", /is required/),
  },
  {
    name: "a field that no session has is named",
    ask: () => ["POST", "/v1/sessions", { json: { name: "x", phone: "34600111222" } }],
    status: 400,
    contains: wrong("phone", /not a known field/),
  },
  {
    name: "a name of blanks is none",
    ask: () => ["POST", "/v1/sessions", { json: { name: "   " } }],
    status: 400,
    contains: wrong("name"),
  },
  ...["\u001b[2J", "two\nlines", "half of a pair \ud800"].map((name) => ({
    name: `a name has no ${JSON.stringify(name)}`,
    ask: () => ["POST", "/v1/sessions", { json: { name } }],
    status: 400,
    contains: wrong("name", /one line/),
  } satisfies Case)),
  ...["\u001b[2J", "half of a pair \ud800"].map((name) => ({
    name: `a key's name has no ${JSON.stringify(name)}`,
    ask: () => ["POST", "/v1/account/keys", { json: { name, scopes: ["read"] } }],
    status: 400,
    contains: wrong("name", /one line/),
  } satisfies Case)),
  {
    name: "a name has at most 100 characters",
    ask: () => ["POST", "/v1/sessions", { json: { name: "x".repeat(101) } }],
    status: 400,
    contains: wrong("name"),
  },
  {
    name: "a pairing phone without a country code is refused with advice",
    ask: () => ["POST", "/v1/sessions", { json: { name: "x", pairingPhone: "0600 111 222" } }],
    status: 400,
    contains: wrong("pairingPhone", /country code/),
  },
  {
    name: "the QR endpoint answers bare",
    ask: ({ session }) => ["GET", `/v1/sessions/${session}/qr`],
    status: 200,
    contains: [/^\{"status":"connected","qr":null,"pairingCode":null\}$/],
  },
  {
    name: "the status is the session",
    ask: ({ session }) => ["GET", `/v1/sessions/${session}/status`],
    status: 200,
    contains: [/^\{"data":\{"_id"/, SESSION, '"status":"connected"'],
  },
  {
    name: "a number is checked",
    ask: ({ session }) => ["POST", `/v1/sessions/${session}/check-number`, { json: { number: "34600111222" } }],
    status: 200,
    contains: [/^\{"data":\{"exists":(true|false),"jid":"34600111222@s\.whatsapp\.net"\}\}$/],
  },
  {
    name: "a number to check has digits only",
    ask: ({ session }) => ["POST", `/v1/sessions/${session}/check-number`, { json: { number: "600-111" } }],
    status: 400,
    contains: wrong("number"),
  },
  {
    name: "a number to check is required",
    ask: ({ session }) => ["POST", `/v1/sessions/${session}/check-number`, { json: {} }],
    status: 400,
    contains: wrong("number", /is required/),
  },
  {
    name: "a check takes a number and nothing else",
    ask: ({ session }) => ["POST", `/v1/sessions/${session}/check-number`, { json: { number: "34600111222", to: 1 } }],
    status: 400,
    contains: wrong("to"),
  },
  {
    name: "a session gets a name, and a way out that is shown without its login",
    ask: (
      { session },
    ) => ["PATCH", `/v1/sessions/${session}`, { json: { name: "Desk", proxy: "socks5://u:hunter2@203.0.114.7:1080" } }],
    status: 200,
    contains: ['"name":"Desk"', '"proxy":"socks5://203.0.114.7:1080"'],
    lacks: ["hunter2"],
  },
  {
    name: "a way out is a proxy",
    ask: ({ session }) => ["PATCH", `/v1/sessions/${session}`, { json: { proxy: "ftp://127.0.0.1:21" } }],
    status: 400,
    contains: wrong("proxy"),
  },
  {
    name: "a session goes straight again",
    ask: ({ session }) => ["PATCH", `/v1/sessions/${session}`, { json: { proxy: null } }],
    status: 200,
    contains: ['"proxy":null'],
  },
  {
    name: "a session says how it is",
    ask: ({ session }) => ["GET", `/v1/sessions/${session}/health`],
    status: 200,
    contains: [
      '"connectedSince":"',
      '"queue":{"waiting":0,"oldestSeconds":0,"waitsFor":null}',
      '"restriction":null',
      '"newChats":null',
    ],
  },
  {
    name: "no passkey is asked for as a rule",
    ask: ({ session }) => ["GET", `/v1/sessions/${session}/passkey`],
    status: 404,
    contains: problem("not_found"),
  },
  {
    name: "a signature that nobody asked for is refused",
    ask: ({ session }) => ["POST", `/v1/sessions/${session}/passkey`, { json: { assertion: ASSERTION } }],
    status: 409,
    contains: problem("passkey_not_requested"),
  },
  {
    name: "an assertion that no browser makes is none",
    ask: (
      { session },
    ) => ["POST", `/v1/sessions/${session}/passkey`, { json: { assertion: { ...ASSERTION, id: "?" } } }],
    status: 400,
    contains: wrong("assertion.id"),
  },
  {
    name: "there is no code to confirm",
    ask: ({ session }) => ["POST", `/v1/sessions/${session}/passkey/confirm`],
    status: 409,
    contains: problem("passkey_not_requested"),
  },
  {
    name: "groups are a list",
    ask: ({ session }) => ["GET", `/v1/sessions/${session}/groups`],
    status: 200,
    contains: [/^\{"data":\[/],
  },
  {
    name: "the queue of a session is a list",
    ask: ({ session }) => ["GET", `/v1/sessions/${session}/queue`],
    status: 200,
    contains: [/^\{"data":\[/],
  },
  {
    name: "the queue's limit has bounds",
    ask: ({ session }) => ["GET", `/v1/sessions/${session}/queue?limit=1001`],
    status: 400,
    contains: wrong("limit", /at most 1000/),
  },
  {
    name: "pausing the queue answers with the session, which stays connected",
    ask: ({ session }) => ["POST", `/v1/sessions/${session}/queue/pause`],
    status: 200,
    contains: [/^\{"data":\{"_id"/, '"status":"connected"'],
  },
  {
    name: "so does letting it go on",
    ask: ({ session }) => ["POST", `/v1/sessions/${session}/queue/resume`],
    status: 200,
    contains: [/^\{"data":\{"_id"/, '"status":"connected"'],
  },
  {
    name: "the queue of an unknown session cannot be paused",
    ask: () => ["POST", "/v1/sessions/ses_00000000000000000000000000/queue/pause"],
    status: 404,
    contains: problem("not_found"),
  },
  {
    name: "disconnecting pauses the session and answers with it",
    ask: ({ session }) => ["POST", `/v1/sessions/${session}/disconnect`],
    status: 200,
    contains: [/^\{"data":\{"_id"/, '"status":"disconnected"'],
  },
  {
    name: "groups of a session that is not connected are a conflict",
    ask: ({ session }) => ["GET", `/v1/sessions/${session}/groups`],
    status: 409,
    contains: problem("session_not_connected"),
  },
  {
    name: "a number is never guessed while the session is not connected",
    ask: ({ session }) => ["POST", `/v1/sessions/${session}/check-number`, { json: { number: "34600111222" } }],
    status: 409,
    contains: problem("session_not_connected"),
    lacks: ["exists"],
  },
  {
    name: "a send to a paused session is accepted and waits",
    ask: (
      { session },
    ) => ["POST", "/v1/messages/send/text", { json: { sessionId: session, to: "34600111222", text: "a" } }],
    status: 202,
    contains: ['"status":"queued"'],
  },
  {
    name: "what waits shows its position, and no time while nobody knows it",
    ask: ({ session }) => ["GET", `/v1/sessions/${session}/queue`],
    status: 200,
    contains: ['"position":1', '"estimatedDeparture":null', '"to":"34600111222"'],
    lacks: ['"text"'],
  },
  ...([
    ["POST", "/logout", { force: true }, wrong("force", /is not a known field/)],
    ["DELETE", "", { keepLink: true }, wrong("keepLink", /is not a known field/)],
    ["POST", "/reconnect", [], wrong("body")],
  ] as const).map(([method, path, json, contains]): Case => ({
    name: `${method}${path} says nothing in a body, and does nothing when one does: ${JSON.stringify(json)}`,
    ask: ({ session }) => [method, `/v1/sessions/${session}${path}`, { json }],
    status: 400,
    contains,
  })),
  ...[{}, null].map((json): Case => ({
    name: `a body that says nothing is none: ${JSON.stringify(json)}`,
    ask: ({ session }) => ["POST", `/v1/sessions/${session}/disconnect`, { json }],
    status: 200,
    contains: ['"status":"disconnected"'],
  })),
  {
    name: "a body that is no JSON does nothing either",
    ask: ({ session }) => ["POST", `/v1/sessions/${session}/logout`, { body: "force=true" }],
    status: 400,
    contains: problem("malformed_json"),
  },
  {
    name: "reconnecting brings it back without a QR",
    ask: ({ session }) => ["POST", `/v1/sessions/${session}/reconnect`],
    status: 200,
    contains: ['"status":"connected"'],
  },
  ...["qr", "status", "groups", "queue"].map((path): Case => ({
    name: `${path} of a session that nobody has is 404`,
    ask: () => ["GET", `/v1/sessions/${NOBODY}/${path}`],
    status: 404,
    contains: problem("not_found"),
  })),
  ...["reconnect", "disconnect", "logout"].map((path): Case => ({
    name: `${path} of a session that nobody has is 404`,
    ask: () => ["POST", `/v1/sessions/${NOBODY}/${path}`],
    status: 404,
    contains: problem("not_found"),
  })),
  {
    name: "a text that is no id is 404",
    ask: () => ["GET", "/v1/sessions/..%2f..%2fetc/qr"],
    status: 404,
    contains: problem("not_found"),
  },
  {
    name: "deleting a session that nobody has is 404",
    ask: () => ["DELETE", `/v1/sessions/${NOBODY}`],
    status: 404,
    contains: problem("not_found"),
  },
  {
    name: "logging out unlinks the session",
    ask: ({ session }) => ["POST", `/v1/sessions/${session}/logout`],
    status: 200,
    contains: ['"status":"logged_out"'],
  },
  {
    name: "a send to a session that is logged out is a conflict",
    ask: (
      { session },
    ) => ["POST", "/v1/messages/send/text", { json: { sessionId: session, to: "34600111222", text: "a" } }],
    status: 409,
    contains: problem("session_not_connected"),
  },
  {
    name: "a send without a session is a conflict when none is connected",
    ask: () => ["POST", "/v1/messages/send/text", { json: { to: "34600111222", text: "a" } }],
    status: 409,
    contains: problem("no_connected_session"),
  },
  {
    name: "deleting answers with the session after it: no longer linked",
    ask: ({ session }) => ["DELETE", `/v1/sessions/${session}`],
    status: 200,
    contains: [/^\{"data":\{"_id"/, '"status":"logged_out"'],
    lacks: ['"status":"connected"'],
    headers: { "content-type": "application/json" },
  },
  {
    name: "a deleted session is gone",
    ask: ({ session }) => ["GET", `/v1/sessions/${session}/status`],
    status: 404,
    contains: problem("not_found"),
  },
];
