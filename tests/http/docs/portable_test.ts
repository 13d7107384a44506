/** What keeps the OpenAPI document readable for generators of clients; `scripts/checks/generators` runs the generators. */
import assert from "node:assert/strict";
import { EVENT_NAMES } from "../../../src/event/event.ts";
import { openApiDocument } from "../../../src/http/docs/openapi.ts";
import { operations } from "../../support/api_contract.ts";

interface Schema {
  type?: string | string[];
  format?: string;
  enum?: unknown[];
  oneOf?: Schema[];
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  minLength?: number;
  $ref?: string;
  discriminator?: { propertyName: string; mapping: Record<string, string> };
}

interface Document {
  components: { schemas: Record<string, Schema>; pathItems: Record<string, Record<string, object>> };
  webhooks: Record<string, Schema>;
  tags: { name: string }[];
}

const document = openApiDocument() as unknown as Document;
const { components: { schemas, pathItems }, webhooks, tags } = document;

/** Every schema of the document with the path to it; the named ones are `/components/schemas/NAME`. */
function allSchemas(): [string, Schema][] {
  const found: [string, Schema][] = [];
  const visit = (path: string, value: unknown): void => {
    if (typeof value !== "object" || value === null || path.endsWith("/examples") || path.endsWith("/example")) return;
    if (!path.endsWith("/properties")) found.push([path, value]);
    for (const [key, child] of Object.entries(value)) visit(`${path}/${key}`, child);
  };
  visit("", document);
  return found;
}

/** Fails with the paths of the schemas that fulfil the condition. */
function assertNone(what: string, condition: (schema: Schema, path: string) => boolean | undefined): void {
  const found = allSchemas().filter(([path, schema]) => condition(schema, path)).map(([path]) => path);
  assert.deepEqual(found, [], what);
}

const isNamed = (path: string) => /^\/components\/schemas\/\w+$/.test(path);

Deno.test("no enumeration has null among its values, and no named schema is null", () => {
  assertNone("null is a value", (schema) => schema.enum?.includes(null));
  assertNone("a named schema is null", ({ type }, path) => isNamed(path) && Array.isArray(type));
  assertNone("an object is null", ({ type, properties }) => Array.isArray(type) && properties !== undefined);
});

Deno.test("a choice is between named schemas, or between one schema and null", () => {
  assertNone("a choice of other schemas", ({ oneOf, anyOf }) => {
    const choice = oneOf ?? anyOf ?? [];
    const others = choice.filter(({ $ref, type, enum: values }) => $ref === undefined && type !== "null" && !values);
    return others.length > 0;
  });
});

Deno.test("every object has a name", () => {
  assertNone("an object without a name", ({ properties }, path) => properties !== undefined && !isNamed(path));
});

Deno.test("no two names are the same in another language", () => {
  const plain = (name: string) => name.replaceAll(/[^A-Za-z0-9]/g, "").toLowerCase();
  const assertDistinct = (names: string[], what: string) => {
    const twice = names.filter((name, i) => names.findIndex((other) => plain(other) === plain(name)) !== i);
    assert.deepEqual(twice, [], what);
  };
  assertDistinct(Object.keys(schemas), "schemas");
  assertDistinct(tags.map(({ name }) => name), "tags");
  for (const [name, { properties = {} }] of Object.entries(schemas)) assertDistinct(Object.keys(properties), name);
  // Go has the values of all named enumerations in one place.
  assertDistinct(Object.values(schemas).flatMap((schema) => schema.enum ?? []).map(String), "named enumerations");
  for (const name of Object.keys(schemas)) assert.match(name, /^(?!New[A-Z])[A-Z][A-Za-z]+$/, name);
});

Deno.test("no schema has a name that generators give to what an operation takes and answers", () => {
  const taken = new Set(
    operations().flatMap(({ operation: { operationId } }) =>
      ["Request", "Response", "Responses", "Params", "Data", "Error", "Errors", "JSONBody"].map((suffix) =>
        `${operationId}${suffix}`.toLowerCase()
      )
    ),
  );
  assert.deepEqual(Object.keys(schemas).filter((name) => taken.has(name.toLowerCase())), []);
});

Deno.test("no boolean is an enumeration", () => {
  assertNone("true as the only value", ({ type, enum: values }) => type === "boolean" && values !== undefined);
});

Deno.test("no file has a least length", () => {
  assertNone("a file with a least length", ({ format, minLength }) => format === "binary" && minLength !== undefined);
});

Deno.test("webhooks are operations of their own, without the tags of the paths", () => {
  const ids = new Set(operations().map(({ operation }) => operation.operationId));
  for (const { $ref } of Object.values(webhooks)) {
    const [, name = ""] = /^#\/components\/pathItems\/(\w+)$/.exec($ref ?? "") ?? [];
    const { post } = pathItems[name] as { post: { operationId: string; tags?: string[] } };
    assert.equal(post.tags, undefined, name);
    assert.ok(!ids.has(post.operationId), name);
    ids.add(post.operationId);
  }
});

Deno.test("one union has every event, told apart by its name, for webhooks, the feed and the stream", () => {
  const { oneOf, discriminator } = schemas["AnyEvent"]!;
  assert.equal(discriminator!.propertyName, "event");
  assert.deepEqual(Object.keys(discriminator!.mapping).sort(), [...EVENT_NAMES].sort());
  assert.deepEqual(Object.values(discriminator!.mapping), oneOf!.map(({ $ref }) => $ref));
  for (const [name, $ref] of Object.entries(discriminator!.mapping)) {
    const { properties } = schemas[$ref.split("/").at(-1)!]!;
    assert.deepEqual(properties!["event"]!.enum, [name]);
    const webhook = pathItems[webhooks[name]!.$ref!.split("/").at(-1)!];
    assert.ok(JSON.stringify(webhook).includes(JSON.stringify({ schema: { $ref } })), name);
  }
  const $ref = "#/components/schemas/AnyEvent";
  const answerOf = (id: string, type: string) => {
    return operations().find(({ operation }) => operation.operationId === id)!.operation.responses[200]!
      .content![type]!;
  };
  assert.deepEqual(answerOf("streamEvents", "text/event-stream").schema, { $ref });
  assert.deepEqual(answerOf("listEvents", "application/json").schema, { $ref: "#/components/schemas/EventPage" });
  assert.deepEqual(schemas["EventPage"]!.properties!["data"], { type: "array", items: { $ref } });
});
