// The list of webhooks, and the dialog to add one.
import { eventNames, usualEvents } from "../api.js";
import { html, useState } from "../html.js";
import { t, tn } from "../i18n.js";
import { useApi } from "../live.js";
import { go, useDialog } from "../router.js";
import { Badge, Field, FormDialog, Head, rowLink, SecretDialog, Select, TableCard, timeAt, usePost } from "../ui.js";
import { WebhookState } from "../words.js";

export function Webhooks({ account }) {
  const webhooks = useApi(account, "/webhooks", ["webhooks"]);
  const [adding, setAdding] = useDialog("new");
  const add = html`<button type="button" class="primary" onClick=${() => setAdding(true)}>${
    t("Add a webhook")
  }</button>`;
  return html`
    <div class="stack">
      <${Head} title=${t("Webhooks")}
        text=${t("Each event is sent to your URL, signed, and retried if your server is down.")}>${add}</${Head}>
        <${TableCard} state=${webhooks} caption=${t("Webhooks")} empty=${[
          t("No webhooks yet"),
          t("Add your URL to be notified when a message is sent, delivered, read or received."),
          add,
        ]} columns=${[
          [t("Address"), (row) => rowLink(`/accounts/${account}/webhooks/${row.id}`, row.url, "break")],
          [t("Status"), (row) => html`<${State} account=${account} webhook=${row} />`, "state"],
          [t("Events"), ({ events }) => hasUsual(events) ? t("all") : tn("1 event", "{n} events", events.length)],
          [t("Created"), timeAt("createdAt")],
        ]} />
        ${adding && html`<${NewWebhook} account=${account} close=${() => setAdding(false)} />`}
      </div>
  `;
}

const hasUsual = (events) => usualEvents().every((name) => events.includes(name));

/** Active, failing, or waiting to try a delivery again. */
function State({ account, webhook }) {
  const pending = useApi(account, `/webhooks/${webhook.id}/deliveries?status=pending&limit=1`, [
    "webhooks",
    "deliveries",
  ]);
  const isRetrying = webhook.active && !webhook.failingSince && pending.data?.[0]?.attempts.length > 0;
  return isRetrying
    ? html`<${Badge} kind="warn">${t("retrying")}</${Badge}>`
    : html`<${WebhookState} webhook=${webhook} />`;
}

function NewWebhook({ account, close }) {
  const post = usePost(account);
  const [made, setMade] = useState(null);
  const submit = async (values) => {
    const events = chosenEvents(values);
    const body = { url: values.url, ...delivery(values), ...(events.length > 0 && { events }) };
    setMade((await post("/webhooks", { body })).data);
  };
  if (made) {
    const leave = () => go(`/accounts/${account}/webhooks/${made.id}`);
    return html`<${NewSecret} secret=${made.secret} close=${leave} />`;
  }
  return html`
    <${FormDialog} title=${t("Add a webhook")} close=${close} submit=${submit} button=${t("Add")}>${(wrong) =>
      html`
        <${Field} label=${t("Address")} name="url" type="url" required placeholder="https://example.com/paloma"
          wrong=${wrong("url")} />
        <${EventChoice} wrong=${wrong("events")} />
        <${DeliveryFields} wrong=${wrong} />
      `}</${FormDialog}>
  `;
}

/** The secret of a webhook: a new one's, or the one that replaces it. */
export function NewSecret({ secret, close }) {
  const text = t("Use it to verify that a request comes from this gateway. It is shown only once.");
  return html`<${SecretDialog} title=${t("Save this secret")} text=${text} secret=${secret} close=${close} />`;
}

/** What `DeliveryFields` change. Header values are never shown, so an empty field leaves them as they are. */
export function delivery({ chats, headers, noHeaders }) {
  const lines = headers.split("\n").map((line) => line.trim()).filter(Boolean);
  if (lines.length === 0) return { chats, ...(noHeaders && { headers: {} }) };
  const pairs = lines.map((line) => {
    const [name, ...value] = line.split(":");
    return [name.trim(), value.join(":").trim()];
  });
  return { chats, headers: Object.fromEntries(pairs) };
}

/** The fields for whose events are sent, and with which headers: of a new webhook, or filled with those of `webhook`. */
export function DeliveryFields({ webhook: { chats, headerNames } = { chats: "all", headerNames: [] }, wrong }) {
  const isSet = headerNames.length > 0;
  return html`
    <${Select} label=${t("Chats")} name="chats" value=${chats} wrong=${wrong("chats")} options=${[
      ["all", t("All chats")],
      ["direct", t("Only 1:1 chats")],
      ["groups", t("Only groups")],
    ]} />
    <${Field} as="textarea" label=${t("Additional headers")} name="headers" rows="2" spellcheck="false"
      autocomplete="off" placeholder="Authorization: Bearer …" wrong=${wrong("headers")} hint=${isSet
        ? t("Set: {names}. Values are never shown; what you enter replaces them all.", {
          names: headerNames.join(", "),
        })
        : t("One per line, such as for a login. Stored encrypted and never shown.")} />
    ${isSet &&
      html`<label class="check"><input type="checkbox" name="noHeaders" /><span>${
        t("Remove the additional headers")
      }</span></label>`}
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
        <label class="check" key=${name}>
          <input type="checkbox" name=${name} defaultChecked=${chosen?.includes(name)} />
          <span class="mono">${name}</span></label>
      `
    )
  }</div>
    ${wrong && html`<span class="wrong">${wrong}</span>`}</fieldset>`;
}
