import assert from "node:assert/strict";
import { Validator } from "@seriousme/openapi-schema-validator";
import { EVENT_NAMES } from "../../../src/event/event.ts";
import { CATALOGUE, type ProblemCode } from "../../../src/errors.ts";
import { codesOf, openApiDocument } from "../../../src/http/docs/openapi.ts";
import { ROUTES } from "../../../src/http/resources/resources.ts";
import { assertFits, contractStage, type Operation, operations } from "../../support/api_contract.ts";
import { runTable } from "../../support/api_table.ts";
import { withApi } from "../../support/api_world.ts";
import { TABLES } from "../tables/all.ts";

Deno.test("the OpenAPI document is valid 3.1", async () => {
  const result = await new Validator().validate({ ...structuredClone(openApiDocument()) });
  assert.ok(result.valid, JSON.stringify(result.errors));
});

Deno.test("every operation says what a reader needs", () => {
  const ids = operations().map(({ operation }) => operation.operationId);
  assert.equal(new Set(ids).size, ids.length);
  for (const { method, path, operation } of operations()) {
    const { operationId, summary, tags, security, parameters = [], responses } = operation;
    assert.match(operationId, /^[a-z][A-Za-z]+$/);
    assert.ok(summary && summary.length < 60, `${operationId} has no short summary`);
    assert.equal(tags?.length, 1);
    assert.ok(Array.isArray(security), `${operationId} does not say which key it needs`);
    const named = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
    const declared = parameters.filter((parameter) => parameter.in === "path").map(({ name }) => name);
    assert.deepEqual(declared.sort(), named.sort(), `${method} ${path}`);
    for (const [status, { description }] of Object.entries(responses)) {
      assert.ok(description, `${operationId} ${status} has no description`);
    }
    assert.ok(Object.keys(responses).some((status) => status.startsWith("2")), operationId);
    if (security?.length) {
      for (const status of ["401", "403", "429", "500", "503"]) assert.ok(responses[status], operationId);
    }
  }
});

Deno.test("every example fits its schema", () => {
  for (const { operation } of operations()) {
    const contents = [operation.requestBody, ...Object.values(operation.responses)].flatMap((part) =>
      Object.values(part?.content ?? {})
    );
    for (const { schema, example, examples = {} } of contents) {
      const values = [example, ...Object.values(examples).map(({ value }) => value)].filter((value) =>
        value !== undefined
      );
      for (const value of values) assertFits(schema, value, operation.operationId);
    }
  }
});

Deno.test("every pattern is one that other languages can read, and its example fits it", () => {
  let seen = 0;
  JSON.stringify(openApiDocument(), (_, value) => {
    if (typeof value?.pattern !== "string") return value;
    seen++;
    assert.doesNotMatch(
      value.pattern,
      /\\[pP]\{|\/[a-z]+$/,
      "flags are lost, and not every engine knows Unicode properties",
    );
    if (value.example !== undefined) assert.match(String(value.example), new RegExp(value.pattern));
    return value;
  });
  assert.ok(seen > 20);
});

Deno.test("no request body has room for a field that is not documented", () => {
  const { components } = openApiDocument() as { components: { schemas: Record<string, object> } };
  let seen = 0;
  for (const { operation } of operations()) {
    const open = new Set<object>(Object.values(operation.requestBody?.content ?? {}).map(({ schema }) => schema));
    for (const schema of open) {
      JSON.stringify(schema, (_, value) => {
        if (typeof value?.$ref === "string") open.add(components.schemas[value.$ref.split("/").at(-1)]!);
        if (value?.type !== "object") return value;
        seen++;
        assert.equal(value.additionalProperties, false, `${operation.operationId}: ${JSON.stringify(value)}`);
        return value;
      });
    }
  }
  assert.ok(seen > 8);
});

Deno.test("a field of a body that may be left out may be null", () => {
  const { components } = openApiDocument() as { components: { schemas: Record<string, object> } };
  let seen = 0;
  for (const { operation } of operations()) {
    const bodies = new Set<object>();
    const json = operation.requestBody?.content["application/json"]?.schema;
    if (json) bodies.add(json);
    for (const schema of bodies) {
      JSON.stringify(schema, (_, value) => {
        if (typeof value?.$ref === "string") bodies.add(components.schemas[value.$ref.split("/").at(-1)]!);
        for (const [name, field] of Object.entries<object>(value?.type === "object" ? value.properties ?? {} : {})) {
          if (value.required?.includes(name)) continue;
          seen++;
          assertFits(field, null, `${operation.operationId} ${name}`);
        }
        return value;
      });
    }
  }
  assert.ok(seen > 50);
});

Deno.test("an empty body is refused where the document refuses it, and nowhere else", () => {
  const documented = new Map(operations().map(({ operation }) => [operation.operationId, operation]));
  let refused = 0;
  for (const { operationId, body, upload } of ROUTES) {
    const read = body ?? upload?.schema;
    if (!read) continue;
    const [content] = Object.values(documented.get(operationId)!.requestBody!.content);
    const isTaken = read.safeParse({}).success;
    if (isTaken) assertFits(content!.schema, {}, operationId);
    else assert.throws(() => assertFits(content!.schema, {}, operationId), assert.AssertionError, operationId);
    refused += Number(!isTaken);
  }
  assert.ok(refused > 20);
});

Deno.test("every error of the catalogue is documented where it can happen", () => {
  const documented = new Set(ROUTES.flatMap(codesOf));
  const nowhere = Object.keys(CATALOGUE).filter((code) => !documented.has(code as ProblemCode));
  // There is no operation for a method that a path does not have.
  assert.deepEqual(nowhere, ["method_not_allowed"]);
});

Deno.test("every operation with a key documents that the key may lack the scope, and every upload a full disk", () => {
  for (const route of ROUTES) {
    const codes = codesOf(route);
    assert.equal(codes.includes("scope_missing"), route.access !== "open", route.operationId);
    if (route.upload) assert.ok(codes.includes("too_much_at_once"), route.operationId);
  }
});

Deno.test("every event is in the webhooks section", () => {
  const { webhooks, components: { pathItems } } = openApiDocument() as {
    webhooks: Record<string, { $ref: string }>;
    components: { pathItems: Record<string, { post: Operation }> };
  };
  assert.deepEqual(Object.keys(webhooks).sort(), [...EVENT_NAMES].sort());
  for (const [name, { $ref }] of Object.entries(webhooks)) {
    const { post } = pathItems[$ref.split("/").at(-1)!]!;
    const { schema } = post.requestBody!.content["application/json"]!;
    const data = { "session.connected": { phone: "34600111222" } }[name];
    if (data) assertFits(schema, { event: name, sessionId: "ses_1", sessionName: "Front", data }, name);
    assert.throws(() => assertFits(schema, { event: name, sessionId: "ses_1" }, name));
  }
});

Deno.test("every answer of the tables is one that the document describes, and every operation was asked", async (t) => {
  const asked = new Set(["getMedia", "getMetrics"]); // asked by tests of their own
  for (const [name, cases] of Object.entries(TABLES)) {
    await withApi(async (world) => {
      const session = await world.linkedSession();
      const stage = contractStage(world, (operationId) => asked.add(operationId));
      await t.step(name, (step) => runTable(step, { stage, session }, cases));
    });
  }
  const all = operations().map(({ operation }) => operation.operationId);
  assert.deepEqual(all.filter((operationId) => !asked.has(operationId)), []);
});

Deno.test("the document names the address by which clients reach the gateway, a proxy's path included", async () => {
  for (const publicUrl of ["https://example.com/paloma", null]) {
    await withApi(async (world) => {
      const { servers } = await (await world.call("GET", "/openapi.json", { key: null })).json();
      assert.deepEqual(servers.map(({ url }: { url: string }) => url), [publicUrl ?? "/"]);
    }, { publicUrl });
  }
});
