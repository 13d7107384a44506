// Who did what.
import { call } from "../api.js";
import { html, useState } from "../html.js";
import { t } from "../i18n.js";
import { useLoad } from "../live.js";
import { Card, Empty, Head, Loaded, Table, Time, Work } from "../ui.js";

const PAGE = 50;

/** A call of the API stands as method and path; `plan_set: free` keeps what follows the colon. */
function actionWord(action) {
  const [name, ...rest] = action.split(": ");
  const words = {
    joined: t("made their login"),
    sign_in_failed: t("was refused"),
    signed_in: t("signed in"),
    signed_out: t("signed out"),
    sign_in_ended: t("ended a sign-in"),
    password_changed: t("changed their password"),
    totp_added: t("added an authenticator app"),
    totp_removed: t("removed the authenticator app"),
    passkey_added: t("added a passkey"),
    passkey_removed: t("removed a passkey"),
    key_shown: t("looked at the API key"),
    key_regenerated: t("made a new API key"),
    key_places_changed: t("changed where the key works"),
    customer_link_made: t("made a link for a customer"),
    person_invited: t("invited somebody"),
    person_removed: t("removed somebody"),
    operator_invited: t("invited an operator"),
    operator_removed: t("removed an operator"),
    account_created: t("made the account"),
    account_changed: t("changed the account"),
    plan_set: t("changed the plan"),
  };
  if (!words[name]) return html`<code>${action}</code>`;
  return rest.length > 0 ? html`${words[name]} <span class="soft">${rest.join(": ")}</span>` : words[name];
}

export function AuditLog() {
  const first = useLoad(async () => (await call("GET", "/operator/audit")).data, []);
  const accounts = useLoad(async () => (await call("GET", "/operator/overview")).data.accounts, []);
  const [more, setMore] = useState([]);
  const [ended, setEnded] = useState(false);
  const nameOf = (id) => accounts.data?.find((account) => account.id === id)?.name ?? id;
  return html`
    <div class="stack">
      <${Head} title=${t("Audit log")} text=${t("Who did what in the panel, newest first; kept for a year.")} />
      <${Loaded} state=${first}>${(newest) => {
        const rows = [...newest, ...more];
        const older = async () => {
          const { data } = await call("GET", `/operator/audit?before=${rows.at(-1).id}`);
          setMore([...more, ...data]);
          setEnded(data.length < PAGE);
        };
        return html`<${Card}>${
          rows.length === 0
            ? html`<${Empty} title=${t("Nothing yet")} />`
            : html`<${Table} caption=${t("Audit log")} rows=${rows} columns=${[
              [t("What"), (row) => html`<span class="break">${actionWord(row.action)}</span>`],
              [t("Who"), (row) => row.login ?? "–"],
              [t("Account"), (row) =>
                row.accountId ? nameOf(row.accountId) : html`<span class="soft">${t("Gateway")}</span>`],
              [t("Address"), (row) =>
                html`<span class="mono">${row.address}</span>`],
              [t("When"), (row) => html`<${Time} at=${row.at} />`],
            ]} />`
        }
      ${
          !ended && newest.length === PAGE &&
          html`
            <footer class="pager">
              <${Work} run=${older}>${t("Older")}</${Work}></footer>
          `
        }</${Card}>`;
      }}</${Loaded}>
      </div>
  `;
}
