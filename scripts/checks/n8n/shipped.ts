/** Each shipped workflow, judged from outside n8n. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { sampleFile } from "../../../tests/support/sample_files.ts";
import { until } from "../../../tests/support/until.ts";
import { DRAFT } from "./outside.ts";
import { APPROVER, CUSTOMER, post, type Trial, write } from "./trial.ts";
import { formPath } from "./workflows.ts";

// deno-lint-ignore no-explicit-any
type Json = any;

export const SHIPPED: Record<string, (trial: Trial) => Promise<void>> = {
  // First, as each message of the customer makes a draft: the approver answers the newest.
  async "agent-with-approval"(trial) {
    const { stage } = trial;
    const question = "Has my order left?";
    await write(trial, CUSTOMER, question);
    await stage.arrival(APPROVER, ({ text }) => text?.includes(question) && text.includes(DRAFT));
    const { data: proposals } = await stage.api.call("GET", "/messages/proposals");
    assert.ok(proposals.some(({ text, proposedBy }: Json) => text === DRAFT && proposedBy === "agent"));
    const drafts = (await stage.inbox(CUSTOMER)).filter(({ text }) => text === DRAFT);
    assert.deepEqual(drafts, [], "nothing is sent without approval");
    await write(trial, APPROVER, "1");
    const sent = await stage.arrival(CUSTOMER, ({ text }) => text === DRAFT);
    assert.equal(sent.quoted?.text, question);
  },

  async "invoice-from-a-form"({ stage, n8n }) {
    const at = `${n8n.url}/form/${await formPath()}`;
    assert.match(await (await fetch(at)).text(), /Send an invoice/);
    const pdf = sampleFile("pdf");
    // Sent twice, as an impatient person does.
    for (let i = 0; i < 2; i++) {
      const form = new FormData();
      for (const [i, value] of ["Ada", CUSTOMER, "1042"].entries()) form.append(`field-${i}`, value);
      form.append("field-3", new Blob([new Uint8Array(pdf)], { type: "application/pdf" }), "1042.pdf");
      const answer = await fetch(at, { method: "POST", body: form });
      assert.ok(answer.ok, await answer.text());
    }
    const arrived = await stage.arrival(CUSTOMER, ({ filename }) => filename === "Invoice 1042.pdf");
    assert.equal(arrived.sha256, createHash("sha256").update(pdf).digest("hex"));
    assert.match(arrived.caption, /^Hello Ada, here is your invoice 1042/);
  },

  async "reminders-until-paid"(trial) {
    const { stage, line } = trial;
    const due = new Date(Date.now() + 5 * 86_400_000).toISOString().slice(0, 10);
    await post(trial, "invoice-sent", { number: CUSTOMER, invoice: "2001", due });
    await until(async () => (await stage.queue(line)).length === 3, "three reminders");
    await post(trial, "invoice-paid", { number: CUSTOMER, invoice: "2001" });
    await stage.arrival(CUSTOMER, ({ text }) => text === "Thank you, invoice 2001 is paid.");
    assert.deepEqual(await stage.queue(line), []);
  },

  async "menu-bot"(trial) {
    const { stage } = trial;
    await write(trial, CUSTOMER, "Hello!");
    await stage.arrival(CUSTOMER, ({ text }) => /What can we do for you\?/.test(text ?? ""));
    await write(trial, CUSTOMER, "1");
    await stage.arrival(CUSTOMER, ({ text }) => /^We are open/.test(text ?? ""));
    const menus = (await stage.inbox(CUSTOMER)).filter(({ text }) => /What can we do/.test(text ?? ""));
    assert.equal(menus.length, 1, "the answer is no new question");
  },

  async "inbox-to-slack"(trial) {
    await write(trial, CUSTOMER, "for the team");
    const { text } = await until(() => trial.outside.posted.find(({ text }) => /for the team/.test(text)), "a post");
    assert.match(text, /^\*.+\* on line 447700900001: for the team$/);
  },
};
