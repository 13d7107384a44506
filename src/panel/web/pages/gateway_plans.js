// The plan catalogue.
import { call, CallError } from "../api.js";
import { html, useState } from "../html.js";
import { number, t } from "../i18n.js";
import { useData } from "../live.js";
import { Field, FormDialog, Head, Select, TableCard } from "../ui.js";
import { planWords, weekdays } from "../words.js";

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
      <${Head} title=${t("Plans")}
        text=${t("The limits of an account: lines, messages, and pauses between messages.")}>
          <button type="button" class="primary" onClick=${() => setEdited(NEW)}>${t("New plan")}</button></${Head}>
        <${TableCard} state=${plans} caption=${t("Plans")} keyOf=${(row) => row.name} columns=${[
          [t("Name"), (row) => html`<strong>${row.name}</strong>`],
          [t("Limits"), (row) => html`<span class="break">${planWords(row)}</span>`],
          [t("Accounts"), (row) => number(row.accounts)],
          [t("Requests per minute"), (row) => limit(row.requestsPerMinute)],
          [
            "",
            (row) => html`<button type="button" class="small" onClick=${() => setEdited(row)}>${t("Edit")}</button>`,
            "end",
          ],
        ]} />
        ${edited && html`
          <${Edit} plan=${edited} others=${plans.data} close=${() => setEdited(null)} reload=${plans.reload} />
        `}
      </div>
  `;
}

function Edit({ plan, others, close, reload }) {
  const save = async (values) => {
    if (!plan.name && others?.some(({ name }) => name === values.name)) {
      throw new CallError({ errors: [{ path: "name", message: t("There is already a plan with this name.") }] });
    }
    await call("PUT", `/operator/plans/${encodeURIComponent(plan.name || values.name)}`, {
      body: {
        sessions: Number(values.sessions),
        daily: limitOf(values.daily),
        monthly: limitOf(values.monthly),
        delayMinMs: Math.round(Number(values.delayMinMs) * 1000),
        delayMaxMs: Math.round(Number(values.delayMaxMs) * 1000),
        requestsPerMinute: limitOf(values.requestsPerMinute),
        hours: hoursIn(values),
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
      <${Field} label=${label} name=${name} type="number" min="0" defaultValue=${plan[name] ?? ""}
        hint=${t("Leave empty for no limit.")} wrong=${wrong(name)} />
    `;
  const seconds = (name, label, wrong, most) =>
    html`
      <${Field} label=${label} name=${name} type="number" step="any" min="0" max=${most} required
        defaultValue=${plan[name] / 1000} wrong=${wrong(name)} />
    `;
  return html`
    <${FormDialog} title=${plan.name || t("New plan")} close=${close} submit=${save} button=${t("Save")}>${(wrong) =>
      html`
        ${!plan.name &&
          html`
            <${Field} label=${t("Name")} name="name" required pattern="[a-z0-9][a-z0-9_\\-]*"
              hint=${t("Lowercase letters, digits, - and _.")} wrong=${wrong("name")} />
          `}
        <${Field} label=${t("Lines")} name="sessions" type="number" min="0" required defaultValue=${plan.sessions}
          wrong=${wrong("sessions")} />
        <div class="grid">
          ${limit("daily", t("Messages per day"), wrong)}
          ${limit("monthly", t("Messages per month"), wrong)}
          ${seconds("delayMinMs", t("Minimum pause (seconds)"), wrong)}
          ${seconds("delayMaxMs", t("Maximum pause (seconds)"), wrong)}
        </div>
        ${limit("requestsPerMinute", t("Requests per minute"), wrong)}
        <${Hours} hours=${plan.hours} wrong=${wrong("hours")} />
        <div class="grid">
          ${limit("newChatsDaily", t("New chats per line and day"), wrong)}
          ${seconds("typingMs", t("Show “typing” for (seconds)"), wrong, 20)}
        </div>
        <label class="check"><input type="checkbox" name="warmUp" defaultChecked=${plan.warmUp} /> ${t(
          "Warm-up: fewer new chats in a line's first four weeks",
        )}</label>
      `}</${FormDialog}>
  `;
}

/** Returns the hours that the form's values name; null for any time. */
function hoursIn({ restricted, from, to, timeZone, ...values }) {
  if (!restricted) return null;
  const days = weekdays().map(([day]) => day).filter((day) => day in values);
  // Until midnight: a time field has no 24:00.
  return { days, from, to: to === "00:00" ? "24:00" : to, timeZone };
}

/** The fields for sending hours; those of a new restriction are filled with office hours of the browser's place. */
function Hours({ hours, wrong }) {
  const [isOn, setOn] = useState(hours !== null);
  const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const { days, from, to, timeZone } = hours ??
    { days: ["mon", "tue", "wed", "thu", "fri"], from: "09:00", to: "18:00", timeZone: here };
  const zones = [...new Set([timeZone, here, "UTC", ...Intl.supportedValuesOf("timeZone")])].sort();
  return html`
    <fieldset class="stack tight">
      <legend>${t("Sending hours")}</legend>
      <label class="check"><input type="checkbox" name="restricted" checked=${isOn} onChange=${({ target }) =>
        setOn(target.checked)} /> ${t("Send only at certain hours")}</label>
      ${isOn && html`
        <div class="row choice">${weekdays().map(([day, word]) =>
          html`<label key=${day}><input type="checkbox" name=${day} defaultChecked=${
            days.includes(day)
          } />${word}</label>`
        )}</div>
        <div class="grid">
          <${Field} label=${t("From")} name="from" type="time" required defaultValue=${from} />
          <${Field} label=${t("Until")} name="to" type="time" required defaultValue=${to === "24:00" ? "00:00" : to} />
          <${Select} label=${t("Time zone")} name="timeZone" value=${timeZone} options=${zones.map((zone) => [
            zone,
            zone,
          ])} />
        </div>
        ${wrong && html`<span class="wrong">${wrong}</span>`}
      `}
    </fieldset>
  `;
}
