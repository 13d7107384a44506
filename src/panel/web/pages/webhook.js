// One webhook: its deliveries with every attempt, redelivery, a test, and a new secret.
import { api } from "../api.js";
import { html, useState } from "../html.js";
import { said, t, when } from "../i18n.js";
import { useApi, useData, useEvery, useLoad } from "../live.js";
import { go, setQuery } from "../router.js";
import { Ask, Card, Empty, Field, FormButton, Head, Loaded, Pager, Select, Time, toast, Work } from "../ui.js";
import { DeliveryState, deliveryWord, WebhookState } from "../words.js";
import { chosenEvents, delivery, DeliveryFields, EventChoice, NewSecret } from "./webhooks.js";

const DELIVERY_STATES = ["pending", "delivered", "failed"];
const POLL_MS = 5_000;

export function Webhook({ account, webhook: id, query }) {
  const one = `/webhooks/${id}`;
  const webhook = useApi(account, one, ["webhooks"]);
  const filters = new URLSearchParams(Object.entries({ limit: 20, ...query }));
  const deliveries = useLoad(
    () => api(account, "GET", `${one}/deliveries?${filters}`),
    [account, id, String(filters)],
    ["deliveries"],
  );
  useEvery(POLL_MS, deliveries.reload, deliveries.data?.data.some(({ status }) => status === "pending") ?? false);
  const [secret, setSecret] = useState(null);
  const change = (body) => api(account, "PUT", one, { body }).then(webhook.reload);
  const test = async () => {
    await api(account, "POST", `${one}/test`);
    toast(t("A test event is on its way."));
    setTimeout(deliveries.reload, 1_000);
  };
  const back = [`/accounts/${account}/webhooks`, t("Webhooks")];
  return html`<${Loaded} state=${webhook} back=${back}>${(data) =>
    html`
      <div class="stack">
        <${Head} back=${back} title=${data.url}>
          <${WebhookState} webhook=${data} />
          <${Work} kind="primary" run=${test}>${t("Send test event")}</${Work}>
            <${Work} run=${() => change({ active: !data.active })}>${data.active
              ? t("Turn off")
              : t("Turn on")}</${Work}>
            <${FormButton} title=${t("Edit")} button=${t("Save")} submit=${(values) =>
              change({ url: values.url, events: chosenEvents(values), ...delivery(values) })}>${(wrong) =>
              html`
                <${Field} label=${t("Address")} name="url" type="url" required defaultValue=${data.url}
                  wrong=${wrong("url")} />
                <${EventChoice} chosen=${data.events} wrong=${wrong("events")} />
                <${DeliveryFields} webhook=${data} wrong=${wrong} />
              `}</${FormButton}>
            <${Ask} label=${t("New secret")} title=${t("Create a new secret?")} button=${t("Create new secret")} kind=""
              text=${t("The current secret also keeps signing for a day, so that you have time to switch.")}
              run=${async () => setSecret((await api(account, "POST", `${one}/rotate-secret`)).data.secret)} />
            <${Ask} title=${t("Delete this webhook?")} button=${t("Delete")}
              text=${t("Its delivery log and any waiting events are deleted.")}
              run=${() => api(account, "DELETE", one).then(() => go(back[0]))} />
          </${Head}>
          ${data.switchedOff &&
            html`<p class="note bad">${
              t("The gateway turned it off: {reason}", { reason: said(data.switchedOff) })
            }</p>`}
          ${data.active && data.failingSince &&
            html`<p class="note bad">${
              t("No delivery has succeeded since {time}. See the attempts below.", {
                time: when(data.failingSince),
              })
            }</p>`}
          ${data.previousSecretUntil &&
            html`<p class="note">${
              t("Both the old and the new secret sign until {time}.", { time: when(data.previousSecretUntil) })
            }</p>`}
          <${Card} title=${t("Deliveries")}
            actions=${html`<${Again} account=${account} id=${id} reload=${deliveries.reload} />`}>
            <div class="filters"><${Select} label=${t("Status")} value=${query.status ?? ""}
              choose=${(status) => setQuery({ status, before: "" })}
              options=${[["", t("all")], ...DELIVERY_STATES.map((status) => [status, deliveryWord(status)])]} /></div>
            <${Loaded} state=${deliveries}>${({ data: rows, next }) =>
              rows.length === 0
                ? (query.status ? html`<${Empty} title=${t("No matches")} />` : html`
                  <${Empty} title=${t("No deliveries yet")}
                    text=${t("Every event appears here with all its attempts.")} />
                `)
                : html`
                  <ul class="steps">${rows.map((row) =>
                    html`<${Delivery} key=${row.id} account=${account} row=${row} again=${async () => {
                      await api(account, "POST", `${one}/deliveries/${row.id}/redeliver`);
                      toast(t("Redelivery scheduled."));
                      await deliveries.reload();
                    }} />`
                  )}</ul>
                  <${Pager} older=${next && { before: next }} />
                `}</${Loaded}>
          </${Card}>
          ${secret && html`<${NewSecret} secret=${secret} close=${() => setSecret(null)} />`}
        </div>
    `}</${Loaded}>`;
}

function Again({ account, id, reload }) {
  const submit = async ({ since }) => {
    const body = { since: new Date(since).toISOString() };
    const { data } = await api(account, "POST", `/webhooks/${id}/redeliver`, { body });
    toast(t("{n} redeliveries scheduled.", { n: data.scheduled }));
    await reload();
  };
  return html`
    <${FormButton} kind="small" label=${t("Redeliver since…")} title=${t("Redeliver")} submit=${submit}
      button=${t("Redeliver")}>${(wrong) =>
        html`
          <${Field} label=${t("Events since")} name="since" type="datetime-local" required wrong=${wrong("since")} />
        `}</${FormButton}>
  `;
}

function Delivery({ account, row, again }) {
  const [isOpen, setOpen] = useState(false);
  const last = row.attempts.at(-1);
  return html`
    <li>
      <div class="grow stack tight">
        <div class="row"><strong class="mono">${row.event}</strong>
          <${DeliveryState} status=${row.status} />
          <span class="soft small">${last && (last.status ?? said(last.error))}</span>
          <span class="grow"></span><${Time} at=${row.createdAt} /></div>
        <details>
          <summary class="small soft">${t("Attempts")} (${row.attempts.length})</summary>
          <ul class="stack tight small">
          ${row.attempts.map(({ at, status, durationMs, error }) =>
            html`
              <li class="row"><${Time} at=${at} /><span class="mono">${status ?? "–"}</span>
                <span>${Math.round(durationMs)} ms</span><span class="soft break">${said(error)}</span></li>
            `
          )}
          ${row.nextAttemptAt &&
            html`<li>${t("Next attempt: {time}", { time: when(row.nextAttemptAt) })}</li>`}</ul>
        </details>
        <details onToggle=${({ target }) => setOpen(target.open)}><summary class="small soft">${t("Payload")}</summary>
          ${isOpen && html`<${Payload} account=${account} event=${row.eventId} />`}</details>
      </div>
      <${Work} kind="small" run=${again}>${t("Redeliver")}</${Work}></li>
  `;
}

/** What the webhook gets, in the gateway's own format. */
function Payload({ account, event }) {
  const found = useData(`/accounts/${account}/events/${event}`);
  return html`<${Loaded} state=${found}>${(data) => html`<pre>${JSON.stringify(data, null, 2)}</pre>`}</${Loaded}>`;
}
