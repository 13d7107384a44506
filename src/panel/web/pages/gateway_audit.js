// The audit log.
import { call } from "../api.js";
import { html, useState } from "../html.js";
import { t } from "../i18n.js";
import { useData, useLoad } from "../live.js";
import { Card, Head, Loaded, Table, timeAt } from "../ui.js";

const PAGE = 50;

/** What calls of the API do, by method and path; the first that matches. */
const callWords = () => [
  [/^POST \/v1\/messages\/send\/bulk/, t("sent a bulk")],
  [/^POST \/v1\/messages?\/send\//, t("sent a message")],
  [/^PATCH \/v1\/messages\//, t("edited a message")],
  [/^(DELETE \/v1\/messages|POST \/v1\/messages\/[^/]+\/revoke)/, t("cancelled a message")],
  [/^DELETE \/v1\/bulks\//, t("cancelled a bulk")],
  [/^POST \/v1\/sessions$/, t("created a line")],
  [/^PATCH \/v1\/sessions\/[^/]+$/, t("changed a line")],
  [/^DELETE \/v1\/sessions\/[^/]+$/, t("deleted a line")],
  [/\/reconnect$/, t("connected a line")],
  [/\/disconnect$/, t("disconnected a line")],
  [/\/logout$/, t("unlinked a line")],
  [/\/passkey/, t("signed with a line's passkey")],
  [/\/queue\/pause$/, t("paused a queue")],
  [/\/queue\/resume$/, t("resumed a queue")],
  [/\/chats\/[^/]+\/read$/, t("marked a chat as read")],
  [/\/check-number$/, t("checked a number")],
  [/^PUT \/v1\/optouts\//, t("added an opt-out")],
  [/^DELETE \/v1\/optouts\//, t("removed an opt-out")],
  [/^DELETE \/v1\/data\//, t("erased a person's data")],
  [/^POST \/v1\/account\/keys/, t("created a key")],
  [/^DELETE \/v1\/account\/keys/, t("deleted a key")],
  [/^PATCH \/v1\/account$/, t("changed the account")],
  [/^POST \/v1\/webhooks$/, t("added a webhook")],
  [/^POST \/v1\/webhooks\/.*redeliver$/, t("redelivered events")],
  [/^POST \/v1\/webhooks\/[^/]+\/test$/, t("tested a webhook")],
  [/^DELETE \/v1\/webhooks\/[^/]+$/, t("deleted a webhook")],
  [/^(PATCH|POST) \/v1\/webhooks\//, t("changed a webhook")],
  [/^DELETE \/v1\/templates/, t("deleted a template")],
  [/^(POST|PUT) \/v1\/templates/, t("changed a template")],
];

/** The call itself is shown as a hint; `plan_set: free` keeps the part after the colon. */
function actionWord(action) {
  const [name, ...rest] = action.split(": ");
  const words = {
    joined: t("created their login"),
    sign_in_failed: t("failed to sign in"),
    signed_in: t("signed in"),
    signed_in_by_passkey: t("signed in with a passkey"),
    signed_out: t("signed out"),
    sign_in_ended: t("ended a session"),
    password_changed: t("changed their password"),
    totp_added: t("added an authenticator app"),
    totp_removed: t("removed the authenticator app"),
    passkey_added: t("added a passkey"),
    passkey_removed: t("removed a passkey"),
    key_shown: t("viewed the API key"),
    key_regenerated: t("created a new API key"),
    key_places_changed: t("changed where the key may be used"),
    customer_link_made: t("created a link for a customer"),
    person_invited: t("invited someone"),
    person_removed: t("removed someone"),
    invitation_withdrawn: t("withdrew an invitation"),
    operator_invited: t("invited an operator"),
    operator_removed: t("removed an operator"),
    account_created: t("created the account"),
    account_deleted: t("deleted the account"),
    account_changed: t("changed the account"),
    backup_made: t("made a backup"),
    backup_downloaded: t("downloaded a backup"),
    plan_deleted: t("deleted the plan"),
    plan_set: t("changed the plan"),
  };
  const ofCall = callWords().find(([pattern]) => pattern.test(action));
  if (ofCall) return html`<span title=${action}>${ofCall[1]}</span>`;
  if (!words[name]) return html`<code>${action}</code>`;
  return rest.length > 0 ? html`${words[name]} <span class="soft">${rest.join(": ")}</span>` : words[name];
}

export function AuditLog() {
  const [pages, setPages] = useState(1);
  const log = useLoad(async () => {
    const rows = [];
    let isWhole = false;
    for (let page = 0; page < pages && !isWhole; page++) {
      const before = rows.length > 0 ? `?before=${rows.at(-1).id}` : "";
      const { data } = await call("GET", `/operator/audit${before}`);
      rows.push(...data);
      isWhole = data.length < PAGE;
    }
    return { rows, isWhole };
  }, [pages]);
  const accounts = useData("/operator/overview");
  const nameOf = (id) => accounts.data?.accounts.find((account) => account.id === id)?.name ?? id;
  const older = html`<button type="button" onClick=${() => setPages(pages + 1)}>${t("Older")}</button>`;
  return html`
    <div class="stack">
      <${Head} title=${t("Audit log")}
        text=${t("Actions in the panel and of commands, newest first. Kept for one year.")} />
      <${Loaded} state=${log}>${({ rows, isWhole }) =>
        html`<${Card}>
          <${Table} caption=${t("Audit log")} rows=${rows} empty=${[t("No entries yet")]} columns=${[
          [t("Action"), (row) => html`<span class="break">${actionWord(row.action)}</span>`],
          [t("User"), (row) =>
            html`<span class="break">${row.login ?? (row.address === "" ? t("command line") : "–")}</span>`],
          [t("Account"), (row) =>
            row.accountId
              ? html`<span class="break">${nameOf(row.accountId)}</span>`
              : html`<span class="soft">${t("Gateway")}</span>`],
          [t("Address"), (row) =>
            html`<span class="mono">${row.address || "–"}</span>`],
          [t("Time"), timeAt("at")],
        ]} />
          ${!isWhole && html`<footer class="row end pager">${older}</footer>`}</${Card}>`}</${Loaded}>
      </div>
  `;
}
