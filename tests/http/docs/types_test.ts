/** The OpenAPI document gives TypeScript types by which every kind of message can be written, and a wrong one cannot. */
import assert from "node:assert/strict";
import { join } from "node:path";
import openapiTS, { astToString } from "openapi-typescript";
import { openApiDocument } from "../../../src/http/docs/openapi.ts";
import { tempFolder } from "../../support/temp_folder.ts";

/** Every kind with its options, as an integrator would write it. */
const SAMPLE = `
import type { components, paths } from "./api.d.ts";
type Schemas = components["schemas"];
type Body<Path extends keyof paths> = paths[Path] extends
  { post: { requestBody?: { content: { "application/json": infer Json } } } } ? Json : never;

const to = "34600111222";
const options = { replyTo: "3EB0AA", mentions: [to], linkPreview: false, typing: 500, ttl: 60 };
export const text: Body<"/v1/messages/send/text"> = { to, text: "hi", ...options };
export const all: Body<"/v1/messages/send/text"> = { to: "120363025246125486@g.us", text: "hi", mentions: ["all"] };
export const location: Body<"/v1/messages/send/location"> = { to, latitude: 1, longitude: 2, name: "Shop", ...options };
export const contact: Body<"/v1/messages/send/contact"> = { to, contacts: [{ name: "Anna", phone: to }] };
export const poll: Body<"/v1/messages/send/poll"> = { to, question: "?", options: ["a", "b"], multiple: true };
export const reaction: Body<"/v1/messages/send/reaction"> = { messageId: "msg_x", emoji: "", typing: 9 };
export const forward: Body<"/v1/messages/send/forward"> = { to, messageId: "msg_x", ...options };
export const sticker: Body<"/v1/messages/send/sticker"> = { to, fileUrl: "https://example.com/a.webp" };
export const voice: Body<"/v1/messages/send/voice"> = { to, file: "T2dnUw==", viewOnce: true };
export const document: Body<"/v1/messages/send/document"> = { to, file: "JVBERg==", filename: "a.pdf", ...options };
export const status: Body<"/v1/messages/send/status"> = { text: "open", audience: [to], linkPreview: false };
export const pdf: Body<"/v1/message/send/pdf"> = { number: to, file: "JVBERg==", ...options, priority: "low" };
export const chosen: paths["/v1/messages/history"]["get"]["parameters"]["query"] =
  { type: "poll", recipient: to, sessionId: "ses_x", bulkId: "blk_x", status: "sent" };
export function winner({ poll, sendAt, priority }: Schemas["MessageRecord"]): string {
  const [first] = poll?.options.toSorted((a, b) => b.votes - a.votes) ?? [];
  return first ? \`\${first.name} of \${poll!.voters}\` : sendAt ?? priority;
}
export const bulk: Body<"/v1/messages/send/bulk"> = { messages: [{ to, text: "hi" }] };
export const edit: Schemas["MessageEdit"] = { text: "hi" };
export function last({ life, type }: Schemas["MessageRecord"]): string {
  if (type === "poll" || type === "status") return type;
  return life.at(-1)?.status === "revoked" ? "gone" : life[0]!.at;
}
`;

/** What the compiler says of the sample; null when nothing. */
async function complaints(types: string, sample: string): Promise<string | null> {
  await using temp = await tempFolder();
  await Deno.writeTextFile(join(temp.path, "api.d.ts"), types);
  await Deno.writeTextFile(join(temp.path, "sample.ts"), sample);
  const check = new Deno.Command(Deno.execPath(), { args: ["check", "--no-config", "sample.ts"], cwd: temp.path });
  const { success, stderr } = await check.output();
  return success ? null : new TextDecoder().decode(stderr);
}

Deno.test("types of the document compile against every kind of message, and refuse what is none", async () => {
  const document = openApiDocument();
  const types = astToString(await openapiTS(document as unknown as Parameters<typeof openapiTS>[0]));
  assert.equal(await complaints(types, SAMPLE), null);
  const wrong = SAMPLE.replace('question: "?"', "question: 5");
  assert.match(await complaints(types, wrong) ?? "", /number.*not assignable to type 'string'/);
});
