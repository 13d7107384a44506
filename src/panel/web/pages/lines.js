// The lines of an account, with the dialog to link another; for operators, those of all accounts.
import { html, useState } from "../html.js";
import { said, t } from "../i18n.js";
import { useData, useLines } from "../live.js";
import { go, href, useDialog } from "../router.js";
import { Card, Dialog, Empty, Field, Form, Head, Loaded, Table, Time, usePost } from "../ui.js";
import { byTrouble, LineState, phone } from "../words.js";

export function Lines({ account }) {
  const lines = useLines(account);
  const [adding, setAdding] = useDialog("new");
  const add = html`<button type="button" class="primary" onClick=${() => setAdding(true)}>${t("Link a line")}</button>`;
  const to = ({ _id }) => `/accounts/${account}/lines/${_id}`;
  return html`
    <div class="stack">
      <${Head} title=${t("Lines")} text=${t(
        "The WhatsApp numbers that send and receive your messages.",
      )}>${add}</${Head}>
        <${Loaded} state=${lines}>${(rows) =>
          html`<${Card}>${
            rows.length === 0
              ? html`<${Empty} title=${t("No lines yet")}><p>${
                t("Link a WhatsApp number by scanning a QR code with its phone, as with WhatsApp Web.")
              }</p>${add}</${Empty}>`
              : html`<${Table} caption=${t("Lines")} rows=${rows} keyOf=${(row) => row._id} columns=${[
                [t("Name"), (row) => html`<a class="main break" href=${href(to(row))}>${row.name}</a>`],
                [t("Status"), (row) => html`<${LineState} line=${row} />`, "state"],
                [t("Number"), (row) =>
                  row.phone
                    ? html`<span class="nowrap">${phone(row.phone)}</span>`
                    : html`<span class="soft">–</span>`],
                [t("Reason"), (row) =>
                  row.reason ? html`<span class="soft small break">${said(row.reason)}</span>` : ""],
                [t("Last used"), (row) => html`<${Time} at=${row.lastUsed} />`],
              ]} />`
          }</${Card}>`}</${Loaded}>
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
    <${Dialog} title=${t("Link a line")} close=${close}>
      <${Form} submit=${create} button=${t("Link")} cancel=${close}>${(wrong) =>
        html`
          <${Field} label=${t("Name")} name="name" required maxlength="100" placeholder=${t("Office")} hint=${t(
            "Only for you: shown in lists and in events.",
          )}
            wrong=${wrong("name")} />
          <fieldset>
            <legend>${t("Link with")}</legend>
            <div class="choice">
              <label><input type="radio" name="how" value="qr" checked=${how === "qr"} onChange=${() =>
                setHow("qr")} />${t("QR code")}</label>
              <label><input type="radio" name="how" value="code" checked=${how === "code"} onChange=${() =>
                setHow("code")} />${t("Pairing code")}</label>
            </div>
          </fieldset>
          ${how === "code" && html`
            <${Field} label=${t(
              "Phone number",
            )} name="number" inputmode="tel" required placeholder="447700900123" autocomplete="tel"
              hint=${t("With the country code.")}
              wrong=${wrong("pairingPhone")} />
          `}
        `}</${Form}>
      </${Dialog}>
  `;
}

export function AllLines() {
  const lines = useData("/operator/lines", ["lines"]);
  return html`
    <div class="stack">
      <${Head} title=${t("All lines")} text=${t("The lines of all accounts, those with problems first.")} />
      <${Loaded} state=${lines}>${(rows) =>
        html`<${Card}>${
          rows.length === 0
            ? html`
              <${Empty} title=${t("No lines yet")}>
                <p>${t("Lines are linked on each account's pages.")}</p>
                </${Empty}>
            `
            : html`<${Table} caption=${t("All lines")} rows=${byTrouble(rows)} columns=${[
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
              [t("Last used"), (row) => html`<${Time} at=${row.lastUsed} />`],
            ]} />`
        }</${Card}>`}</${Loaded}>
      </div>
  `;
}
