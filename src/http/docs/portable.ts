/**
 * Brings the generated document into the forms from which generators of clients make names that read well and code that
 * compiles. What they cannot read is listed in `tests/http/docs/portable_test.ts`.
 */
import type { OpenAPIHono } from "@hono/zod-openapi";

export type OpenApiDocument = ReturnType<OpenAPIHono["getOpenAPI31Document"]>;

interface Schema {
  type?: string | string[];
  enum?: unknown[];
  anyOf?: Schema[];
  allOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  $ref?: string;
  description?: string;
  example?: unknown;
}
interface Operation {
  operationId: string;
  responses: Record<string, { content?: Record<string, { schema: Schema }> }>;
}
interface Shape {
  components: { schemas: Record<string, Schema>; pathItems?: Record<string, object> };
  paths: Record<string, Record<string, Operation>>;
  webhooks: Record<string, { post?: Operation; $ref?: string }>;
}

const NULL: Schema = { type: "null" };
const SCHEMAS = "#/components/schemas/";

/** Returns the rewritten document; the one given is left as it is. Throws if two answers would get the same name. */
export function portable(document: OpenApiDocument): OpenApiDocument {
  const shape: Shape = JSON.parse(JSON.stringify(document), (_, value) => nullApart(value));
  leaveTwinsOut(shape);
  useNames(shape);
  nameObjects(shape);
  referToWebhooks(shape);
  return shape as unknown as OpenApiDocument;
}

/** `null` as one of a choice of two, in place of one of the values of an enumeration or of the types of an object. */
function nullApart<Value>(value: Value): Value | Schema {
  if (!isSchema(value)) return value;
  // A named schema and what is said of it at one place.
  if (value.allOf?.[0]?.$ref) {
    const [{ $ref }, here = {}] = value.allOf;
    return { ...here.type?.includes("null") ? { anyOf: [{ $ref }, NULL] } : { $ref }, ...documentationOf(here) };
  }
  const { type, enum: values, description: _, example: __, ...rest } = value;
  // Java's compiler refuses what is made of an enumeration of booleans.
  if (type === "boolean" && values) return { type, ...documentationOf(value) };
  if (!Array.isArray(type) || !type.includes("null") || !(values ?? rest.properties)) return value;
  const given = values ? { enum: values.filter((one) => one !== null) } : {};
  return { anyOf: [{ type: type[0]!, ...given, ...rest }, NULL], ...documentationOf(value) };
}

/** Leaves `_id` out beside `id`, which would be the same name in most languages. */
function leaveTwinsOut({ components: { schemas } }: Shape): void {
  for (const schema of Object.values(schemas)) {
    const { properties = {}, required = [] } = schema;
    for (const name of Object.keys(properties).filter((name) => name.startsWith("_") && name.slice(1) in properties)) {
      delete properties[name];
      schema.required = required.filter((other) => other !== name);
    }
  }
}

/**
 * Refers to named enumerations wherever they are written out. Throws if a named schema is itself null: references to it
 * would not tell where it may be.
 */
function useNames({ components: { schemas }, paths }: Shape): void {
  for (const [name, { anyOf }] of Object.entries(schemas)) {
    if (anyOf?.includes(NULL)) throw new Error(`${name} is null: use orNull, or register it`);
  }
  const names = new Map(Object.entries(schemas).map(([name, schema]) => [signatureOf(schema), name]));
  names.delete(null);
  const visit = (value: unknown): void => {
    if (!isSchema(value)) return;
    for (const [key, child] of Object.entries(value)) {
      visit(child);
      const name = isSchema(child) && value !== schemas ? names.get(signatureOf(child)) : undefined;
      if (name !== undefined) Reflect.set(value, key, referenceTo(name, child));
    }
  };
  visit(schemas);
  visit(paths);
}

/** What makes two enumerations the same; null for any other schema. */
function signatureOf({ enum: values }: Schema): string | null {
  return values && values.length > 1 ? JSON.stringify(values) : null;
}

function referenceTo(name: string, schema: Schema = {}): Schema {
  return { $ref: `${SCHEMAS}${name}`, ...documentationOf(schema) };
}

function documentationOf({ description, example }: Schema): Schema {
  return {
    ...(description === undefined ? {} : { description }),
    ...(example === undefined ? {} : { example }),
  };
}

/** Makes a named schema of each answer that is written out, and of every object within a named schema. */
function nameObjects({ components: { schemas }, paths }: Shape): void {
  const named = (schema: Schema, name: string): Schema => {
    const known = schemas[name] ??= schema;
    if (JSON.stringify(known) !== JSON.stringify(schema)) throw new Error(`two schemas are named ${name}`);
    return referenceTo(name);
  };
  for (const operation of Object.values(paths).flatMap((item) => Object.values(item))) {
    for (const media of Object.values(operation.responses).flatMap(({ content }) => Object.values(content ?? {}))) {
      if (media.schema.properties) media.schema = named(media.schema, nameOf(media.schema, operation.operationId));
    }
  }
  const nameMembers = (name: string, { properties = {} }: Schema): void => {
    for (const [member, schema] of Object.entries(properties)) {
      const nameOfMember = `${name}${pascal(member)}`;
      // A list of objects, an object or null, or an object.
      const [place, key] = schema.items ? [schema, "items"] : schema.anyOf ? [schema.anyOf, 0] : [properties, member];
      const inner: Schema = Reflect.get(place, key);
      if (!inner.properties) continue;
      nameMembers(nameOfMember, inner);
      Reflect.set(place, key, named(inner, nameOfMember));
    }
  };
  for (const [name, schema] of Object.entries(schemas)) nameMembers(name, schema);
}

/** `{data: Webhook}` is a `WebhookResponse`, `{data: [Webhook]}` a `WebhookList`; any other is named by its operation. */
function nameOf({ properties: { data, pagination, next } = {} }: Schema, operationId: string): string {
  const isList = data?.type === "array";
  const [, name] = (isList ? data.items : data)?.$ref?.split(SCHEMAS) ?? [];
  if (name === undefined) return `${pascal(operationId)}Result`;
  if (!isList) return `${name}Response`;
  return pagination || next ? `${name}Page` : `${name}List`;
}

/** Generators lose operations and schemas if webhooks are written out beside the paths. */
function referToWebhooks({ components, webhooks }: Shape): void {
  const pathItems: Record<string, object> = components.pathItems = {};
  for (const [event, item] of Object.entries(webhooks)) {
    const name = item.post!.operationId;
    pathItems[name] = item;
    webhooks[event] = { $ref: `#/components/pathItems/${name}` };
  }
}

function pascal(name: string): string {
  return `${name[0]!.toUpperCase()}${name.slice(1)}`;
}

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null;
}
