/** JSON Schema as the reference shows it: rows of a table, and an example made from the examples of its parts. */

const BY_FORMAT = { "date-time": "2026-01-15T12:00:00.000Z", date: "2026-01-15", uri: "https://example.com/" };

/** Examples by member name, for members that have none in the document. */
const BY_NAME = {
  sessionId: "ses_01kf0m3e4v8s2q6w9x1y5z7abc",
  sessionName: "Support line",
  messageId: "msg_01kf0m3e4v8s2q6w9x1y5z7abc",
  networkId: "3EB0C767D097B7C7C8F1",
  from: "447700900123@s.whatsapp.net",
  chat: "447700900123@s.whatsapp.net",
  to: "447700900123",
  number: "447700900123",
  phone: "447700900123",
  pushName: "Ana Gómez",
  text: "When does my order arrive?",
  timestamp: 1768478400,
  isForwarded: false,
  subject: "Team Madrid",
  callId: "5F1A2B3C4D5E6F708192A3B4C5D6E7F8",
};

/** The schema behind a reference. */
export function resolve(document, schema) {
  if (!schema?.$ref) return schema ?? {};
  return schema.$ref.slice(2).split("/").reduce((part, name) => part[name], document);
}

/** `[{ name, type, required, description }]`, nested members as `data.name`. */
export function rowsOf(document, schema, prefix = "") {
  const { properties = {}, required = [] } = resolve(document, schema);
  return Object.entries(properties).flatMap(([name, member]) => {
    const resolved = resolve(document, member);
    const row = {
      name: prefix + name,
      type: typeOf(document, resolved),
      required: required.includes(name),
      description: member.description ?? resolved.description ?? "",
    };
    const inner = resolved.type === "array" ? resolve(document, resolved.items) : resolved.anyOf?.[0] ?? resolved;
    const suffix = resolved.type === "array" ? "[]." : ".";
    return [row, ...rowsOf(document, inner, prefix + name + suffix)];
  });
}

/** `string`, `integer, 1 to 100`, `"queued" | "sent"`, `array of Session`. */
export function typeOf(document, schema) {
  const resolved = resolve(document, schema);
  if (resolved.const !== undefined) return JSON.stringify(resolved.const);
  if (resolved.enum) return resolved.enum.map((value) => JSON.stringify(value)).join(" | ");
  const alternatives = alternativesOf(resolved);
  if (alternatives) return alternatives.map((one) => typeOf(document, one)).join(" or ");
  const type = [resolved.type ?? "any"].flat().join(" or ");
  if (type === "array") return `array of ${typeOf(document, resolved.items)}`;
  const { minimum, maximum, minLength, maxLength, format } = resolved;
  const limits = [
    format,
    minimum !== undefined || maximum !== undefined ? `${minimum ?? ""} to ${maximum ?? ""}` : null,
    maxLength !== undefined ? `${minLength ?? 0} to ${maxLength} characters` : null,
    resolved.default !== undefined ? `default ${JSON.stringify(resolved.default)}` : null,
  ].filter(Boolean);
  return [type, ...limits].join(", ");
}

/** What an id looks like: one in an example is nobody's. */
const ID = /^[a-z]{3}_[0-9a-z]{26}$/;

/** A value that fits the schema; optional members without an example, or with only an id, are left out. */
export function exampleOf(document, schema, name = "") {
  const resolved = resolve(document, schema);
  if (schema.example !== undefined) return schema.example;
  if (resolved.example !== undefined) return resolved.example;
  if (resolved.const !== undefined) return resolved.const;
  if (resolved.default !== undefined) return resolved.default;
  if (resolved.enum) return resolved.enum[0];
  const alternative = alternativesOf(resolved)?.[0];
  if (alternative) return exampleOf(document, alternative, name);
  if ([resolved.type].flat()[0] === typeOfValue(BY_NAME[name]) && !resolved.pattern) return BY_NAME[name];
  switch ([resolved.type].flat()[0]) {
    case "object":
      return Object.fromEntries(
        Object.entries(resolved.properties ?? {})
          .filter(([name, member]) => resolved.required?.includes(name) || hasExample(document, member))
          .map(([name, member]) => [name, exampleOf(document, member, name)]),
      );
    case "array":
      return [exampleOf(document, resolved.items)];
    case "integer":
    case "number":
      return resolved.minimum ?? 1;
    case "boolean":
      return true;
    default:
      return BY_FORMAT[resolved.format] ?? "text";
  }
}

function typeOfValue(value) {
  return typeof value === "number" ? "integer" : typeof value;
}

function hasExample(document, schema) {
  const example = schema.example ?? resolve(document, schema).example;
  return example !== undefined && !ID.test(example);
}

/** Whole schemas of which one holds; rules beside properties only restrict them. */
function alternativesOf({ properties, anyOf, oneOf }) {
  return properties ? undefined : anyOf ?? oneOf;
}
