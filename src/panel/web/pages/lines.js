// The lines of an account, with the dialog to link another; for operators, those of all accounts.
import { html, useState } from "../html.js";
import { said, t } from "../i18n.js";
import { useData, useLines } from "../live.js";
import { go, href, useDialog } from "../router.js";
import { Card, Field, FormDialog, Head, Loaded, Table, timeAt, usePost } from "../ui.js";
import { byTrouble, LineState, phone } from "../words.js";

export function Lines({ account }) {
  const lines = useLines(account);
  const [adding, setAdding] = useDialog("new");
  const add = html`<button type="button" class="primary" onClick=${() => setAdding(true)}>${t("Link a line")}</button>`;
  const to = ({ _id }) => `/accounts/${account}/lines/${_id}`;
  return html`
    <div class="stack">
      <${Head} title=${t("Lines")}
        text=${t("The WhatsApp numbers that send and receive your messages.")}>${add}</${Head}>
        <${Loaded} state=${lines}>${(rows) =>
          html`
            <${Card}>
              <${Table} caption=${t("Lines")} rows=${rows} keyOf=${(row) => row._id} empty=${[
                t("No lines yet"),
                t("Link a WhatsApp number by scanning a QR code with its phone, as with WhatsApp Web."),
                add,
              ]} columns=${[
                [t("Name"), (row) => html`<a class="main break" href=${href(to(row))}>${row.name}</a>`],
                [t("Status"), (row) => html`<${LineState} line=${row} />`, "state"],
                [t("Number"), (row) =>
                  row.phone
                    ? html`<span class="nowrap">${phone(row.phone)}</span>`
                    : html`<span class="soft">–</span>`],
                [
                  t("Reason"),
                  (row) => row.reason ? html`<span class="soft small break">${said(row.reason)}</span>` : "",
                ],
                [t("Last used"), timeAt("lastUsed")],
              ]} />
              </${Card}>
          `}</${Loaded}>
        ${adding && html`<${NewLine} account=${account} close=${() => setAdding(false)} />`}
      </div>
  `;
}

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
          hint=${t("Only for you: shown in lists and in events.")}
          wrong=${wrong("name")} />
        <fieldset>
          <legend>${t("Link with")}</legend>
          <div class="row choice">
            <label><input type="radio" name="how" value="qr" checked=${how === "qr"} onChange=${() =>
              setHow("qr")} />${t("QR code")}</label>
            <label><input type="radio" name="how" value="code" checked=${how === "code"} onChange=${() =>
              setHow("code")} />${t("Pairing code")}</label>
          </div>
        </fieldset>
        ${how === "code" && html`
          <${Field}
            label=${t(
              "Phone number",
            )} name="number" inputmode="tel" required placeholder="447700900123" autocomplete="tel"
            hint=${t("With the country code.")}
            wrong=${wrong("pairingPhone")} />
        `}
      `}</${FormDialog}>
  `;
}

export function AllLines() {
  const lines = useData("/operator/lines", ["lines"]);
  return html`
    <div class="stack">
      <${Head} title=${t("All lines")} text=${t("The lines of all accounts, those with problems first.")} />
      <${Loaded} state=${lines}>${(rows) =>
        html`
          <${Card}>
            <${Table} caption=${t("All lines")} rows=${byTrouble(rows)} empty=${[
              t("No lines yet"),
              t("Lines are linked on each account's pages."),
            ]} columns=${[
              [
                t("Name"),
                (row) =>
                  html`<a class="main break" href=${
                    href(`/accounts/${row.accountId}/lines/${row.id}`)
                  }>${row.name}</a>`,
              ],
              [
                t("Account"),
                (row) => html`<a class="break" href=${href(`/accounts/${row.accountId}`)}>${row.accountName}</a>`,
              ],
              [t("Status"), (row) => html`<${LineState} line=${row} />`, "state"],
              [t("Number"), (row) => row.phone ? html`<span class="nowrap">${phone(row.phone)}</span>` : "–"],
              [t("Reason"), (row) => row.reason ? html`<span class="soft small break">${said(row.reason)}</span>` : ""],
              [t("Last used"), timeAt("lastUsed")],
            ]} />
            </${Card}>
        `}</${Loaded}>
      </div>
  `;
}
