/** What a message reads like on the other side. */
import type { MessageReceivedEventData } from "../../clients/typescript/src/index.ts";

type Received = Pick<MessageReceivedEventData, "type" | "text" | "details" | "media">;

/** What an agent reads, without the file. */
export function wordsOf(message: Received): string {
  const { type, text, details, media } = message;
  const said = text === null ? "" : asMarkdown(text);
  const lost = media && media.url === null ? `[${media.filename}: ${media.reason ?? "the file is not available"}]` : "";
  const lines: (string | false | undefined)[] = [said, lost];
  if (type === "reactionMessage") return text ?? "[took the reaction back]";
  if (details && "latitude" in details) {
    lines.push(`https://www.google.com/maps?q=${details.latitude},${details.longitude}`);
  }
  if (details && "contacts" in details) {
    for (const { name, phones } of details.contacts ?? []) {
      lines.push(`${name}: ${phones.map((phone) => `+${phone}`).join(", ")}`);
    }
  }
  if (details && "options" in details) lines.push(...(details.options ?? []).map((option) => `- ${option}`));
  if (details && "kind" in details && !text) lines.push(`[${details.kind}]`);
  if (details && "withheld" in details) lines.push("[shown on the phone only]");
  return lines.filter(Boolean).join("\n") || (media?.url ? "" : `[${type}]`);
}

/** WhatsApp's marks as Chatwoot's Markdown. */
export function asMarkdown(text: string): string {
  return text.replace(/(?<![\w*])\*(?=\S)([^*\n]+?)(?<=\S)\*(?![\w*])/g, "**$1**")
    .replace(/(?<![\w~])~(?=\S)([^~\n]+?)(?<=\S)~(?![\w~])/g, "~~$1~~");
}

/** Chatwoot's Markdown as WhatsApp's marks. */
export function asMarks(text: string): string {
  return text.replace(
    /\*\*(?=\S)([^*\n]+?)(?<=\S)\*\*|(?<![\w*])\*(?=\S)([^*\n]+?)(?<=\S)\*(?![\w*])/g,
    (_, bold, italic) => bold === undefined ? `_${italic}_` : `*${bold}*`,
  )
    .replace(/~~(?=\S)([^~\n]+?)(?<=\S)~~/g, "~$1~")
    .replace(/\\$/gm, "");
}
