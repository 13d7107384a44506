/** The API's operations as tools need them: one list of arguments, and schemas without references. */
import { openApiDocument } from "../http/docs/openapi.ts";
import { ARGUMENTS, type Tool } from "./tools.ts";
import { type Schema, schemaWithUntrusted } from "./untrusted.ts";

interface Argument {
  /** As the tool calls it. */
  name: string;
  /** As the operation calls it. */
  original: string;
  in: "path" | "query" | "body";
  isRequired: boolean;
  schema: Schema;
}

export interface Operation {
  method: string;
  path: string;
  arguments: readonly Argument[];
  input: Schema;
  output: Schema;
}

/** Returns what the tool calls. Throws if the document has no such operation, or it takes no such argument. */
export function operationOf({ operation: id, takes, needs = [], ofOthers }: Tool): Operation {
  for (const [path, methods] of Object.entries(document().paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      if (operation.operationId !== id) continue;
      const all = argumentsOf(path, operation);
      const offered = takes.map((name) => {
        const found = all.find((each) => each.name === name);
        if (!found) throw new Error(`${id} takes no ${name}`);
        return { ...found, isRequired: found.isRequired || needs.includes(name) };
      });
      const output = answerOf(operation);
      return {
        method: method.toUpperCase(),
        path,
        arguments: offered,
        input: {
          type: "object",
          properties: Object.fromEntries(offered.map(({ name, schema }) => [name, schema])),
          required: offered.filter(({ isRequired }) => isRequired).map(({ name }) => name),
          additionalProperties: false,
        },
        output: ofOthers ? schemaWithUntrusted(output) : output,
      };
    }
  }
  throw new Error(`there is no operation ${id}`);
}

interface DocumentedOperation {
  operationId: string;
  parameters?: Schema[];
  requestBody?: { content: Record<string, { schema: Schema }> };
  responses: Record<string, { content?: Record<string, { schema: Schema }> }>;
}

interface Document {
  paths: Record<string, Record<string, DocumentedOperation>>;
}

function document(): Document {
  return openApiDocument() as unknown as Document;
}

interface Body {
  properties?: Record<string, Schema>;
  required?: string[];
  anyOf?: Body[];
}

function argumentsOf(path: string, { parameters = [], requestBody }: DocumentedOperation): Argument[] {
  const [, names = {}] = Object.entries(ARGUMENTS).find(([prefix]) => path.startsWith(prefix)) ?? [];
  const found = parameters.map((parameter): Argument => {
    const { name, in: place, required, schema, description } = whole(parameter) as {
      name: string;
      in: "path" | "query";
      required?: boolean;
      schema: Schema;
      description?: string;
    };
    const described = { ...schema, ...(description === undefined ? {} : { description }) };
    return { name: names[name] ?? name, original: name, in: place, isRequired: required ?? false, schema: described };
  });
  const body = requestBody ? whole(requestBody.content["application/json"]?.schema ?? {}) as Body : {};
  // One that may be left out is a choice between it and null.
  const { properties = {}, required = [] } = body.anyOf?.find(({ properties }) => properties) ?? body;
  for (const [name, schema] of Object.entries(properties)) {
    found.push({ name, original: name, in: "body", isRequired: required.includes(name), schema });
  }
  return found;
}

function answerOf({ responses }: DocumentedOperation): Schema {
  const [, answer] = Object.entries(responses).find(([status]) => status.startsWith("2"))!;
  return whole((whole(answer) as typeof answer).content?.["application/json"]?.schema ?? {}) as Schema;
}

/** Returns the value with the document's references replaced by what they name. `within`: those that led here. */
function whole(value: unknown, within: readonly string[] = []): unknown {
  if (Array.isArray(value)) return value.map((each) => whole(each, within));
  if (typeof value !== "object" || value === null) return value;
  const { $ref, ...rest } = value as { $ref?: string };
  const own = Object.fromEntries(Object.entries(rest).map(([name, each]) => [name, whole(each, within)]));
  // A schema that contains itself is left open: it only describes.
  if ($ref === undefined || within.includes($ref)) return own;
  return { ...whole(named($ref), [...within, $ref]) as Schema, ...own };
}

function named(reference: string): unknown {
  return reference.slice(2).split("/").reduce<unknown>(
    (part, name) => (part as Schema)[name.replaceAll("~1", "/").replaceAll("~0", "~")],
    document(),
  );
}
