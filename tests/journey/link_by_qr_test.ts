/** From an empty account to a delivered message, over HTTP alone, as somebody with curl does it. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { invoicePdf } from "../../src/cli/demo.ts";
import { onStage, WITH_REFRESH } from "../support/stage.ts";
import { until } from "../support/until.ts";

const LINE = "4915100000001";
const ANA = "4917000000001";

onStage(
  "a line is linked by the very PNG that the API shows, sends a text and a PDF, and hears the answer",
  async (stage) => {
    const { api, control } = stage;
    await stage.addPhone(LINE, "Paloma Shop");
    await stage.addPhone(ANA, "Ana");

    const { data: session } = await api.call("POST", "/sessions", { name: "Office" });
    assert.match(session.status, /^(initializing|qr)$/);

    // The phone goes on reading what the API shows: the network asks for one more QR in between (companion_reg_refresh).
    const answers: string[] = [];
    let shown = "";
    await until(async () => {
      const { status, qr, pairingCode } = await api.call("GET", `/sessions/${session._id}/qr`);
      assert.equal(pairingCode, null);
      if (status === "connected") return true;
      if (status !== "qr" || qr === shown) return null;
      assert.match(shown = qr, /^data:image\/png;base64,[A-Za-z0-9+/]+=*$/);
      answers.push((await control.call("POST", `/phones/${LINE}/scan`, { qr })).status);
      return null;
    }, "the session to connect");
    assert.deepEqual(answers, ["refresh", "linked"]);

    const line = { sessionId: session._id, number: LINE };
    const linked = await stage.session(line);
    assert.equal(linked.status, "connected");
    assert.equal(linked.phone, LINE);
    assert.equal(linked.reason, null);
    assert.equal((await control.call("GET", `/phones/${LINE}`)).devices.length, 1);

    const text = await api.call("POST", "/messages/send/text", { to: ANA, text: "Hello Ana, glad you are here 👋" });
    assert.equal(text.status, "queued");
    const arrived = await stage.arrival(ANA, (message) => message.text === "Hello Ana, glad you are here 👋");
    assert.equal(arrived.from, `${LINE}@s.whatsapp.net`);
    assert.match((await stage.status(text.messageId, "sent")).sentAt, /^\d{4}-\d\d-\d\dT.*Z$/);

    const pdf = invoicePdf("Invoice 7");
    const document = await api.call("POST", "/messages/send/document", {
      sessionId: session._id,
      to: ANA,
      file: pdf.toString("base64"),
      filename: "invoice-7.pdf",
      caption: "Your invoice, number 7",
    });
    const received = await stage.arrival(ANA, (message) => message.type === "documentMessage");
    await stage.status(document.messageId, "sent");
    const { filename, caption, mimetype, sha256, size } = received;
    assert.deepEqual({ filename, caption, mimetype, sha256, size }, {
      filename: "invoice-7.pdf",
      caption: "Your invoice, number 7",
      mimetype: "application/pdf",
      sha256: createHash("sha256").update(pdf).digest("hex"),
      size: pdf.length,
    });

    const { id } = await control.call("POST", `/phones/${ANA}/messages`, {
      to: LINE,
      text: "Thanks, it is paid already",
    });
    const answer = await stage.event(line, ({ event }) => event === "message.received");
    assert.equal(answer.sessionName, "Office");
    assert.equal(answer.data.number, ANA);
    assert.equal(answer.data.pushName, "Ana");
    assert.equal(answer.data.text, "Thanks, it is paid already");
    assert.equal(answer.data.messageId, id);
  },
  WITH_REFRESH,
);
