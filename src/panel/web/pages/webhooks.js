// The list of webhooks, and the dialog to add one.
import { eventNames, usualEvents } from "../api.js";
import { html, useState } from "../html.js";
import { t, tn } from "../i18n.js";
import { useApi } from "../live.js";
import { go, href } from "../router.js";
import { Badge, Card, Dialog, Empty, Field, Form, Head, Loaded, Secret, Table, Time, usePost } from "../ui.js";
import { webhookKind, webhookWord } from "../words.js";

export function Webhooks({ account }) {
  const webhooks = useApi(account, "/webhooks", ["webhooks"]);
  const [adding, setAdding] = useState(false);
  const add = html`<button type="button" class="primary" onClick=${() => setAdding(true)}>${
    t("Add a webhook")
  }</button>`;
  return html`
    <div class="stack">
      <${Head} title=${t("Webhooks")} text=${t(
        "Each event is sent to your URL, signed, and retried if your server is down.",
      )}>${add}</${Head}>
        <${Loaded} state=${webhooks}>${(rows) =>
          html`<${Card}>${
            rows.length === 0
              ? html`<${Empty} title=${t("No webhooks yet")}><p>${
                t("Add your URL to be notified when a message is sent, delivered, read or received.")
              }</p>${add}</${Empty}>`
              : html`<${Table} caption=${t("Webhooks")} rows=${rows} columns=${[
                [t("Address"), (row) =>
                  html`<a class="main break" href=${href(`/accounts/${account}/webhooks/${row.id}`)}>${row.url}</a>`],
                [t("Status"), (row) =>
                  html`<${Badge} kind=${webhookKind(row)}>${webhookWord(row)}</${Badge}>`],
                [t("Events"), (row) =>
                  usualEvents().every((name) =>
                      row.events.includes(name)
                    )
                    ? t("all")
                    : tn("1 event", "{n} events", row.events.length)],
                [t("Created"), (row) =>
                  html`<${Time} at=${row.createdAt} />`],
              ]} />`
          }</${Card}>`}</${Loaded}>
        ${adding && html`<${NewWebhook} account=${account} close=${() => setAdding(false)} />`}
      </div>
  `;
}

function NewWebhook({ account, close }) {
  const post = usePost(account);
  const [made, setMade] = useState(null);
  const submit = async (values) => {
    const events = chosenEvents(values);
    const body = { url: values.url, ...(events.length > 0 && { events }) };
    setMade((await post("/webhooks", { body })).data);
  };
  if (made) {
    const leave = () => go(`/accounts/${account}/webhooks/${made.id}`);
    return html`
      <${Dialog} key="made" title=${t("Save this secret")} close=${leave}>
        <p>${t("Use it to verify that a request comes from this gateway. It is shown only once.")}</p>
        <${Secret} text=${made.secret} />
        <div class="row end"><button type="button" class="primary" onClick=${leave}>${t(
          "Done, I saved it",
        )}</button></div>
        </${Dialog}>
    `;
  }
  return html`
    <${Dialog} title=${t("Add a webhook")} close=${close}>
      <${Form} submit=${submit} button=${t("Add")} cancel=${close}>${(wrong) =>
        html`
          <${Field} label=${t("Address")} name="url" type="url" required placeholder="https://example.com/paloma"
            wrong=${wrong("url")} />
          <${EventChoice} wrong=${wrong("events")} />
        `}</${Form}></${Dialog}>
  `;
}

export const chosenEvents = (values) => eventNames().filter((name) => values[name]);

/** The choice of events, for a new webhook (without `chosen`) or for an existing one. */
export function EventChoice({ chosen, wrong }) {
  return html`<fieldset><legend>${
    chosen ? t("Events") : t("Events (all if none is selected)")
  }</legend><div class="grid">${
    eventNames().map((name) =>
      html`
        <label class="check"
          key=${name}><input type="checkbox" name=${name} defaultChecked=${chosen?.includes(
            name,
          )} /><span class="mono">${name}</span></label>
      `
    )
  }</div>
    ${wrong && html`<span class="wrong">${wrong}</span>`}</fieldset>`;
}
