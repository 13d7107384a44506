// The lines of an account, with the dialog to link another; for operators, those of all accounts.
import { html, useState } from "../html.js";
import { said, t } from "../i18n.js";
import { useData, useLines } from "../live.js";
import { go, useDialog } from "../router.js";
import { accountColumn, Choice, Field, FormDialog, Head, rowLink, TableCard, timeAt, usePost } from "../ui.js";
import { byTrouble, LineState, phone } from "../words.js";

export function Lines({ account }) {
  const lines = useLines(account);
  const [adding, setAdding] = useDialog("new");
  const add = html`<button type="button" class="primary" onClick=${() => setAdding(true)}>${t("Link a line")}</button>`;
  return html`
    <div class="stack">
      <${Head} title=${t("Lines")}
        text=${t("The WhatsApp numbers that send and receive your messages.")}>${add}</${Head}>
        <${TableCard} state=${lines} caption=${t("Lines")} keyOf=${(row) => row._id} empty=${[
          t("No lines yet"),
          t("Link a WhatsApp number by scanning a QR code with its phone, as with WhatsApp Web."),
          add,
        ]} columns=${[
          [t("Name"), (row) => rowLink(`/accounts/${account}/lines/${row._id}`, row.name, "break")],
          ...stateColumns(html`<span class="soft">–</span>`),
        ]} />
        ${adding && html`<${NewLine} account=${account} close=${() => setAdding(false)} />`}
      </div>
  `;
}

/** `none`: what stands there in place of a number. */
const stateColumns = (none) => [
  [t("Status"), (row) => html`<${LineState} line=${row} />`, "state"],
  [t("Number"), (row) => row.phone ? html`<span class="nowrap">${phone(row.phone)}</span>` : none],
  [t("Reason"), (row) => row.reason ? html`<span class="soft small break">${said(row.reason)}</span>` : ""],
  [t("Last used"), timeAt("lastUsed")],
];

function NewLine({ account, close }) {
  const post = usePost(account);
  const [how, setHow] = useState("qr");
  const create = async ({ name, number }) => {
    const body = { name, ...(how === "code" && { pairingPhone: number }) };
    const { data } = await post("/sessions", { body });
    go(`/accounts/${account}/lines/${data._id}`);
  };
  return html`
    <${FormDialog} title=${t("Link a line")} close=${close} submit=${create} button=${t("Link")}>${(wrong) =>
      html`
        <${Field} label=${t("Name")} name="name" required maxlength="100" placeholder=${t("Office")}
          hint=${t("Only for you: shown in lists and in events.")} wrong=${wrong("name")} />
        <${Choice} label=${t("Link with")} name="how" value=${how} choose=${setHow}
          options=${[["qr", t("QR code")], ["code", t("Pairing code")]]} />
        ${how === "code" && html`
          <${Field} label=${t("Phone number")} name="number" inputmode="tel" required placeholder="447700900123"
            autocomplete="tel" hint=${t("With the country code.")} wrong=${wrong("pairingPhone")} />
        `}
      `}</${FormDialog}>
  `;
}

export function AllLines() {
  const lines = useData("/operator/lines", ["lines"]);
  return html`
    <div class="stack">
      <${Head} title=${t("All lines")} text=${t("The lines of all accounts, those with problems first.")} />
      <${TableCard} state=${{ ...lines, data: lines.data && byTrouble(lines.data) }} caption=${t("All lines")}
        empty=${[t("No lines yet"), t("Lines are linked on each account's pages.")]} columns=${[
          [t("Name"), (row) => rowLink(`/accounts/${row.accountId}/lines/${row.id}`, row.name, "break")],
          accountColumn(),
          ...stateColumns("–"),
        ]} />
    </div>
  `;
}
