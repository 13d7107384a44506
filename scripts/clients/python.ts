/** The schemas as TypedDicts of Python. */
import type { Field, NamedSchema, Schemas, Shape } from "./schemas.ts";

const HEADER = `"""Generated from the OpenAPI document by \`deno task clients\`. Do not edit."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, Protocol, TypeAlias, TypedDict, overload
`;
const PLAIN = { string: "str", integer: "int", number: "float", boolean: "bool", null: "None", unknown: "Any" };
/** What cannot be the name of a field in a class. */
const KEYWORDS = ["from", "class", "def", "in", "is", "not", "or", "and", "pass", "global", "import", "with"];

export function pythonTypes({ named, sends }: Schemas): string {
  const overloads = sends.map(({ kind, body, answer }) =>
    `    @overload
    def __call__(
        self, kind: Literal["${kind}"], message: ${body}, *, idempotency_key: str | None = None
    ) -> ${answer}: ...`
  );
  return `${HEADER}\n${named.map(typeOf).join("\n")}\n\nclass Send(Protocol):\n${overloads.join("\n\n")}\n`;
}

function typeOf({ name, description, body }: NamedSchema): string {
  if (!Array.isArray(body)) {
    // Not quoted, it would name types that come later.
    return `${name}: TypeAlias = "${written(body).replaceAll('"', "'")}"\n`;
  }
  if (body.some((field) => KEYWORDS.includes(field.name))) {
    const fields = body.map((field) => `    ${JSON.stringify(field.name)}: ${quoted(valueOf(field))},`);
    return `${name} = TypedDict("${name}", {\n${fields.join("\n")}\n})\n`;
  }
  const fields = body.map((field) => `    ${field.name}: ${valueOf(field)}${docstring(field.description)}`);
  const about = description ? [docstring(description).slice(1), ""] : [];
  return `\nclass ${name}(TypedDict):\n${[...about, ...fields].join("\n") || "    pass"}\n`;
}

function valueOf({ shape, isRequired }: Field): string {
  return isRequired ? written(shape) : `NotRequired[${written(shape)}]`;
}

function written(shape: Shape): string {
  switch (shape.is) {
    case "name":
      return shape.name;
    case "plain":
      return PLAIN[shape.type];
    case "values":
      return `Literal[${shape.values.map((value) => JSON.stringify(value)).join(", ")}]`;
    case "list":
      return `list[${written(shape.of)}]`;
    case "map":
      return `dict[str, ${written(shape.of)}]`;
    case "union":
      return shape.of.map(written).join(" | ");
  }
}

function quoted(type: string): string {
  return `"${type.replaceAll('"', "'")}"`;
}

function docstring(description: string | undefined): string {
  return description ? `\n    """${description.replaceAll("\\", "\\\\").replace(/"$/, '\\"')}"""` : "";
}
