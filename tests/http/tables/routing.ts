/** Paths and methods that are not there, CORS, and what needs no key. */
import { type Case, problem } from "../../support/api_table.ts";

export const routingCases: readonly Case[] = [
  ...["/", "/v1", "/v1/", "/v2/sessions", "/v1/sessions/", "/v1/message/send/text", "/v1/messages/send", "/favicon.ico"]
    .map((
      path,
    ): Case => ({
      name: `there is nothing at ${path}`,
      ask: () => ["GET", path],
      status: 404,
      contains: problem("not_found"),
    })),
  ...([
    ["PATCH", "/v1/sessions", "GET, HEAD, POST"],
    ["GET", "/v1/messages/send/text", "POST"],
    ["POST", "/v1/messages/history", "GET, HEAD"],
    ["PUT", "/v1/events", "GET, HEAD"],
    ["DELETE", "/healthz", "GET, HEAD"],
    ["POST", "/openapi.json", "GET, HEAD"],
    ["POST", "/media/med_1", "GET, HEAD"],
    ["PUT", "/v1/sessions/none", "DELETE, GET, HEAD, PATCH"],
    ["POST", "/v1/messages/none/status", "GET, HEAD"],
    ["OPTIONS", "/v1/webhooks", "GET, HEAD, POST"],
  ] as const).map(([method, path, allow]): Case => ({
    name: `${method} ${path} is not allowed and says what is`,
    ask: () => [method, path],
    status: 405,
    contains: problem("method_not_allowed"),
    headers: { allow },
  })),
  {
    name: "HEAD answers like GET without a body",
    ask: () => ["HEAD", "/v1/sessions"],
    status: 200,
    contains: [/^$/],
  },
  {
    name: "a preflight is answered without a key",
    ask: () => ["OPTIONS", "/v1/messages/send/text", {
      key: null,
      headers: { origin: "https://shop.example.com", "access-control-request-method": "POST" },
    }],
    status: 204,
    headers: {
      "access-control-allow-origin": "https://shop.example.com",
      "access-control-allow-methods": "POST",
      "access-control-allow-headers": /x-api-key.*content-type.*idempotency-key/,
      "access-control-allow-credentials": null,
      vary: /origin/i,
    },
  },
  {
    name: "a page may read the answer and every header that the reference names",
    ask: () => ["GET", "/v1/sessions", { headers: { origin: "https://shop.example.com" } }],
    status: 200,
    headers: {
      "access-control-allow-origin": "https://shop.example.com",
      "access-control-expose-headers": /x-request-id.*x-quota-daily-remaining.*retry-after.*\bage$/,
    },
  },
  {
    name: "a page may read errors too",
    ask: () => ["GET", "/v1/sessions", { key: null, headers: { origin: "https://shop.example.com" } }],
    status: 401,
    headers: { "access-control-allow-origin": "https://shop.example.com" },
  },
  {
    name: "without an Origin there is nothing about CORS",
    ask: () => ["GET", "/v1/sessions"],
    status: 200,
    headers: { "access-control-allow-origin": null },
  },
  {
    name: "health needs no key",
    ask: () => ["GET", "/healthz", { key: null }],
    status: 200,
    contains: ['{"status":"ok"}'],
  },
  {
    name: "readiness needs no key",
    ask: () => ["GET", "/readyz", { key: null }],
    status: 200,
    contains: ['{"status":"ok"}'],
  },
  {
    name: "metrics need no key and name routes, never ids",
    ask: () => ["GET", "/metrics", { key: null }],
    status: 200,
    contains: [/^# HELP/m, /paloma_http_requests_total\{method="GET",route="\/v1\/sessions",status="200"\} \d+/],
    lacks: [/ses_[0-9a-z]{26}/, /acc_[0-9a-z]{26}/],
    headers: { "content-type": /^text\/plain/ },
  },
  {
    name: "the reference is served under a strict policy",
    ask: () => ["GET", "/docs", { key: null }],
    status: 200,
    contains: ["docs/docs.js"],
    // The samples on it name addresses.
    lacks: [/(?:src|href|url|import|from)\W+https?:/, "<script>", "onclick"],
    headers: { "content-security-policy": /default-src 'none'; script-src 'self'/ },
  },
  {
    name: "the OpenAPI document is there",
    ask: () => ["GET", "/openapi.json", { key: null }],
    status: 200,
    contains: ['"openapi":"3.1.0"'],
  },
];

export const keyCases: readonly Case[] = [
  {
    name: "a request without a key is refused",
    ask: () => ["GET", "/v1/sessions", { key: null }],
    status: 401,
    contains: problem("api_key_missing"),
    headers: { "www-authenticate": /ApiKey/ },
  },
  {
    name: "a key that is none is refused",
    ask: () => ["GET", "/v1/sessions", { key: "nonsense" }],
    status: 401,
    contains: problem("api_key_invalid"),
    lacks: ["nonsense"],
  },
  {
    name: "a key that nobody has is refused",
    ask: () => ["GET", "/v1/sessions", { key: `pk_${"a".repeat(43)}` }],
    status: 401,
    contains: problem("api_key_invalid"),
  },
  {
    name: "the Bearer form is refused everywhere but for PDFs",
    ask: ({ stage }) => ["GET", "/v1/sessions", { key: null, headers: { authorization: `Bearer ${stage.apiKey}` } }],
    status: 401,
    contains: [...problem("api_key_missing"), "/v1/message/send/pdf"],
  },
  {
    name: "a Bearer that is none is refused for PDFs too",
    ask: () => ["POST", "/v1/message/send/pdf", { key: null, headers: { authorization: "Bearer nonsense" }, json: {} }],
    status: 401,
    contains: problem("api_key_invalid"),
  },
  {
    name: "Basic is no form of the key",
    ask: ({ stage }) => ["POST", "/v1/message/send/pdf", {
      key: null,
      headers: { authorization: `Basic ${stage.apiKey}` },
      json: {},
    }],
    status: 401,
    contains: problem("api_key_missing"),
  },
  {
    name: "the key is asked for before the body is looked at",
    ask: () => ["POST", "/v1/messages/send/text", { key: null, body: "x" }],
    status: 401,
    contains: problem("api_key_missing"),
  },
];
