/** Inputs of real clients that other gateways were reported to take wrongly: what is broken is refused, what can be read is read. */
import assert from "node:assert/strict";
import { accepted, answerOf, post, refused } from "../support/api_calls.ts";
import { arrivals } from "../support/arrivals.ts";
import { onStage, type Stage } from "../support/stage.ts";

const LINE = "4915200000051";
const ANA = "4917000000051";
const PDF = "%PDF-1.4\ntrailer<<>>\n%%EOF";

const send = (stage: Stage, path: string, json: object) => post(stage, path, { json });

/** Sends a form whose file's part has this header; `filename` as the client wrote it. */
function sendPart(stage: Stage, filename: string, type = ""): ReturnType<typeof answerOf> {
  const head = (disposition: string) => `--b\r\nContent-Disposition: form-data; ${disposition}\r\n`;
  const body = `${head('name="to"')}\r\n${ANA}\r\n${head(`name="file"; ${filename}`)}${type}\r\n${PDF}\r\n--b--\r\n`;
  const headers = { "content-type": "multipart/form-data; boundary=b" };
  return answerOf(stage.request("POST", "/messages/send/file", { headers, body }));
}

/** The file as the phone got it, as its newest message. */
async function arrived(
  stage: Stage,
  send: () => ReturnType<typeof answerOf>,
): Promise<[filename: string, mimetype: string]> {
  const count = (await stage.inbox(ANA)).length + 1;
  await accepted(send());
  const { filename, mimetype } = (await arrivals(stage, ANA, { count })).at(-1)!;
  return [filename, mimetype];
}

onStage("what a client's code broke on its way is refused before it costs anything", async (stage) => {
  await stage.addPhone(ANA);
  const { sessionId } = await stage.linkLine(LINE);
  const says = async (call: ReturnType<typeof send>, words: RegExp) => {
    const { body } = await refused(call, 400, "validation_failed");
    assert.match(JSON.stringify(body.errors), words);
  };
  const file = "JVBERi0xLjQK    ";
  await says(send(stage, "/messages/send/document", { to: ANA, file, filename: "a.pdf" }), /\+ was decoded as a blank/);
  await says(send(stage, "/messages/send/voice", { to: ANA, file }), /\+ was decoded as a blank/);
  const cut = "data:application/pdf;base64,JVBERi0xLjQKJ";
  await says(send(stage, "/messages/send/document", { to: ANA, file: cut, filename: "a.pdf" }), /is cut off/);
  for (const word of ["null", "data", "true", "NaN", "invoice", "database"]) {
    await says(send(stage, "/messages/send/document", { to: ANA, file: word, filename: "a.pdf" }), /is not a PDF/);
  }
  await says(send(stage, "/messages/send/text", { to: "0155501000021", text: "x" }), /begins with 0/);
  await says(send(stage, "/sessions", { name: "p", pairingPhone: "0155501000021" }), /begins with 0/);
  await says(send(stage, `/sessions/${sessionId}/check-number`, { number: "0155501000021" }), /begins with 0/);
  await says(send(stage, "/webhooks", { url: "http://n8n:5678/webhook/x" }), /PALOMA_OUTBOUND_ALLOW=n8n:5678/);
  assert.deepEqual((await stage.api.call("GET", "/messages/history")).data, []);
  assert.deepEqual(await stage.inbox(ANA), []);
});

onStage("names and types of files are read as each client writes them", async (stage) => {
  await stage.addPhone(ANA);
  await stage.linkLine(LINE);
  const type = "Content-Type: application/pdf\r\n";
  const WRITTEN: [as: string, type: string, name: string][] = [
    ['filename="Rechnung 12.2026"', type, "Rechnung 12.2026"],
    ['filename="=?UTF-8?Q?Rechnung_=C3=BCber.pdf?="', "", "Rechnung über.pdf"],
    ["filename*=iso-8859-1''Rechnung%20%FCber.pdf", "", "Rechnung über.pdf"],
    ['filename="Rechnung%2012%20%C3%BC.pdf"', "", "Rechnung 12 ü.pdf"],
  ];
  for (const [as, type, name] of WRITTEN) {
    assert.deepEqual(await arrived(stage, () => sendPart(stage, as, type)), [name, "application/pdf"], as);
  }
  const file = `data:application/pdf;base64,${btoa(PDF)}`;
  const inJson = () => send(stage, "/messages/send/document", { to: ANA, file, filename: "Rechnung 2026-11" });
  assert.deepEqual(await arrived(stage, inJson), ["Rechnung 2026-11", "application/pdf"]);
});

onStage(
  "pictures of an album come one by one, with what they have in common, and its frame does not",
  async (stage) => {
    await stage.addPhone(ANA, "Ana");
    const line = await stage.linkLine(LINE);
    const say = async (message: object) =>
      (await stage.control.call("POST", `/phones/${ANA}/messages`, { to: LINE, message })).id;
    const album = await say({ albumMessage: { expectedImageCount: 2 } });
    const parentMessageKey = { remoteJid: `${LINE}@s.whatsapp.net`, id: album, fromMe: true };
    const messageContextInfo = { messageAssociation: { associationType: "MEDIA_ALBUM", parentMessageKey } };
    const ids = [];
    for (const caption of ["one", "two"]) ids.push(await say({ imageMessage: { caption }, messageContextInfo }));
    for (const id of ids) {
      const { data } = await stage.event(line, ({ data }) => data.messageId === id);
      assert.deepEqual([data.type, data.details], ["imageMessage", { album }]);
    }
    assert.ok(!(await stage.events(line)).some(({ data }) => data.messageId === album));
  },
);
