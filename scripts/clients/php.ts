/** The schemas as array shapes, in the syntax that PHPStan and Psalm read. */
import type { Field, NamedSchema, Schemas, Shape } from "./schemas.ts";

const PLAIN = { string: "string", integer: "int", number: "float", boolean: "bool", null: "null", unknown: "mixed" };

export function phpTypes({ named, sends }: Schemas): string {
  const table = (side: "body" | "answer") => sends.map((send) => ` *   ${send.kind}: ${send[side]},\n`).join("");
  return `<?php

declare(strict_types=1);

namespace Paloma;

/**
 * Types of bodies, answers and events, to be imported with \`@phpstan-import-type\`. Generated from the OpenAPI document by
 * \`deno task clients\`; do not edit.
 *
${named.map(typeOf).join("")} * @phpstan-type Sends array{
${table("body")} * }
 * @phpstan-type SendAnswers array{
${table("answer")} * }
 */
final class Types
{
}
`;
}

function typeOf({ name, body }: NamedSchema): string {
  if (!Array.isArray(body)) return ` * @phpstan-type ${name} ${written(body)}\n`;
  return ` * @phpstan-type ${name} array{\n${body.map((field) => ` *   ${fieldOf(field)},\n`).join("")} * }\n`;
}

function fieldOf({ name, shape, isRequired }: Field): string {
  return `${name}${isRequired ? "" : "?"}: ${written(shape)}`;
}

function written(shape: Shape): string {
  switch (shape.is) {
    case "name":
      return shape.name;
    case "plain":
      return PLAIN[shape.type];
    case "values":
      return shape.values.map((value) => `'${value}'`).join("|");
    case "list":
      return `list<${written(shape.of)}>`;
    case "map":
      return `array<string, ${written(shape.of)}>`;
    case "union":
      return shape.of.map(written).join("|");
  }
}
