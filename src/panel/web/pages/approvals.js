// What keys have proposed: a person reads it, corrects it, and approves or refuses it.
import { api } from "../api.js";
import { html, useState } from "../html.js";
import { t } from "../i18n.js";
import { useLines, useNames, usePage } from "../live.js";
import { Ask, Card, Field, FormDialog, Head, rowLink, TablePage, Time, toast, Work } from "../ui.js";
import { chatName, kindWord } from "../words.js";

const LIMIT = 50;

export function Approvals({ account, query }) {
  const lines = useLines(account);
  const proposals = usePage(account, "/messages/proposals", { page: query.page, limit: LIMIT, topics: ["messages"] });
  const names = useNames(account, proposals.data?.data.map(({ sessionId, to }) => [sessionId, to]) ?? []);
  const nameOf = (id) => lines.data?.find(({ _id }) => _id === id)?.name ?? t("deleted line");
  const [edited, setEdited] = useState(null);
  const decide = async (method, path, done) => {
    try {
      await api(account, method, `/messages/${path}`);
      toast(done);
    } finally {
      // Somebody else may have decided, or its time was over.
      await proposals.reload();
    }
  };
  return html`
    <div class="stack">
      <${Head} title=${t("Approvals")} text=${t("Messages that a key proposed. They leave once you approve them.")} />
      <${Card}>
        <${TablePage} state=${proposals} caption=${t("Approvals")} keyOf=${(row) => row.messageId}
          empty=${[t("Nothing to approve"), t("Messages of keys that may only propose wait here.")]} columns=${[
            [t("To"), (row) => rowLink(`/accounts/${account}/messages/${row.messageId}`, chatName(row.to, names))],
            [
              t("Content"),
              (row) =>
                html`<span class="prewrap">${row.text ?? row.caption ?? row.filename ?? kindWord(row.type)}</span>`,
            ],
            [t("Proposed by"), (row) => row.proposedBy],
            [t("Line"), (row) => html`<span class="clip">${nameOf(row.sessionId)}</span>`],
            [t("Leaves"), (row) => row.sendAt ? html`<${Time} at=${row.sendAt} />` : t("in its turn")],
            ["", (row) =>
              html`
                <div class="row end">
                  ${row.type === "text" &&
                    html`<button type="button" class="small" onClick=${() => setEdited(row)}>${t("Edit")}</button>`}
                  <${Ask} kind="small danger" title=${t("Refuse the message?")} button=${t("Refuse")}
                    text=${t("It is never sent, and its quota is returned.")}
                    run=${() => decide("DELETE", row.messageId, t("Refused."))} />
                  <${Work} kind="small primary" run=${() =>
                    decide("POST", `${row.messageId}/approve`, t("Approved."))}>${t("Approve")}</${Work}>
                </div>
              `, "end"],
          ]} />
      </${Card}>
      ${edited && html`
        <${Edit} account=${account} message=${edited} close=${() => setEdited(null)} reload=${proposals.reload} />
      `}
    </div>
  `;
}

function Edit({ account, message: { messageId, text }, close, reload }) {
  const save = async (fields) => {
    await api(account, "PATCH", `/messages/${messageId}`, { body: { text: fields.text } });
    await reload();
    close();
  };
  return html`
    <${FormDialog} title=${t("Edit the message")} close=${close} submit=${save} button=${t("Save")}>${(wrong) =>
      html`
        <${Field} as="textarea" label=${t("Text")} name="text" rows="6" required defaultValue=${text}
          wrong=${wrong("text")} />
      `}</${FormDialog}>
  `;
}
