/** What the clients' types are made of: the named schemas of the OpenAPI document, in which every object has a name. */
import type { OpenApiDocument } from "../../src/http/docs/portable.ts";

export type Shape =
  | { is: "name"; name: string }
  | { is: "plain"; type: "string" | "integer" | "number" | "boolean" | "null" | "unknown" }
  | { is: "values"; values: string[] }
  | { is: "list"; of: Shape }
  | { is: "map"; of: Shape }
  | { is: "union"; of: Shape[] };

export interface Field {
  name: string;
  shape: Shape;
  isRequired: boolean;
  description: string | undefined;
}

export interface NamedSchema {
  name: string;
  description: string | undefined;
  /** The fields of an object, or what the name stands for. */
  body: Field[] | Shape;
}

export interface Schemas {
  named: NamedSchema[];
  /** The kinds of `POST /messages/send/{kind}` whose body is JSON. */
  sends: { kind: string; body: string; answer: string }[];
}

interface Schema {
  $ref?: string;
  type?: string | string[];
  enum?: string[];
  format?: string;
  items?: Schema;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  required?: string[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  description?: string;
}
type Content = { content?: Record<string, { schema: Schema }> };
interface Document {
  components: { schemas: Record<string, Schema> };
  paths: Record<string, { post?: { requestBody: Content; responses: Record<string, Content> } }>;
}

export function schemasOf(document: OpenApiDocument): Schemas {
  const { components, paths } = document as unknown as Document;
  const named = Object.entries(components.schemas).map(([name, schema]) => ({
    name,
    description: schema.description,
    body: schema.properties ? fieldsOf(schema) : shapeOf(schema),
  }));
  const sends = Object.entries(paths).flatMap(([path, { post }]) => {
    const kind = path.match(/^\/v1\/messages\/send\/(\w+)$/)?.[1];
    const body = post?.requestBody?.content?.["application/json"]?.schema.$ref;
    const answer = post?.responses["202"]?.content?.["application/json"]?.schema.$ref;
    return kind && body && answer ? [{ kind, body: nameIn(body), answer: nameIn(answer) }] : [];
  });
  return { named, sends };
}

function fieldsOf({ properties = {}, required = [] }: Schema): Field[] {
  return Object.entries(properties)
    // A client takes a file from disk.
    .filter(([, { format }]) => format !== "binary")
    .map(([name, schema]) => ({
      name,
      shape: shapeOf(schema),
      isRequired: required.includes(name),
      description: schema.description,
    }));
}

function shapeOf(schema: Schema): Shape {
  if (schema.$ref) return { is: "name", name: nameIn(schema.$ref) };
  if (schema.properties) throw new Error(`an object without a name: ${Object.keys(schema.properties)}`);
  if (schema.enum) return { is: "values", values: schema.enum };
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return { is: "union", of: choices.map(shapeOf) };
  if (Array.isArray(schema.type)) return { is: "union", of: schema.type.map((type) => shapeOf({ ...schema, type })) };
  switch (schema.type) {
    case "array":
      return { is: "list", of: shapeOf(schema.items ?? {}) };
    case "object":
      return {
        is: "map",
        of: shapeOf(typeof schema.additionalProperties === "object" ? schema.additionalProperties : {}),
      };
    case "string":
    case "integer":
    case "number":
    case "boolean":
    case "null":
      return { is: "plain", type: schema.type };
    default:
      return { is: "plain", type: "unknown" };
  }
}

function nameIn(reference: string): string {
  return reference.split("/").at(-1)!;
}
