/** The official API's messages as sends of ours: which route they call, and with which body. */
import { CloudError, wrongParameter } from "./errors.ts";

export type Fields = Record<string, unknown>;

interface Send {
  /** Below `/v1/messages/send/`. */
  route: string;
  body: Fields;
}

/** Types by name, in the order of the reference. Each gets the message's member of its name. */
const TYPES: Readonly<Record<string, (part: Fields) => Send>> = {
  text: ({ body, preview_url }) => ({ route: "text", body: { text: body, linkPreview: isTrue(preview_url) } }),
  image: file,
  video: file,
  document: file,
  audio: ({ voice, ...part }) => isTrue(voice) ? { route: "voice", body: { fileUrl: linkOf(part) } } : file(part),
  sticker: (part) => ({ route: "sticker", body: { fileUrl: linkOf(part) } }),
  location: ({ latitude, longitude, name, address }) => ({
    route: "location",
    body: { latitude: number(latitude), longitude: number(longitude), name, address },
  }),
  reaction: ({ message_id, emoji }) => ({ route: "reaction", body: { messageId: message_id, emoji: emoji ?? "" } }),
  interactive,
  template,
};

/** Members of a message beside the one that its type names. Others would change it, and are refused. */
const COMMON = new Set([
  "messaging_product",
  "recipient_type",
  "to",
  "type",
  "context",
  "biz_opaque_callback_data",
]);

/** Returns the send. Throws CloudError. */
export function sendOf(message: Fields): Send & { to: string } {
  if (message.messaging_product !== "whatsapp") throw wrongParameter("messaging_product must be whatsapp");
  const type = message.type ?? "text";
  if (typeof type !== "string" || !(Object.hasOwn(TYPES, type) || type === "contacts")) {
    throw new CloudError(131051, `The type ${String(type).slice(0, 50)} is not supported.`);
  }
  const unknown = Object.keys(message).find((name) => name !== type && !COMMON.has(name));
  if (unknown) throw wrongParameter(`${unknown.slice(0, 50)} is not supported for the type ${type}`);
  if (typeof message.to !== "string") throw wrongParameter("to is required, as a text");
  const { route, body } = type === "contacts" ? contacts(message.contacts) : TYPES[type]!(object(message, type));
  const { to } = message;
  // A reaction goes to the chat of its message.
  if (route === "reaction") return { to, route, body };
  const replyTo = message.context === undefined ? {} : { replyTo: object(message, "context").message_id };
  return { to, route, body: { to, ...body, ...replyTo } };
}

/** Returns the value without members that are null, which clients send for what they leave out. */
export function withoutNull(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNull);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).filter(([, each]) => each !== null).map(([name, each]) => [name, withoutNull(each)]),
  );
}

/** Returns a value that may be written as JSON in a text. */
function structure(value: unknown): unknown {
  if (typeof value !== "string" || !/^\s*[[{]/.test(value)) return value;
  try {
    return withoutNull(JSON.parse(value));
  } catch {
    return value;
  }
}

function object(parent: Fields, name: string): Fields {
  const value = structure(parent[name]);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw wrongParameter(`${name} is required, as an object`);
  }
  return value as Fields;
}

function list(parent: Fields, name: string): Fields[] {
  const value = structure(parent[name]);
  if (!Array.isArray(value) || value.some((each) => typeof each !== "object" || each === null)) {
    throw wrongParameter(`${name} is required, as a list of objects`);
  }
  return value;
}

function isTrue(value: unknown): boolean {
  return value === true || value === "true";
}

function number(value: unknown): unknown {
  return typeof value === "string" && value.trim() !== "" ? Number(value) : value;
}

function linkOf({ link, id }: Fields): unknown {
  if (link === undefined && id !== undefined) {
    throw new CloudError(131053, "There is no media with this id: send a link.");
  }
  return link;
}

function file(part: Fields): Send {
  return { route: "document", body: { fileUrl: linkOf(part), caption: part.caption, filename: part.filename } };
}

function contacts(value: unknown): Send {
  const cards = list({ contacts: value }, "contacts").map((card) => {
    const [phone] = list(card, "phones");
    const { formatted_name: name } = object(card, "name");
    const organization = card.org === undefined ? undefined : object(card, "org").company;
    return { name, phone: phone?.phone ?? phone?.wa_id, organization };
  });
  return { route: "contact", body: { contacts: cards } };
}

function interactive(part: Fields): Send {
  const { text } = object(part, "body");
  const footer = part.footer === undefined ? undefined : object(part, "footer").text;
  const header = part.header === undefined ? null : object(part, "header");
  if (header && header.type !== "text") throw wrongParameter("interactive.header must be a text");
  const headed = header ? `*${header.text}*\n\n${text}` : text;
  const action = object(part, "action");
  if (part.type === "button") {
    const options = list(action, "buttons").map((button) => {
      const { id, title } = object(button, "reply");
      return { id, label: title };
    });
    return { route: "choices", body: { text: headed, footer, options } };
  }
  if (part.type === "list") {
    const rows = list(action, "sections").flatMap((section) => list(section, "rows"));
    const options = rows.map(({ id, title, description }) => ({ id, label: title, description }));
    return { route: "choices", body: { text: headed, footer, options } };
  }
  if (part.type === "cta_url") {
    const { display_text, url } = object(action, "parameters");
    const lines = [`${headed}\n\n${display_text}: ${url}`, ...(footer === undefined ? [] : [footer])];
    return { route: "text", body: { text: lines.join("\n\n") } };
  }
  throw new CloudError(131051, "interactive.type must be button, list or cta_url.");
}

function template({ name, language, components }: Fields): Send {
  const variables: Record<string, unknown> = {};
  for (const component of components === undefined ? [] : list({ components }, "components")) {
    const type = String(component.type).toLowerCase();
    if (type !== "header" && type !== "body") {
      throw wrongParameter("template.components: only header and body are taken");
    }
    for (const [i, parameter] of list(component, "parameters").entries()) {
      if (parameter.type !== "text") {
        throw wrongParameter("template.components: only parameters of type text are taken");
      }
      const variable = String(parameter.parameter_name ?? i + 1);
      if (Object.hasOwn(variables, variable)) throw wrongParameter(`template.components give ${variable} twice`);
      variables[variable] = parameter.text;
    }
  }
  const code = language === undefined ? undefined : object({ language }, "language").code;
  return { route: "template", body: { template: name, language: code, variables } };
}
