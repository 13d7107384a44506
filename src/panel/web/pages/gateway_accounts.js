// The accounts: plan, subscription, usage.
import { call } from "../api.js";
import { html, useState } from "../html.js";
import { number, t } from "../i18n.js";
import { useData } from "../live.js";
import { go } from "../router.js";
import { Ask, Badge, Card, Field, FormButton, Head, Loaded, rowLink, Select, Table, Time } from "../ui.js";
import { planWords } from "../words.js";

export function Accounts() {
  const overview = useData("/operator/overview");
  return html`
    <div class="stack">
      <${Head} title=${t("Accounts")} text=${t("Each has its own key, lines and quota, and cannot see the others.")}>
        <${NewAccount} reload=${overview.reload} />
        </${Head}>
        <${Loaded} state=${overview}>${({ accounts }) =>
          html`
            <${Card}>
              <${AccountTable} rows=${accounts} reload=${overview.reload} />
              </${Card}>
          `}</${Loaded}>
      </div>
  `;
}

export function AccountTable({ rows, reload }) {
  const now = Date.now();
  const use = (used, limit) => limit === null ? number(used) : `${number(used)} / ${number(limit)}`;
  const empty = [t("No accounts yet"), t("An account has its own API key, lines and plan. Create the first one.")];
  return html`<${Table} caption=${t("Accounts")} rows=${rows} empty=${empty} columns=${[
    [t("Name"), (row) => rowLink(`/accounts/${row.id}`, row.name, "break")],
    [t("Plan"), (row) => row.plan],
    [
      t("Status"),
      (row) =>
        !row.active
          ? html`<${Badge} kind="bad">${t("deactivated")}</${Badge}>`
          : row.expiresAt !== null && row.expiresAt <= now
          ? html`<${Badge} kind="warn">${t("expired")}</${Badge}>`
          : html`<${Badge} kind="good">${t("active")}</${Badge}>`,
      "state",
    ],
    [t("Lines"), (row) => `${number(row.connected)} / ${number(row.lines)}`],
    [t("Today"), (row) => row.quota ? use(row.quota.used.daily, row.quota.daily) : "–"],
    [t("This month"), (row) => row.quota ? use(row.quota.used.monthly, row.quota.monthly) : "–"],
    [
      t("Ends"),
      (row) =>
        row.expiresAt === null ? html`<span class="soft">${t("never")}</span>` : html`<${Time} at=${row.expiresAt} />`,
    ],
    ...(reload ? [["", (row) => html`<${Change} row=${row} reload=${reload} />`, "end"]] : []),
  ]} />`;
}

function PlanField({ wrong, value }) {
  const plans = useData("/operator/plans").data ?? [];
  // Without pauses and limits: for a sandbox, which has an account on it.
  const offered = plans.filter(({ name, accounts }) => name !== "sandbox" || accounts > 0);
  const chosen = value ?? plans.find(({ isDefault }) => isDefault)?.name;
  const [picked, setPicked] = useState(null);
  const shown = plans.find(({ name }) => name === (picked ?? chosen));
  return html`
    <${Select} label=${t("Plan")} name="plan" wrong=${wrong} value=${picked ?? chosen} hint=${shown && planWords(shown)}
      choose=${setPicked} options=${offered.map(({ name }) => [name, name])} />
  `;
}

export function NewAccount() {
  const create = async ({ name, plan }) => {
    const { data } = await call("POST", "/operator/accounts", { body: { name, plan } });
    go(`/accounts/${data.id}`);
  };
  return html`
    <${FormButton} kind="primary" opens="new" title=${t("New account")} submit=${create}
      button=${t("Create")}>${(
        wrong,
      ) =>
        html`
          <${Field} label=${t("Name")} name="name" required maxlength="100" wrong=${wrong("name")} />
          <${PlanField} wrong=${wrong("plan")} />
        `}</${FormButton}>
  `;
}

function Change({ row, reload }) {
  const patch = (body) => call("PATCH", `/operator/accounts/${row.id}`, { body }).then(reload);
  const day = row.expiresAt === null ? "" : new Date(row.expiresAt).toISOString().slice(0, 10);
  const save = async ({ name, plan, ends }) => {
    // The end may have a time of day, which the form does not show.
    const expiresAt = ends === "" ? null : Date.parse(`${ends}T00:00:00Z`);
    await patch({ name, plan, ...(ends !== day && { expiresAt }) });
  };
  const [title, verb, effect] = row.active
    ? [
      t("Deactivate {name}?", { name: row.name }),
      t("Deactivate"),
      t("Its key stops working immediately. Its lines stay linked, and queued messages are still sent."),
    ]
    : [t("Activate {name}?", { name: row.name }), t("Activate"), t("Its key works again immediately.")];
  return html`<span class="row end">
    <${FormButton} kind="small" label=${t("Edit")} title=${row.name} submit=${save} button=${t("Save")}>${(wrong) =>
    html`
      <${Field} label=${t("Name")} name="name" required maxlength="100" defaultValue=${row.name}
        wrong=${wrong("name")} />
      <${PlanField} value=${row.plan} wrong=${wrong("plan")} />
      <${Field} label=${t("Subscription ends")} type="date" max="9999-12-31" name="ends" defaultValue=${day}
        hint=${t("At midnight UTC. Leave empty for no end.")} wrong=${wrong("expiresAt")} />
    `}</${FormButton}>
    <${Ask} kind="small" title=${title} button=${verb} text=${effect} run=${() => patch({ active: !row.active })} />
    </span>`;
}
