/** Holds answers against the OpenAPI document, by a JSON Schema validator that knows nothing of our own schemas. */
import assert from "node:assert/strict";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import ajvFormats from "ajv-formats";
import { openApiDocument } from "../../src/http/docs/openapi.ts";
import type { ApiStage } from "./api_world.ts";

interface Media {
  schema: object;
  example?: unknown;
  examples?: Record<string, { value: unknown }>;
}

export interface Operation {
  operationId: string;
  summary?: string;
  tags?: string[];
  security?: unknown[];
  parameters?: { name: string; in: string; required?: boolean; description?: string; schema: { example?: unknown } }[];
  requestBody?: { content: Record<string, Media> };
  responses: Record<string, { description: string; content?: Record<string, Media> }>;
}

/** Every operation with its method and path. */
export function operations(): { method: string; path: string; operation: Operation }[] {
  return Object.entries(openApiDocument().paths ?? {}).flatMap(([path, item]) =>
    Object.entries(item as Record<string, Operation>).map(([method, operation]) => ({ method, path, operation }))
  );
}

const ajv = new Ajv2020({ strict: false, allErrors: true });
// deno-lint-ignore no-explicit-any -- the package's types describe its CommonJS form
(ajvFormats as any).default?.(ajv) ?? (ajvFormats as any)(ajv);
// Base64 that comes may have a data URL's prefix, and no padding.
ajv.addFormat("byte", true);
ajv.addSchema({ $id: "openapi", ...structuredClone(openApiDocument()) as object });
const validators = new Map<object, ValidateFunction>();

/** Fails unless the value fits the schema of the document. */
export function assertFits(schema: object, value: unknown, what: string): void {
  let validate = validators.get(schema);
  if (!validate) {
    const absolute = JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"openapi#/'));
    validators.set(schema, validate = ajv.compile(absolute));
  }
  assert.ok(validate(value), `${what}: ${ajv.errorsText(validate.errors)}`);
}

/**
 * A stage of which every answer, and every body that was taken, must be one that the document describes; `asked` is told of
 * each operation.
 */
export function contractStage(stage: ApiStage, asked: (operationId: string) => void): ApiStage {
  const patterns = operations().map(({ method, path, operation }) => ({
    method: method.toUpperCase(),
    pattern: new RegExp(`^${path.replaceAll(".", "\\.").replaceAll(/\{\w+\}/g, "[^/]+")}$`),
    path,
    operation,
  }));
  return {
    apiKey: stage.apiKey,
    linkedSession: () => stage.linkedSession(),
    async call(method, path, options) {
      const response = await stage.call(method, path, options);
      const bare = path.replace(/\?.*/, "");
      // Of two that fit, the one without parameters was meant.
      const found = patterns.filter((entry) => entry.method === method && entry.pattern.test(bare))
        .sort((a, b) => a.path.split("{").length - b.path.split("{").length)[0];
      if (found) {
        const what = `${method} ${bare} ${response.status}`;
        const documented = found.operation.responses[response.status];
        assert.ok(documented, `${what} is not documented`);
        asked(found.operation.operationId);
        const body = found.operation.requestBody?.content["application/json"];
        const sent = options?.json === undefined ? undefined : JSON.parse(JSON.stringify(options.json));
        // What is not found was looked for: the body was in order.
        if ((response.ok || response.status === 404) && body && sent !== undefined) {
          assertFits(body.schema, sent, `the body of ${what}`);
        }
        const type = response.headers.get("content-type")?.replace(/;.*/, "") ?? "";
        const media = documented.content?.[type];
        if (documented.content) assert.ok(media, `${what} came as ${type}`);
        const answer = media && type.endsWith("json") ? await response.clone().json() : undefined;
        if (answer !== undefined) assertFits(media!.schema, answer, what);
        if (media?.examples) assert.ok(answer.code in media.examples, `${what} ${answer.code} is not documented`);
      }
      return response;
    },
  };
}
