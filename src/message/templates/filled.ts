/** Fills in messages that were made from a template, which their rows only refer to. */
import type { Kv } from "../../store/kv.ts";
import type { OutgoingContent } from "../content.ts";
import { joined } from "../kinds/choices.ts";
import type { TemplateContent } from "../kinds/template.ts";
import type { Message } from "../message.ts";
import { messageKeys } from "../rows.ts";
import { render, type TemplateBody } from "./template.ts";

/** The texts of a version that is gone, or of a message whose recipient was erased. */
const GONE: TemplateBody = { text: "", header: null, footer: null, options: [] };

/** Returns what is sent of a template with these variables. */
export function contentFrom(
  body: TemplateBody,
  { of, variables, style = "numbers", optionIds = {} }: TemplateContent,
): OutgoingContent {
  const { text, footer, options: made } = render(body, variables);
  const options = made.map((option, i) => ({ ...option, id: optionIds[i] ?? option.id }));
  return of === "choices"
    ? { kind: "choices", style, text, footer, options }
    : { kind: "text", text: joined(text, footer) };
}

/** Returns the messages as they are sent; reads each version once. */
export async function filled<M extends Pick<Message, "accountId" | "content">>(
  kv: Kv,
  messages: readonly M[],
): Promise<M[]> {
  const keys = new Map(
    messages.flatMap(({ accountId, content }) =>
      content.kind === "template" ? [[content.version, messageKeys.templateVersion(accountId, content.version)]] : []
    ),
  );
  if (keys.size === 0) return [...messages];
  const slots = await kv.getMany([...keys.values()]);
  const versions = new Map([...keys.keys()].map((id, i) => [id, slots[i]!.value]));
  return messages.map((message) => {
    const { content } = message;
    if (content.kind !== "template") return message;
    return { ...message, content: contentFrom(versions.get(content.version) ?? GONE, content) };
  });
}
