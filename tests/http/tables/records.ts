/** Requests that read what became of messages, and manage webhooks and events, and what they answer. */
import { type Case, nobodys, problem, wrong } from "../../support/api_table.ts";

const NO_MESSAGE = nobodys("msg");
const OUT = "34600999111";
const NO_WEBHOOK = nobodys("whk");
/** Later than any event. */
const LATER = "evt_99999999999999999999";

export const messageCases: readonly Case[] = [
  ...(["PATCH", "POST"] as const).flatMap((method): Case[] => {
    const path = (id: string) => method === "PATCH" ? `/v1/messages/${id}` : `/v1/messages/${id}/revoke`;
    const json = method === "PATCH" ? { text: "hi" } : undefined;
    return ["msg", "ses"].map((prefix) => ({
      name: `${method} of a message that nobody has (${prefix}) is 404`,
      ask: () => [method, path(nobodys(prefix as "msg")), json ? { json } : {}],
      status: 404,
      contains: problem("not_found"),
    }));
  }),
  ...[{ text: "" }, { text: 5 }, {}].map((json): Case => ({
    name: `an edit with ${JSON.stringify(json)} is refused`,
    ask: () => ["PATCH", `/v1/messages/${nobodys("msg")}`, { json }],
    status: 400,
    contains: wrong("text"),
  })),
  {
    name: "an edit changes nothing that it does not know",
    ask: () => ["PATCH", `/v1/messages/${nobodys("msg")}`, { json: { text: "hi", caption: "x" } }],
    status: 400,
    contains: wrong("caption", /not a known field/),
  },
  {
    name: "a message that nobody has is 404",
    ask: () => ["GET", `/v1/messages/${nobodys("msg")}`],
    status: 404,
    contains: problem("not_found"),
  },
  {
    name: "history has data and pagination, with the first page of 20 by default",
    ask: () => ["GET", "/v1/messages/history"],
    status: 200,
    contains: [/^\{"data":\[/, /"pagination":\{"page":1,"limit":20,"total":\d+\}\}$/],
    lacks: ["networkId", "accountId", "fileId"],
  },
  {
    name: "history takes a page, a limit, a status and days",
    ask: () => ["GET", "/v1/messages/history?page=2&limit=100&status=sent&from=2020-01-01&to=2020-12-31"],
    status: 200,
    contains: ['{"data":[],"pagination":{"page":2,"limit":100,"total":0}}'],
  },
  ...[
    `sessionId=${nobodys("ses")}`,
    `bulkId=${nobodys("blk")}`,
    "recipient=4915550000000",
    "type=poll&recipient=4915550000000",
  ].map((
    query,
  ): Case => ({
    name: `history has nothing of ${query}`,
    ask: () => ["GET", `/v1/messages/history?${query}`],
    status: 200,
    contains: ['"data":[]', '"total":0'],
  })),
  {
    name: "days in the wrong order hold nothing",
    ask: () => ["GET", "/v1/messages/history?from=2026-02-01&to=2026-01-01"],
    status: 200,
    contains: ['"data":[]', '"total":0'],
  },
  ...[
    ["limit=0", "limit"],
    ["limit=101", "limit"],
    ["limit=ten", "limit"],
    ["limit=", "limit"],
    ["limit=1e1", "limit"],
    ["page=0", "page"],
    ["page=-1", "page"],
    ["status=delivered", "status"],
    ["from=2026-13-01", "from"],
    ["from=2026-02-30", "from"],
    ["to=yesterday", "to"],
    ["to=2026-01-01T00:00:00Z", "to"],
    ["sessionId=msg_01kf0m3e4v8s2q6w9x1y5z7abc", "sessionId"],
    ["recipient=0600111222", "recipient"],
    ["type=forward", "type"],
    ["bulkId=1", "bulkId"],
  ].map(([query, path]): Case => ({
    name: `history refuses ${query}`,
    ask: () => ["GET", `/v1/messages/history?${query}`],
    status: 400,
    contains: wrong(path!),
  })),
  {
    name: "the status of a message that nobody has is 404",
    ask: () => ["GET", `/v1/messages/${NO_MESSAGE}/status`],
    status: 404,
    contains: problem("not_found"),
  },
  {
    name: "cancelling a message that nobody has is 404",
    ask: () => ["DELETE", `/v1/messages/${NO_MESSAGE}`],
    status: 404,
    contains: problem("not_found"),
  },
  {
    name: "cancelling a bulk that nobody has is 404",
    ask: () => ["DELETE", `/v1/messages/${nobodys("blk")}`],
    status: 404,
    contains: problem("not_found"),
  },
  {
    name: "a page behind the last bulk is empty",
    ask: () => ["GET", "/v1/bulks?page=2&limit=5"],
    status: 200,
    contains: ['"data":[]', '"pagination":{"page":2,"limit":5,'],
  },
  {
    name: "a list of bulks refuses limit=101",
    ask: () => ["GET", "/v1/bulks?limit=101"],
    status: 400,
    contains: wrong("limit"),
  },
  {
    name: "a bulk that nobody has is 404",
    ask: () => ["GET", `/v1/bulks/${nobodys("blk")}`],
    status: 404,
    contains: problem("not_found"),
  },
  {
    name: "cancelling what is left of a bulk that nobody has is 404",
    ask: () => ["DELETE", `/v1/bulks/${nobodys("blk")}`],
    status: 404,
    contains: problem("not_found"),
  },
  {
    name: "a message that nobody has cannot be moved",
    ask: () => ["PATCH", `/v1/messages/${NO_MESSAGE}`, { json: { priority: "high" } }],
    status: 404,
    contains: problem("not_found"),
  },
  {
    name: "a move to nowhere is refused",
    ask: () => ["PATCH", `/v1/messages/${NO_MESSAGE}`, { json: {} }],
    status: 400,
    contains: wrong("text"),
  },
  {
    name: "a move to the past is refused",
    ask: () => ["PATCH", `/v1/messages/${NO_MESSAGE}`, { json: { sendAt: "2001-01-01T00:00:00Z" } }],
    status: 400,
    contains: wrong("sendAt", /past/),
  },
];

export const webhookCases: readonly Case[] = [
  {
    name: "a webhook that is created shows its secret",
    ask: () => ["POST", "/v1/webhooks", {
      json: { url: "https://example.com/hook", events: ["message.sent", "message.sent"] },
    }],
    status: 201,
    contains: [/^\{"data":\{"id":"whk_\w{26}"/, '"events":["message.sent"]', '"active":true', /"secret":"whsec_[^"]+"/],
    lacks: ["accountId"],
  },
  {
    name: "events that are left out are all",
    ask: () => ["POST", "/v1/webhooks", { json: { url: "https://example.com/all", sessionId: null } }],
    status: 201,
    contains: ['"message.sent"', '"message.received"', '"session.qr"', '"sessionId":null'],
  },
  {
    name: "a webhook with headers and a kind of chat shows the names of the headers alone",
    ask: () => ["POST", "/v1/webhooks", {
      json: { url: "https://example.com/n8n", chats: "groups", headers: { Authorization: "Basic aHVudGVyMg==" } },
    }],
    status: 201,
    contains: ['"chats":"groups"', '"headerNames":["authorization"]'],
    lacks: ["aHVudGVyMg"],
  },
  {
    name: "the list never shows a secret",
    ask: () => ["GET", "/v1/webhooks"],
    status: 200,
    contains: [/^\{"data":\[\{"id"/],
    lacks: ["whsec_", '"secret"', "aHVudGVyMg"],
  },
  ...[
    [{ events: [], url: "https://example.com" }, "events"],
    [{ events: ["message.read"], url: "https://example.com" }, "events.0"],
    [{ events: "message.sent", url: "https://example.com" }, "events"],
    [{}, "url"],
    [{ url: "https://example.com", secret: "mine" }, "secret"],
    [{ url: "https://example.com", chats: "people" }, "chats"],
    [{ url: "https://example.com", headers: ["a"] }, "headers"],
    [{ url: "https://example.com", headers: { "a b": "c" } }, "headers.a b"],
    [{ url: "https://example.com", headers: { "x-a": "b\r\nhost: c" } }, "headers.x-a"],
    [{ url: "https://example.com", headers: { Host: "b" } }, "headers.Host"],
    [{ url: "https://example.com", headers: { "Content-Length": "1" } }, "headers.Content-Length"],
    [{ url: "https://example.com", headers: { "X-Webhook-Signature": "1" } }, "headers.X-Webhook-Signature"],
    [{ url: "https://example.com", headers: { "webhook-id": "1" } }, "headers.webhook-id"],
    [{ url: "https://example.com", headers: { "x-a": "1", "X-A": "2" } }, "headers.X-A"],
    [{ url: "https://example.com", headers: { "X-Hub-Signature-256": "1" } }, "headers.X-Hub-Signature-256"],
    [{ url: "https://example.com", format: "meta" }, "format"],
    [{ url: "https://example.com", format: "cloud" }, "verifyToken"],
    [{ url: "https://example.com", verifyToken: "x" }, "verifyToken"],
    [{ url: "https://example.com", format: "cloud", verifyToken: "x", events: ["session.qr"] }, "events"],
    [{ url: "example.com/hook" }, "url"],
    [{ url: "ftp://example.com/hook" }, "url"],
    [{ url: "https://user:password@example.com/hook" }, "url"],
    [{ url: "http://169.254.169.254/latest/meta-data" }, "url"],
    [{ url: "https://[::ffff:10.0.0.1]/" }, "url"],
  ].map(([json, path]): Case => ({
    name: `a webhook of ${JSON.stringify(json)} is refused`,
    ask: () => ["POST", "/v1/webhooks", { json }],
    status: 400,
    contains: wrong(path as string),
    lacks: ["whsec_"],
  })),
  {
    name: "a webhook for a session that nobody has is 404",
    ask: () => ["POST", "/v1/webhooks", { json: { url: "https://example.com/hook", sessionId: nobodys("ses") } }],
    status: 404,
    contains: problem("not_found"),
  },
  ...([
    ["GET", "", undefined],
    ["PUT", "", { active: false }],
    ["DELETE", "", undefined],
    ["GET", "/deliveries", undefined],
    ["POST", `/deliveries/${nobodys("dlv")}/redeliver`, undefined],
    ["POST", "/redeliver", { since: "2026-01-01T00:00:00Z" }],
    ["POST", "/test", undefined],
    ["POST", "/rotate-secret", undefined],
  ] as [string, string, unknown][]).map(([method, path, json]): Case => ({
    name: `${method} ${path || "/"} of a webhook that nobody has is 404`,
    ask: () => [method, `/v1/webhooks/${NO_WEBHOOK}${path}`, { json }],
    status: 404,
    contains: problem("not_found"),
  })),
  {
    name: "redelivery needs a time",
    ask: () => ["POST", `/v1/webhooks/${NO_WEBHOOK}/redeliver`, { json: { since: "yesterday" } }],
    status: 400,
    contains: wrong("since"),
  },
  {
    name: "a change says yes or no",
    ask: () => ["PUT", `/v1/webhooks/${NO_WEBHOOK}`, { json: { active: "no" } }],
    status: 400,
    contains: wrong("active"),
  },
  {
    name: "a change of what no webhook has is refused",
    ask: () => ["PUT", `/v1/webhooks/${NO_WEBHOOK}`, { json: { active: true, sessionId: nobodys("ses") } }],
    status: 400,
    contains: wrong("sessionId", /not a known field/),
  },
  {
    name: "null is as good as left out in a change",
    ask: () => ["PUT", `/v1/webhooks/${NO_WEBHOOK}`, { json: { url: null, events: null, active: null } }],
    status: 404,
    contains: problem("not_found"),
  },
  {
    name: "redelivery takes a time and nothing else",
    ask: () => ["POST", `/v1/webhooks/${NO_WEBHOOK}/redeliver`, { json: { since: "2026-01-01T00:00:00Z", until: 1 } }],
    status: 400,
    contains: wrong("until"),
  },
];

export const eventCases: readonly Case[] = [
  {
    name: "the feed lists events with a cursor",
    ask: () => ["GET", "/v1/events?types=session.connected"],
    status: 200,
    contains: [
      /^\{"data":\[\{"id":"evt_\w+","event":"session\.connected","sessionId":"ses_\w+","sessionName":"[^"]+","createdAt":"[^"]+Z","data":\{"phone":"\d+"\}/,
      /"next":"evt_\w+"/,
      '"gap":false',
    ],
    lacks: ["accountId", "session.qr"],
  },
  {
    name: "the feed takes a limit",
    ask: () => ["GET", "/v1/events?limit=1"],
    status: 200,
    contains: [/^\{"data":\[\{[^[\]]*\}\],"next":/],
  },
  ...[
    ["types=message.read", "types"],
    ["types=message.sent,nothing", "types"],
    ["types=message.sent&types=message.failed", "types"],
    ["after=17", "after"],
    [`after=${LATER}`, "after"],
    ["limit=0", "limit"],
    ["limit=1001", "limit"],
  ].map(([query, path]): Case => ({
    name: `the feed refuses ${query}`,
    ask: () => ["GET", `/v1/events?${query}`],
    status: 400,
    contains: wrong(path!),
  })),
  ...["17", LATER].map((id): Case => ({
    name: `the stream refuses ${id}, a cursor that is none`,
    ask: () => ["GET", "/v1/events/stream", { headers: { "last-event-id": id } }],
    status: 400,
    contains: wrong("Last-Event-ID"),
  })),
];

export const accountCases: readonly Case[] = [
  {
    name: "an account says its plan, what is left of it, and where its key may be used",
    ask: () => ["GET", "/v1/account"],
    status: 200,
    contains: [
      /^\{"data":\{"id":"acc_\w{26}"/,
      /"plan":\{[^}]*"name":"\w+","sessions":\d+/,
      /"plan":\{[^}]*"daily":null,"monthly":null/,
      /"used":\{"daily":\d+,"monthly":\d+\},"remaining":\{"daily":null,"monthly":null\}/,
      '"allowedIps":[],"allowedDomains":[],"expiresAt":null',
    ],
    lacks: ["pk_", "keyHash", "sealedKey"],
  },
  {
    name: "a further key is shown when it is made",
    ask: () => ["POST", "/v1/account/keys", { json: { name: "shop", scopes: ["read", "send"] } }],
    status: 201,
    contains: [/^\{"data":\{"id":"key_\w{26}","name":"shop","scopes":\["send","read"\]/, /"key":"pk_[\w-]{43}"\}/],
    lacks: ["keyHash", "accountId"],
  },
  {
    name: "the list of further keys shows none",
    ask: () => ["GET", "/v1/account/keys"],
    status: 200,
    contains: ['"name":"shop"', '"lastUsedAt":null'],
    lacks: ["pk_", "keyHash", "accountId"],
  },
  {
    name: "a further key that is not there cannot be deleted",
    ask: () => ["DELETE", "/v1/account/keys/key_00000000000000000000000000"],
    status: 404,
    contains: problem("not_found"),
  },
  {
    name: "words that opt out are kept as they are written, once each",
    ask: () => ["PATCH", "/v1/account", { json: { optOutWords: ["STOP", " Baja ", "STOP"] } }],
    status: 200,
    contains: ['"optOutWords":["STOP","Baja"]', '"used":{'],
    lacks: ["pk_", "keyHash"],
  },
  ...[["!!"], [""], "STOP", ["x".repeat(41)]].map((optOutWords): Case => ({
    name: `${JSON.stringify(optOutWords).slice(0, 20)} are no words that opt out`,
    ask: () => ["PATCH", "/v1/account", { json: { optOutWords } }],
    status: 400,
    contains: wrong(typeof optOutWords === "string" ? "optOutWords" : "optOutWords.0"),
  })),
  {
    name: "a number is put on the list of opt-outs",
    ask: () => ["PUT", `/v1/optouts/${OUT}`],
    status: 200,
    contains: [new RegExp(`^\\{"data":\\{"number":"${OUT}","word":null,"createdAt":"`)],
    lacks: ["chats", "accountId"],
  },
  {
    name: "a number on the list is found there",
    ask: () => ["GET", `/v1/optouts/${OUT}`],
    status: 200,
    contains: [`"number":"${OUT}"`],
  },
  {
    name: "the list of opt-outs is read by page",
    ask: () => ["GET", "/v1/optouts"],
    status: 200,
    contains: [`"number":"${OUT}"`, '"pagination":{"page":1,"limit":20,"total":1}'],
    lacks: ["chats", "accountId"],
  },
  {
    name: "a send to somebody who has opted out is refused",
    ask: ({ session }) => ["POST", "/v1/messages/send/text", { json: { sessionId: session, to: OUT, text: "hi" } }],
    status: 403,
    contains: problem("recipient_opted_out"),
  },
  {
    name: "a bulk to somebody who has opted out is refused, with the place",
    ask: ({ session }) => [
      "POST",
      "/v1/messages/send/bulk",
      { json: { sessionId: session, messages: [{ to: "34600111222", text: "a" }, { to: OUT, text: "b" }] } },
    ],
    status: 400,
    contains: wrong("messages.1.to", /opted out/),
  },
  {
    name: "a number is taken off the list",
    ask: () => ["DELETE", `/v1/optouts/${OUT}`],
    status: 200,
    contains: [`"number":"${OUT}"`],
  },
  ...(["GET", "DELETE"] as const).map((method): Case => ({
    name: `${method} of a number that is not on the list is 404`,
    ask: () => [method, `/v1/optouts/${OUT}`],
    status: 404,
    contains: problem("not_found"),
  })),
  {
    name: "the erasures of an account that asked for none are none",
    ask: () => ["GET", "/v1/erasures"],
    status: 200,
    contains: ['{"data":[],"pagination":{"page":1,"limit":20,"total":0}}'],
  },
  {
    name: "an erasure that nobody asked for is 404",
    ask: () => ["GET", "/v1/erasures/era_01kf0m3e4v8s2q6w9x1y5z7abc"],
    status: 404,
    contains: problem("not_found"),
  },
  {
    name: "what is no number cannot be erased",
    ask: () => ["DELETE", "/v1/data/somebody"],
    status: 404,
    contains: problem("not_found"),
  },
  {
    name: "what is no number cannot be put on the list",
    ask: () => ["PUT", "/v1/optouts/somebody"],
    status: 404,
    contains: problem("not_found"),
  },
];
