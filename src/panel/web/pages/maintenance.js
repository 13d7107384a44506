// What keeps a gateway well: backups, the doctor's checks, and the newest entries of the log.
import { apiUrl, call } from "../api.js";
import { html, useEffect, useState } from "../html.js";
import { bytes, t } from "../i18n.js";
import { useData, useEvery } from "../live.js";
import { Badge, Card, Head, Loaded, Select, Table, timeAt, toast, Work } from "../ui.js";
import { backupWords } from "../words.js";

const POLL_MS = 2_000;
const LOG_POLL_MS = 10_000;

export function Maintenance() {
  return html`
    <div class="stack">
      <${Head} title=${t("Maintenance")} text=${t("Backups, checks, and the log of this process.")} />
      <${Backups} />
      <${Doctor} />
      <${Log} />
    </div>
  `;
}

function Backups() {
  const state = useData("/operator/backups");
  const isRunning = state.data?.isRunning ?? false;
  useEvery(isRunning ? POLL_MS : LOG_POLL_MS, state.reload);
  const make = () => call("POST", "/operator/backups").then(state.reload);
  return html`
    <${Card} title=${t("Backups")} actions=${html`
      <${Work} kind="primary" run=${make} disabled=${isRunning}>${isRunning
        ? t("In progress…")
        : t("Back up now")}</${Work}>
    `}>
      <${Loaded} state=${state}>${({ folder, kept, failure, lastAt, backups }) =>
        html`
          <div class="pad stack tight">
            <p role="status">${backupWords(lastAt)}</p>
            ${failure && html`<p class="note bad" role="alert">${failure}</p>`}
            <p class="hint">${t(
              "Those made here are in {folder}; the newest {n} are kept. Keep a copy on another machine, and the secret key apart: it is in none of them.",
              { folder, n: kept },
            )}</p>
          </div>
          ${backups.length > 0 && html`
            <${Table} caption=${t("Backups")} rows=${backups} keyOf=${(row) => row.name} columns=${[
              [t("Name"), (row) => html`<span class="mono break">${row.name}</span>`],
              [t("Time"), timeAt("at")],
              [t("Size"), (row) => bytes(row.bytes)],
              ["", (row) =>
                html`<a class="button small" href=${apiUrl(`/operator/backups/${row.name}`)} download=${row.name}>${
                  t("Download")
                }</a>`, "end"],
            ]} />
          `}
        `}</${Loaded}>
      </${Card}>
  `;
}

function Doctor() {
  const [findings, setFindings] = useState(null);
  const look = async () => setFindings((await call("POST", "/operator/doctor")).data);
  useEffect(() => void look().catch(({ message }) => toast(message, "bad")), []);
  return html`
    <${Card} title=${t("Checks")} actions=${html`<${Work} run=${look}>${t("Check again")}</${Work}>`}>
      ${findings === null ? html`<p class="pad soft" role="status">${t("Checking…")}</p>` : html`
        <${Table} caption=${t("Checks")} rows=${findings} keyOf=${(row) => row.check} columns=${[
          [t("Check"), (row) => row.check],
          [
            t("Status"),
            ({ ok, hint }) =>
              ok
                ? html`<${Badge} kind=${hint ? "warn" : "good"}>${hint ? t("hint") : t("good")}</${Badge}>`
                : html`<${Badge} kind="bad">${t("failed")}</${Badge}>`,
          ],
          [
            t("Found"),
            ({ detail, hint }) =>
              html`<span class="break">${detail}${hint && html`<br /><span class="soft">→ ${hint}</span>`}</span>`,
          ],
        ]} />
      `}
      </${Card}>
  `;
}

/** The log's levels as pino numbers them. */
const LEVELS = { 10: "trace", 20: "debug", 30: "info", 40: "warn", 50: "error", 60: "fatal" };
const GRAVE = 40;

function Log() {
  const [least, setLeast] = useState(String(GRAVE));
  const state = useData(`/operator/log?least=${least}`);
  useEvery(LOG_POLL_MS, state.reload);
  return html`
    <${Card} title=${t("Log")} actions=${html`
      <${Select} label=${t("Entries")} value=${least} choose=${setLeast}
        options=${[[String(GRAVE), t("Warnings and errors")], ["0", t("All")]]} />
    `}>
      <${Loaded} state=${state}>${(entries) =>
        html`
          <${Table} caption=${t("Log")} empty=${[t("Nothing was logged")]} rows=${entries} keyOf=${(row) =>
            row.time + row.msg + (row.requestId ?? "")} columns=${[
            [t("Time"), timeAt("time")],
            [
              t("Level"),
              ({ level }) =>
                html`<${Badge} kind=${level > GRAVE ? "bad" : level === GRAVE ? "warn" : ""}>${
                  LEVELS[level] ?? level
                }</${Badge}>`,
            ],
            [
              t("Entry"),
              ({ time: _time, level: _level, msg, ...rest }) =>
                html`<span class="break">${msg} <code class="soft">${fields(rest)}</code></span>`,
            ],
          ]} />
        `}</${Loaded}>
      </${Card}>
  `;
}

const fields = (rest) =>
  Object.entries(rest).map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" ");
