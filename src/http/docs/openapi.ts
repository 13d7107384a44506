/** The OpenAPI 3.1 document, made from the routes and schemas that validate requests. Needs no running gateway. */
import { keysOf } from "../../base/typed_keys.ts";
import { createRoute, OpenAPIHono, type RouteConfig, z } from "@hono/zod-openapi";
import { CATALOGUE, Problem, type ProblemCode } from "../../errors.ts";
import { VERSION } from "../../shipped.ts";
import { EVENTS } from "../resources/events.ts";
import { problemDocument } from "../api/answer.ts";
import { KEY } from "../api/idempotency.ts";
import { type Route, TAGS } from "../api/route.ts";
import { orNull } from "../api/schemas.ts";
import { ROUTES } from "../resources/resources.ts";
import { Priority } from "../resources/sends/fields.ts";
import { type OpenApiDocument, portable } from "./portable.ts";

const CODES = keysOf(CATALOGUE);

const ProblemDocument = z.object({
  type: z.string().openapi({ description: "Link to the error's entry in the API reference.", format: "uri-reference" }),
  title: z.string(),
  status: z.int(),
  detail: z.string().describe("What went wrong in this request, in one sentence."),
  code: z.enum(CODES),
  requestId: z.string().describe("Id of the request, also in the `x-request-id` header and in the gateway's log."),
  errors: z.array(z.object({ path: z.string(), message: z.string() }).openapi("FieldError")).optional().describe(
    "Only with `validation_failed`: each invalid field and what is wrong with it. Paths look like " +
      "`messages.2.to`.",
  ),
  remaining: z.object({ daily: z.int().nullable(), monthly: z.int().nullable() }).optional().describe(
    "Only with `quota_exceeded`: messages left in each quota.",
  ),
}).openapi("Problem");

const DESCRIPTION =
  `Send and receive WhatsApp messages through the numbers linked to your account. Signed webhooks and an event feed \
report what happens.

Authenticate with your API key in the \`x-api-key\` header. Errors are RFC 9457 \`application/problem+json\` with a \
stable \`code\`. Unknown body fields are refused with 400, and \`null\` counts as omitted. An unknown path returns 404, \
an unsupported method 405 with \`Allow\`. To retry a POST safely, send an \`Idempotency-Key\`: for 24 hours, the same \
key with the same body returns the first response.`;

let document: OpenApiDocument | undefined;

/** Returns the document, which is made at the first call; `publicUrl`: where clients reach this gateway, if known. */
export function openApiDocument(publicUrl: string | null = null): OpenApiDocument {
  document ??= portable(makeDocument());
  return publicUrl === null ? document : { ...document, servers: [{ url: publicUrl, description: "This gateway" }] };
}

function makeDocument(): OpenApiDocument {
  const app = new OpenAPIHono();
  const registry = app.openAPIRegistry;
  registry.registerComponent("securitySchemes", "apiKey", { type: "apiKey", in: "header", name: "x-api-key" });
  registry.registerComponent("securitySchemes", "bearer", { type: "http", scheme: "bearer" });
  registry.register("Problem", ProblemDocument);
  // It may be null wherever it is used.
  registry.register("Priority", Priority);
  for (const route of ROUTES) registry.registerPath(createRoute(configOf(route)));
  for (const event of EVENTS) registry.registerWebhook(webhookConfig(event));
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
  const content = upload ?? (body && { contentType: "application/json", schema: schemaOfBody(body) });
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
      ...(params ? { params } : {}),
      ...(query ? { query } : {}),
      ...headersOf(route),
      ...(content ? { body: { required, content: { [content.contentType]: { schema: content.schema } } } } : {}),
    },
    responses: { ...answersOf(route), ...problemsOf(route) },
  };
}

/** A body that may be left out may also be null, which must not become a part of its named schema. */
function schemaOfBody(body: z.ZodType): z.ZodType {
  const given = body instanceof z.ZodOptional ? body.unwrap() : body;
  return given instanceof z.ZodNullable ? orNull(given.unwrap() as z.ZodType) : given as z.ZodType;
}

function securityOf({ access }: Route): Record<string, string[]>[] {
  if (access === "open") return [];
  return access === "key" ? [{ apiKey: [] }] : [{ apiKey: [] }, { bearer: [] }];
}

function headersOf({ method, headers }: Route): { headers?: z.ZodObject } {
  if (method !== "post") return headers ? { headers } : {};
  return {
    headers: z.object({
      "idempotency-key": z.string().regex(KEY).optional().describe(
        "Makes the request safe to retry: for 24 hours, the same key with the same body returns the " +
          "first response.",
      ),
    }),
  };
}

function answersOf({ answers }: Route): RouteConfig["responses"] {
  return Object.fromEntries(
    Object.entries(answers).map(([status, { description, schema, contentType, headers = {} }]) => {
      const described = Object.entries({ "x-request-id": "Id of the request.", ...headers })
        .map(([name, description]) => [name, { description, schema: { type: "string" as const } }]);
      const type = contentType ?? (schema && "application/json");
      const content = type ? { content: { [type]: { schema: schema ?? rawSchema(type) } } } : {};
      return [status, { description, headers: Object.fromEntries(described), ...content }];
    }),
  );
}

function rawSchema(contentType: string): { type: "string"; format?: string } {
  return contentType.startsWith("text/") ? { type: "string" } : { type: "string", format: "binary" };
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
    codes.push("ip_not_allowed", "domain_not_allowed", "subscription_expired", "scope_missing", "rate_limited");
    codes.push("storage_unavailable");
  }
  if (params) codes.push("not_found");
  // A body is read even if the route takes none, to refuse fields that would be ignored.
  const readsBody = !upload && method !== "get";
  if (query || upload || readsBody) codes.push("validation_failed");
  if (body || upload) codes.push("unsupported_media_type");
  if (upload || readsBody) codes.push("payload_too_large");
  // An upload counts against the account's share of the disk.
  if (upload || readsBody) codes.push("too_much_at_once");
  if (readsBody) codes.push("busy");
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

function webhookConfig({ name, title, summary, schema }: (typeof EVENTS)[number]) {
  return {
    method: "post" as const,
    path: name,
    operationId: `on${title}`,
    summary,
    request: {
      headers: z.object({
        "x-webhook-signature": z.string().describe("HMAC-SHA256 of the request body, in hexadecimal."),
        "webhook-id": z.string().describe("Id of the event. It stays the same across retries and redeliveries."),
        "webhook-timestamp": z.string().describe("Time of the attempt, in Unix seconds (Standard Webhooks)."),
        "webhook-signature": z.string().describe("`v1,` followed by the signature (Standard Webhooks)."),
      }),
      body: { required: true, content: { "application/json": { schema } } },
    },
    responses: { "2XX": { description: "Delivered. Any other response is retried after 5, 25 and 120 seconds." } },
  };
}
