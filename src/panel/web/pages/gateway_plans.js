// The plan catalogue.
import { call, CallError } from "../api.js";
import { html, useState } from "../html.js";
import { number, t } from "../i18n.js";
import { useData } from "../live.js";
import { Card, Dialog, Field, Form, Head, Loaded, Table } from "../ui.js";

const NEW = {
  name: "",
  sessions: 1,
  daily: null,
  monthly: null,
  delayMinMs: 5_000,
  delayMaxMs: 15_000,
  requestsPerMinute: 600,
  hours: null,
  newChatsDaily: null,
  warmUp: false,
  typingMs: 0,
};
const limitOf = (text) => text.trim() === "" ? null : Number(text);

export function Plans() {
  const plans = useData("/operator/plans");
  const [edited, setEdited] = useState(null);
  const limit = (value) => value === null ? html`<span class="soft">${t("no limit")}</span>` : number(value);
  return html`
    <div class="stack">
      <${Head} title=${t("Plans")} text=${t(
        "The limits of an account: lines, messages, and pauses between messages.",
      )}>
          <button type="button" class="primary" onClick=${() => setEdited(NEW)}>${t("New plan")}</button></${Head}>
        <${Loaded} state=${plans}>${(rows) =>
          html`
            <${Card}>
              <${Table} caption=${t("Plans")} rows=${rows} keyOf=${(row) => row.name} columns=${[
                [t("Name"), (row) => html`<strong>${row.name}</strong>`],
                [t("Accounts"), (row) => number(row.accounts)],
                [t("Lines"), (row) => number(row.sessions)],
                [t("Per day"), (row) => limit(row.daily)],
                [t("Per month"), (row) => limit(row.monthly)],
                [t("Pause (seconds)"), (row) => `${row.delayMinMs / 1000} – ${row.delayMaxMs / 1000}`],
                [t("Requests per minute"), (row) => limit(row.requestsPerMinute)],
                ["", (row) =>
                  html`<button type="button" class="small" onClick=${() =>
                    setEdited(row)}>${t("Edit")}</button>`, "end"],
              ]} />
              </${Card}>
          `}</${Loaded}>
        ${edited && html`
          <${Edit} plan=${edited} others=${plans.data} close=${() => setEdited(null)} reload=${plans.reload} />
        `}
      </div>
  `;
}

function Edit({ plan, others, close, reload }) {
  const save = async (values) => {
    if (!plan.name && others?.some(({ name }) => name === values.name)) {
      throw new CallError({ errors: [{ path: "name", message: t("There is already a plan with this name.") }] }, 0);
    }
    await call("PUT", `/operator/plans/${encodeURIComponent(plan.name || values.name)}`, {
      body: {
        sessions: Number(values.sessions),
        daily: limitOf(values.daily),
        monthly: limitOf(values.monthly),
        delayMinMs: Math.round(Number(values.delayMinMs) * 1000),
        delayMaxMs: Math.round(Number(values.delayMaxMs) * 1000),
        requestsPerMinute: limitOf(values.requestsPerMinute),
        hours: values.hours.trim() || null,
        newChatsDaily: limitOf(values.newChatsDaily),
        warmUp: "warmUp" in values,
        typingMs: Math.round(Number(values.typingMs) * 1000),
      },
    });
    close();
    await reload();
  };
  const limit = (name, label, wrong) =>
    html`
      <${Field} label=${label} name=${name} type="number" min="0" defaultValue=${plan[name] ?? ""} hint=${t(
        "Leave empty for no limit.",
      )}
        wrong=${wrong(name)} />
    `;
  return html`
    <${Dialog} title=${plan.name || t("New plan")} close=${close}>
      <${Form} submit=${save} button=${t("Save")} cancel=${close}>${(wrong) =>
        html`
          ${!plan.name &&
            html`<${Field} label=${t("Name")} name="name" required pattern="[a-z0-9][a-z0-9_\\-]*" hint=${
              t("Lowercase letters, digits, - and _.")
            } wrong=${wrong("name")} />`}
          <${Field} label=${t("Lines")} name="sessions" type="number" min="0" required defaultValue=${plan.sessions}
            wrong=${wrong("sessions")} />
          <div class="grid">${limit("daily", t("Messages per day"), wrong)}${limit(
            "monthly",
            t("Messages per month"),
            wrong,
          )}
            <${Field} label=${t(
              "Minimum pause (seconds)",
            )} name="delayMinMs" type="number" step="any" min="0" required defaultValue=${plan.delayMinMs /
              1000} wrong=${wrong(
                "delayMinMs",
              )} />
            <${Field} label=${t(
              "Maximum pause (seconds)",
            )} name="delayMaxMs" type="number" step="any" min="0" required defaultValue=${plan.delayMaxMs /
              1000} wrong=${wrong(
                "delayMaxMs",
              )} /></div>
          ${limit("requestsPerMinute", t("Requests per minute"), wrong)}
          <${Field} label=${t("Sending hours")} name="hours" defaultValue=${plan.hours ?? ""} hint=${t(
            "For example mon-fri 09:00-18:00 Europe/Madrid. Leave empty for any time.",
          )} wrong=${wrong("hours")} />
          <div class="grid">${limit("newChatsDaily", t("New chats per line and day"), wrong)}
            <${Field} label=${t(
              "Show “typing” for (seconds)",
            )} name="typingMs" type="number" step="any" min="0" required max="20" defaultValue=${plan.typingMs /
              1000} wrong=${wrong(
                "typingMs",
              )} /></div>
          <label class="check"><input type="checkbox" name="warmUp" defaultChecked=${plan.warmUp} /> ${t(
            "Warm-up: fewer new chats in a line's first four weeks",
          )}</label>
        `}</${Form}></${Dialog}>
  `;
}
