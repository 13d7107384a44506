// The newest events, then those that happen, newest first. They are read from the feed with a cursor, so none is missed
// while the tab is hidden or the list is held. Each opens what a webhook gets, its message, and its deliveries.
import { api, call, eventNames } from "../api.js";
import { html, useRef, useState } from "../html.js";
import { said, t } from "../i18n.js";
import { useData, useLoad } from "../live.js";
import { href } from "../router.js";
import { Card, Empty, Head, Loaded, Select, Time, Work } from "../ui.js";
import { DeliveryState, lineWord, messageWord } from "../words.js";

const MOST = 200;
const PAGE = 1_000;
/** If more happened during an absence, the list continues from now. */
const MOST_PAGES = 10;

export function Events({ account }) {
  /** `after` is the cursor; "" while the account has no events at all. */
  const feed = useRef(null);
  const [type, setType] = useState("");
  /** The events shown while the list is held; null otherwise. */
  const [held, setHeld] = useState(null);
  const live = useLoad(
    async () => {
      if (feed.current === null) {
        const { data } = await call("GET", `/accounts/${account}/events`);
        feed.current ??= { after: data[0]?.id ?? "", events: data };
        // Shown at once: what happens from now on is told.
        return feed.current.events;
      }
      for (let page = 1, more = true; more; page++) {
        const from = feed.current;
        const after = from.after && `&after=${from.after}`;
        const { data, next } = await api(account, "GET", `/events?limit=${PAGE}${after}`);
        // Another call may have read them in the meantime.
        if (feed.current !== from) break;
        feed.current = {
          after: page === MOST_PAGES ? "now" : next ?? from.after.replace("now", ""),
          events: [...data.toReversed(), ...from.events].slice(0, MOST),
        };
        more = data.length > 0;
      }
      return feed.current.events;
    },
    [account],
    ["events"],
  );
  const clear = () => {
    feed.current = { ...feed.current, events: [] };
    setHeld(null);
    return live.reload();
  };
  return html`
    <div class="stack">
      <${Head} title=${t("Events")} text=${t("What your webhooks receive: the newest, then as it happens.")}>
        <button type="button" aria-pressed=${held !== null} onClick=${() => setHeld(held ? null : live.data)}>${held
          ? t("Resume updates")
          : t("Pause updates")}</button>
        <${Work} run=${clear}>${t("Clear")}</${Work}></${Head}>
        <${Card}>
          <div class="filters"><${Select} label=${t("Event")} value=${type} choose=${setType}
            options=${[["", t("all")], ...eventNames().map((name) => [name, name])]} /></div>
          <${Loaded} state=${{ ...live, data: held ?? live.data }}>${(events) => {
            const shown = events.filter(({ event }) => type === "" || event === type);
            return shown.length === 0
              ? html`
                <${Empty} title=${t("Waiting for events…")}
                  text=${t("Send a message, or write to one of your lines from a phone.")} />
              `
              : html`<ul class="steps">${
                shown.map((event) =>
                  html`
                    <li key=${event.id}>
                      <div class="grow stack tight">
                        <div class="row"><strong class="mono">${event.event}</strong>
                          <span class="soft">${event.sessionName}</span><span class="grow"></span>
                          <${Time} at=${event.createdAt} /></div>
                        <${Details} account=${account} event=${event} />
                      </div>
                    </li>
                  `
                )
              }</ul>`;
          }}</${Loaded}>
        </${Card}>
      </div>
  `;
}

/** What a webhook gets; once it is opened, the way to the message and to the deliveries. */
function Details({ account, event }) {
  const [isOpen, setOpen] = useState(false);
  return html`
    <details onToggle=${({ target }) => setOpen(target.open)}>
      <summary class="small soft">${brief(event)}</summary>
      <pre>${JSON.stringify(event, null, 2)}</pre>
      ${event.data.messageId?.startsWith("msg_") &&
        html`<p><a href=${href(`/accounts/${account}/messages/${event.data.messageId}`)}>${
          t("Show the message")
        }</a></p>`}
      ${isOpen && html`<${Deliveries} account=${account} event=${event} />`}
    </details>
  `;
}

function Deliveries({ account, event }) {
  const found = useData(`/accounts/${account}/events/${event.id}/deliveries`, ["deliveries"]);
  return html`<${Loaded} state=${found}>${(rows) =>
    rows.length === 0
      ? html`<p class="small soft">${t("No webhook has a recent delivery of it.")}</p>`
      : html`<ul class="stack tight small">${
        rows.map((row) =>
          html`
            <li key=${row.webhookId} class="row">
              <a class="break" href=${href(`/accounts/${account}/webhooks/${row.webhookId}`)}>${row.url}</a>
              <${DeliveryState} status=${row.status} />
            </li>
          `
        )
      }</ul>`}</${Loaded}>`;
}

function brief({ event, data }) {
  const status = event.startsWith("session.") ? lineWord(data) : messageWord(data.status);
  const word = data.text ?? said(data.error?.message) ?? status ?? data.phone ?? data.to ?? data.from ?? t("Details");
  return String(word).slice(0, 120);
}
