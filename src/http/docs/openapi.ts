/** The OpenAPI 3.1 document, made from the routes and schemas that validate requests. Needs no running gateway. */
import { keysOf } from "../../base/typed_keys.ts";
import { createRoute, OpenAPIHono, type RouteConfig, z } from "@hono/zod-openapi";
import { CATALOGUE, Problem, type ProblemCode } from "../../errors.ts";
import { VERSION } from "../../version.ts";
import { WEBHOOK_BODIES } from "../resources/events.ts";
import { problemDocument } from "../api/answer.ts";
import { KEY } from "../api/idempotency.ts";
import { type Route, TAGS } from "../api/route.ts";
import { ROUTES } from "../resources/resources.ts";

type OpenApiDocument = ReturnType<OpenAPIHono["getOpenAPI31Document"]>;

const CODES = keysOf(CATALOGUE);

const ProblemDocument = z.object({
  type: z.string().openapi({ description: "Where the reference explains the error", format: "uri-reference" }),
  title: z.string(),
  status: z.int(),
  detail: z.string().openapi({ description: "One sentence for the client's developer" }),
  code: z.enum(CODES),
  requestId: z.string().openapi({ description: "Also the header `x-request-id`; the gateway's log names it" }),
  errors: z.array(z.object({ path: z.string(), message: z.string() })).optional().openapi({
    description: "With `validation_failed`: what is wrong where; paths read like `messages.2.to`",
  }),
  remaining: z.object({ daily: z.int().nullable(), monthly: z.int().nullable() }).optional().openapi({
    description: "With `quota_exceeded`: what is left",
  }),
}).openapi("Problem");

const DESCRIPTION =
  `Sends messages through WhatsApp from lines that belong to an account, and tells the client's systems \
what happened by signed webhooks and by a feed.

Send the key of the account in the header \`x-api-key\`. Errors are RFC 9457 \`application/problem+json\` with a stable \
\`code\`. A field that a body does not have is 400, \`null\` counts as left out; a method that a path does not have is \
405 with \`Allow\`; an unknown path is 404. Every POST takes an \
\`Idempotency-Key\`: for 24 hours the same key with the same body gives the first answer.`;

let document: OpenApiDocument | undefined;

/** Returns the document, which is made at the first call. */
export function openApiDocument(): OpenApiDocument {
  return document ??= makeDocument();
}

function makeDocument(): OpenApiDocument {
  const app = new OpenAPIHono();
  const registry = app.openAPIRegistry;
  registry.registerComponent("securitySchemes", "apiKey", { type: "apiKey", in: "header", name: "x-api-key" });
  registry.registerComponent("securitySchemes", "bearer", { type: "http", scheme: "bearer" });
  registry.register("Problem", ProblemDocument);
  for (const route of ROUTES) registry.registerPath(createRoute(configOf(route)));
  for (const webhook of WEBHOOK_BODIES) registry.registerWebhook(webhookConfig(webhook));
  return app.getOpenAPI31Document({
    openapi: "3.1.0",
    info: {
      title: "Paloma messaging gateway",
      version: VERSION,
      description: DESCRIPTION,
      license: { name: "MIT", url: "https://spdx.org/licenses/MIT.html" },
    },
    servers: [{ url: "/", description: "This gateway" }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
  });
}

function configOf(route: Route): RouteConfig {
  const { method, path, operationId, tag, summary, description, params, query, body, upload } = route;
  const content = upload ?? (body && { contentType: "application/json", schema: body });
  const required = !body?.isOptional();
  return {
    method,
    path,
    operationId,
    tags: [tag],
    summary,
    ...(description === undefined ? {} : { description }),
    security: securityOf(route),
    request: {
      ...(params ? { params: params as z.ZodObject } : {}),
      ...(query ? { query: query as z.ZodObject } : {}),
      ...headersOf(route),
      ...(content ? { body: { required, content: { [content.contentType]: { schema: content.schema } } } } : {}),
    },
    responses: { ...answersOf(route), ...problemsOf(route) },
  } as RouteConfig;
}

function securityOf({ access }: Route): Record<string, string[]>[] {
  if (access === "open") return [];
  return access === "key" ? [{ apiKey: [] }] : [{ apiKey: [] }, { bearer: [] }];
}

function headersOf({ method, headers }: Route): { headers?: z.ZodObject } {
  if (method !== "post") return headers ? { headers: headers as z.ZodObject } : {};
  return {
    headers: z.object({
      "idempotency-key": z.string().regex(KEY).optional().openapi({
        description: "Makes it safe to repeat the request: the same key and body give the first answer for 24 hours",
      }),
    }),
  };
}

function answersOf({ answers }: Route): RouteConfig["responses"] {
  return Object.fromEntries(
    Object.entries(answers).map(([status, { description, schema, contentType, headers = {} }]) => {
      const described = Object.entries({ "x-request-id": "Id of the request", ...headers })
        .map(([name, description]) => [name, { description, schema: { type: "string" as const } }]);
      const type = schema ? "application/json" : contentType;
      const content = type ? { content: { [type]: { schema: schema ?? { type: "string" } } } } : {};
      return [status, { description, headers: Object.fromEntries(described), ...content }];
    }),
  );
}

/** Returns a response per status, with an example for each of its error codes. */
function problemsOf(route: Route): RouteConfig["responses"] {
  const byStatus = new Map<number, ProblemCode[]>();
  for (const code of new Set(codesOf(route))) {
    const { status } = CATALOGUE[code];
    byStatus.set(status, [...byStatus.get(status) ?? [], code]);
  }
  return Object.fromEntries(
    [...byStatus].sort(([a], [b]) => a - b).map(([status, codes]) => [status, {
      description: codes.map((code) => `\`${code}\`: ${CATALOGUE[code].title}`).join(". "),
      content: {
        "application/problem+json": {
          schema: ProblemDocument,
          examples: Object.fromEntries(codes.map((code) => [code, { value: exampleOf(code) }])),
        },
      },
    }]),
  );
}

/** Returns every error code that the route may answer with. */
export function codesOf({ access, method, params, query, body, upload, problems }: Route): ProblemCode[] {
  const codes: ProblemCode[] = [...problems];
  if (access !== "open") {
    codes.push("api_key_missing", "api_key_invalid", "account_deactivated");
    codes.push("ip_not_allowed", "domain_not_allowed", "subscription_expired", "rate_limited", "storage_unavailable");
  }
  if (params) codes.push("not_found");
  // A body is read even if the route takes none, to refuse fields that would be ignored.
  const readsBody = !upload && method !== "get";
  if (query || upload || readsBody) codes.push("validation_failed");
  if (body || upload) codes.push("unsupported_media_type");
  if (upload || readsBody) codes.push("payload_too_large");
  if (readsBody) codes.push("too_much_at_once", "busy");
  if (readsBody || upload?.contentType === "application/json") codes.push("malformed_json");
  if (method === "post") codes.push("idempotency_key_reused");
  return [...codes, "internal_error"];
}

const EXTRAS: Partial<Record<ProblemCode, Problem["extras"]>> = {
  validation_failed: { errors: [{ path: "messages.2.to", message: "is required" }] },
  quota_exceeded: { members: { remaining: { daily: 3, monthly: null } } },
};

function exampleOf(code: ProblemCode): object {
  const problem = new Problem(code, `${CATALOGUE[code].title}.`, EXTRAS[code]);
  return problemDocument(problem, "req_01kf0m3e4v8s2q6w9x1y5z7abc");
}

function webhookConfig({ name, summary, schema }: (typeof WEBHOOK_BODIES)[number]): RouteConfig {
  return {
    method: "post",
    path: name,
    operationId: name,
    tags: ["Webhooks"],
    summary,
    request: {
      headers: z.object({
        "x-webhook-signature": z.string().openapi({ description: "HMAC-SHA256 of the body, hexadecimal" }),
        "webhook-id": z.string().openapi({ description: "The event's id, the same over retries and redelivery" }),
        "webhook-timestamp": z.string().openapi({ description: "Unix seconds (Standard Webhooks)" }),
        "webhook-signature": z.string().openapi({ description: "`v1,` and the signature (Standard Webhooks)" }),
      }),
      body: { required: true, content: { "application/json": { schema } } },
    },
    responses: { "2XX": { description: "Taken; anything else is tried again after 5, 25 and 120 s" } },
  } as unknown as RouteConfig;
}
