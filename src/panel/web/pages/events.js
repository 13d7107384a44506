// Events as they happen, newest first. They are read from the feed with a cursor, so none is missed while the tab is
// hidden or the list is held.
import { api, eventNames } from "../api.js";
import { html, useRef, useState } from "../html.js";
import { t } from "../i18n.js";
import { useLoad } from "../live.js";
import { Card, Empty, Head, Loaded, Select, Time, Work } from "../ui.js";

const MOST = 200;
const PAGE = 1_000;
/** If more happened during an absence, the list continues from now. */
const MOST_PAGES = 10;

export function Events({ account }) {
  /** `after` is the cursor; "" while the account has no events at all. */
  const feed = useRef({ after: "now", events: [] });
  const [type, setType] = useState("");
  /** The events shown while the list is held; null otherwise. */
  const [held, setHeld] = useState(null);
  const live = useLoad(
    async () => {
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
      <${Head} title=${t("Events")} text=${t("What your webhooks receive, as it happens.")}>
        <button type="button" aria-pressed=${held !== null} onClick=${() => setHeld(held ? null : live.data)}>${held
          ? t("Resume updates")
          : t("Pause updates")}</button>
        <${Work} run=${clear}>${t("Clear")}</${Work}></${Head}>
        <${Card}>
          <div class="filters"><${Select} label=${t("Event")} value=${type} onChange=${({ target }) =>
            setType(target.value)} options=${[["", t("all")], ...eventNames().map((name) => [name, name])]} /></div>
          <${Loaded} state=${{ ...live, data: held ?? live.data }}>${(events) => {
            const shown = events.filter(({ event }) => type === "" || event === type);
            return shown.length === 0
              ? html`
                <${Empty} title=${t("Waiting for events…")}>
                  <p>${t("Send a message, or write to one of your lines from a phone.")}</p>
                  </${Empty}>
              `
              : html`<ul class="steps">${
                shown.map((event) =>
                  html`
                    <li key=${event.id}>
                      <div class="grow stack tight">
                        <div
                          class="row"><strong class="mono">${event.event}</strong><span class="soft">${event
                            .sessionName}</span><span class="grow"></span><${Time} at=${event.createdAt} /></div>
                        <details>
                          <summary class="small soft">${brief(event)}</summary>
                          <pre>${JSON.stringify(event, null, 2)}</pre>
                        </details>
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

function brief({ data }) {
  const word = data.text ?? data.error?.message ?? data.status ?? data.phone ?? data.to ?? data.from ?? t("Details");
  return String(word).slice(0, 120);
}
