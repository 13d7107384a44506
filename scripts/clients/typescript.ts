/** The TypeScript client's types: every named schema of the document, and a table of its operations. */
import openapiTS, { astToString } from "openapi-typescript";
import type { openApiDocument } from "../../src/http/docs/openapi.ts";

type Document = ReturnType<typeof openApiDocument>;
type Schema = Record<string, unknown>;

interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema: Schema;
}

interface Operation {
  summary: string;
  parameters?: Parameter[];
  requestBody?: { content: Record<string, { schema: Schema }> };
  responses: Record<string, { content?: Record<string, { schema?: Schema }> }>;
}

const METHODS = ["get", "post", "put", "patch", "delete"];
const PREFIX = "/v1/";

/** The source of `clients/typescript/src/api.ts`, before formatting. */
export async function typescriptTypes(document: Document): Promise<string> {
  const { openapi, info, components } = document as unknown as { openapi: string; info: Schema; components: Schema };
  // Written as a schema among the others, so that one generator writes all types.
  const schemas = { ...components.schemas as Schema, Operations: operationsSchema(document) };
  const types = await openapiTS({ openapi, info, paths: {}, components: { schemas } } as never, {
    rootTypes: true,
    rootTypesNoSchemaPrefix: true,
    // What has a default may be left out.
    defaultNonNullable: false,
  });
  const only = types.filter((node) => !["paths", "webhooks", "operations", "$defs"].includes(nameOf(node)));
  return `// deno-lint-ignore-file\n// Made from the gateway's OpenAPI document by \`deno task clients\`; do not edit.\n${
    astToString(only)
  }`;
}

function nameOf(node: object): string {
  return (node as { name?: { text: string } }).name?.text ?? "";
}

/** `"GET /sessions/{id}": { path, query, body, answer }` for every operation that answers with JSON. */
function operationsSchema(document: Document): Schema {
  const properties: Record<string, Schema> = {};
  for (const [path, item] of Object.entries(document.paths as Record<string, Record<string, Operation>>)) {
    for (const method of METHODS.filter((name) => path.startsWith(PREFIX) && item[name])) {
      const { summary, parameters = [], requestBody, responses } = item[method]!;
      const success = Object.entries(responses).find(([status]) => status.startsWith("2"));
      const answer = success?.[1].content?.["application/json"]?.schema;
      if (!answer) continue;
      const body = requestBody?.content["application/json"]?.schema;
      properties[`${method.toUpperCase()} /${path.slice(PREFIX.length)}`] = object({
        ...inPlace("path", parameters),
        ...inPlace("query", parameters),
        ...body && { body },
        answer,
      }, { description: summary });
    }
  }
  return object(properties, { description: "What each operation takes and answers, by method and path." });
}

function inPlace(place: string, parameters: Parameter[]): Record<string, Schema> {
  const found = parameters.filter((parameter) => parameter.in === place);
  if (found.length === 0) return {};
  const properties = found.map(({ name, schema, description }) => [name, { description, ...schema }]);
  const required = found.filter((parameter) => parameter.required).map(({ name }) => name);
  return { [place]: { type: "object", properties: Object.fromEntries(properties), required } };
}

function object(properties: Record<string, Schema>, more: Schema): Schema {
  return { type: "object", properties, required: Object.keys(properties), ...more };
}
