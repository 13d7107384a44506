// Events as they happen. The newest come first; nothing is loaded twice.
import { eventNames } from "../api.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { t } from "../i18n.js";
import { listen } from "../live.js";
import { Card, Empty, Field, Head, Time } from "../ui.js";

const MOST = 200;

export function Events({ account }) {
  const [events, setEvents] = useState([]);
  const [type, setType] = useState("");
  const [paused, setPaused] = useState(false);
  const held = useRef(false);
  held.current = paused;
  useEffect(
    () => listen("happened", (event) => held.current || setEvents((known) => [event, ...known].slice(0, MOST))),
    [account],
  );
  const shown = events.filter(({ event }) => type === "" || event === type);
  return html`
    <div class="stack">
      <${Head} title=${t("Events")} text=${t("Live: what your webhooks are told, the moment it happens.")}>
          <button type="button" aria-pressed=${paused} onClick=${() => setPaused(!paused)}>${paused
            ? t("Go on")
            : t("Hold")}</button>
          <button type="button" disabled=${events.length === 0} onClick=${() => setEvents([])}>${t(
            "Clear",
          )}</button></${Head}>
        <${Card}>
          <div class="filters"><${Field} as="select" label=${t("Event")} onChange=${({ target }) =>
            setType(target.value)}><option value="">${t("all")}</option>${eventNames().map((name) =>
              html`<option value=${name}>${name}</option>`
            )}</${Field}></div>
          ${shown.length === 0
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
            }</ul>`}
        </${Card}>
      </div>
  `;
}

function brief({ data }) {
  const word = data.text ?? data.error?.message ?? data.status ?? data.phone ?? data.to ?? data.from ?? t("Details");
  return String(word).slice(0, 120);
}
