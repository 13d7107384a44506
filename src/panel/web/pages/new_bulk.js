// A bulk from a CSV file: its columns fill in a template or a text, and wrong numbers are shown before anything leaves.
import { call } from "../api.js";
import { decode, read, variableOf } from "../csv.js";
import { html, useEffect, useState } from "../html.js";
import { exactly, number, said, t, tn } from "../i18n.js";
import { useApi, useLines } from "../live.js";
import { go } from "../router.js";
import { Card, Empty, Field, Form, Head, Loaded, Select, Table, usePost } from "../ui.js";
import { phone } from "../words.js";
import { fill, Preview, textsOf, variablesIn } from "./templates.js";

const MOST_ROWS = 10_000;
const MOST_BYTES = 30 * 1024 * 1024;
/** The gateway refuses a longer recipient. */
const MOST_RECIPIENT = 101;
/** Messages written at a time, between which the page draws and hears its keys. */
const SLICE = 500;
const ROWS_SHOWN = 3;
const FAULTS_SHOWN = 100;
const TEXT = "";

export function NewBulk({ account }) {
  const [file, setFile] = useState(null);
  const back = [`/accounts/${account}/bulks`, t("Bulks")];
  return html`
    <div class="stack">
      <${Head} back=${back} title=${t("New bulk")}
        text=${t("A CSV file of recipients: its columns fill in a template or a text.")} />
      <${Card} title=${t("File")} pad><${Drop} file=${file} take=${setFile} /></${Card}>
      ${file && html`<${Filled} key=${file.key} account=${account} file=${file} />`}
    </div>
  `;
}

/** Resolves to the table in a file. Throws if there is none that can be sent. */
async function opened(file) {
  if (file.size > MOST_BYTES) throw new Error(t("The file is larger than 30 MB."));
  const table = read(decode(await file.arrayBuffer()));
  if (table.rows.length === 0) throw new Error(t("The file has no rows."));
  if (table.rows.length > MOST_ROWS) {
    throw new Error(
      t("The file has {n} rows; a bulk takes 10,000 at most. Split it.", { n: number(table.rows.length) }),
    );
  }
  return { ...table, name: file.name, key: Date.now() };
}

function Drop({ file, take }) {
  const [isOver, setOver] = useState(false);
  const [error, setError] = useState(null);
  const open = async ([chosen]) => {
    if (!chosen) return;
    try {
      take(await opened(chosen));
      setError(null);
    } catch ({ message }) {
      take(null);
      setError(message);
    }
  };
  const over = (is) => (event) => {
    event.preventDefault();
    setOver(is);
  };
  const onDrop = (event) => {
    over(false)(event);
    open(event.dataTransfer.files);
  };
  return html`
    <div class="stack tight">
      <div class=${`drop ${isOver ? "over" : ""}`} onDragOver=${over(true)} onDragLeave=${over(false)} onDrop=${onDrop}>
        <${Field} label=${t("Drop a CSV file here, or choose one")} type="file" accept=".csv,.txt,.tsv,text/csv"
          wrong=${error} onChange=${({ target }) => open(target.files)}
          hint=${t("With the columns' names in its first row. Commas, semicolons or tabs; from any spreadsheet.")} />
      </div>
      ${file && html`
        <p role="status">${file.name}: ${tn("{n} row", "{n} rows", file.rows.length)}</p>
        <${Table} caption=${t("The first rows")} rows=${file.rows.slice(0, ROWS_SHOWN)} keyOf=${(row) => row.number}
          columns=${file.columns.map(({ name }, i) => [name, ({ cells }) => cells[i] ?? ""])} />
      `}
    </div>
  `;
}

/** Returns what the gateway finds wrong with the recipients (`found`, null until then), or why it could not be asked. */
function useRecipients(account, { rows, to }) {
  const [state, setState] = useState({ found: null, error: null });
  useEffect(() => {
    let isWanted = true;
    const show = (next) => isWanted && setState({ found: null, error: null, ...next });
    show({});
    const recipients = rows.map(({ cells }) => (cells[to] ?? "").slice(0, MOST_RECIPIENT));
    call("POST", `/accounts/${account}/recipients`, { body: { recipients } })
      .then(({ data: found }) => show({ found }), (error) => show({ error }));
    return () => void (isWanted = false);
  }, [rows, to]);
  return state;
}

function Filled({ account, file: { columns, rows, to: likely } }) {
  const lines = useLines(account);
  const templates = useApi(account, "/templates?limit=100");
  const [to, setTo] = useState(likely);
  const { found, error } = useRecipients(account, { rows, to });
  /** The index of the template that is filled in; `TEXT` for none. */
  const [chosen, setChosen] = useState(TEXT);
  const [text, setText] = useState("");
  /** The column of each variable, by name, where it is not the one of the same name. */
  const [columnOf, setColumnOf] = useState({});
  const post = usePost(account);
  const template = chosen === TEXT ? null : templates.data[Number(chosen)];
  const texts = template ? textsOf(template) : { text, header: "", footer: "", options: "" };
  const columnOptions = columns.map(({ name }, i) => [String(i), name]);
  const variables = variablesIn(Object.values(texts).join("\n")).map((name) => {
    const same = columns.findIndex(({ variable }) => variable === (variableOf(name) || name));
    return { name, column: Number(columnOf[name] ?? same) };
  });
  const missing = variables.filter(({ column }) => column < 0);
  const valuesOf = ({ cells }) => Object.fromEntries(variables.map(({ name, column }) => [name, cells[column] ?? ""]));
  const faults = found ? faultsOf({ rows, variables }, found.wrong) : new Map();
  const good = rows.filter((row) => !faults.has(row));

  const send = async ({ sessionId, when }) => {
    const messageOf = (row) => {
      const values = valuesOf(row);
      const recipient = { to: row.cells[to] };
      if (!template) return { ...recipient, text: fill(text, values) };
      return { ...recipient, template: template.name, language: template.language, variables: values };
    };
    const head = JSON.stringify({ sessionId, ...(when && { sendAt: new Date(when).toISOString() }) });
    const json = [`${head.slice(0, -1)},"messages":[`];
    for (let i = 0; i < good.length; i += SLICE) {
      const messages = JSON.stringify(good.slice(i, i + SLICE).map(messageOf));
      json.push((i > 0 ? "," : "") + messages.slice(1, -1));
      await new Promise((resolve) => setTimeout(resolve));
    }
    json.push("]}");
    const { bulkId } = await post("/messages/send/bulk", { json });
    go(`/accounts/${account}/bulks/${bulkId}`);
  };
  const isReady = found && good.length > 0 && missing.length === 0;
  const linked = (lines.data ?? []).filter(({ phone, status }) => phone && status !== "logged_out");
  if (lines.data && linked.length === 0) {
    return html`
      <${Card}>
        <${Empty} title=${t("No line is linked yet")} />
        </${Card}>
    `;
  }
  return html`
    <${Recipients} found=${found} error=${error} faults=${faults} columns=${columnOptions} to=${to} setTo=${setTo}
      good=${good} />
    <${Loaded} state=${templates}>${(list) =>
      html`
        <div class="two">
          <${Card} title=${t("Message")} pad>
            <${Form} submit=${send} disabled=${!isReady}
              button=${tn("Queue {n} message", "Queue {n} messages", good.length)}>${(wrong) =>
                html`
                  <${Select} label=${t("Line")} name="sessionId" wrong=${wrong("sessionId")}
                    options=${linked.map(({ _id, name, phone: of }) => [_id, `${name} (${phone(of)})`])} />
                  <${Select} label=${t("Template")} value=${chosen} choose=${setChosen}
                    options=${[[TEXT, t("None: a text")], ...list.map(templateOption)]} />
                  ${!template && html`
                    <${Field} as="textarea" label=${t("Text")} rows="5" required value=${text}
                      onInput=${({ target }) => setText(target.value)}
                      hint=${t("Columns: {names}", {
                        names: columns.map(({ variable }) => `{{${variable}}}`).join(" "),
                      })} />
                  `}
                  ${variables.map(({ name, column }) =>
                    html`
                      <${Select} key=${name} label=${t("Column for {name}", { name: `{{${name}}}` })}
                        value=${String(column)} wrong=${column < 0 && t("No column has this name: choose one.")}
                        options=${[...column < 0 ? [["-1", "–"]] : [], ...columnOptions]}
                        choose=${(chosen) => setColumnOf({ ...columnOf, [name]: chosen })} />
                    `
                  )}
                  <${When} wrong=${wrong("sendAt")} />
                `}</${Form}></${Card}>
          <${Card} title=${t("First message")} pad="stack tight">${good.length > 0 && html`
            <p class="soft">${good[0].cells[to]}</p>
            <${Preview} texts=${texts} values=${valuesOf(good[0])} />
          `}</${Card}>
        </div>
      `}</${Loaded}>
  `;
}

const templateOption = ({ name, language }, i) => [String(i), `${name} (${language})`];

/** When the bulk begins; the browser's own picker, in its time zone. */
function When({ wrong }) {
  const [when, setWhen] = useState("");
  const hint = when ? exactly(Date.parse(when)) : t("Empty: now. At most 30 days ahead; sending hours still apply.");
  return html`
    <${Field} label=${t("Send at")} name="when" type="datetime-local" value=${when} wrong=${wrong} hint=${hint}
      onInput=${({ target }) => setWhen(target.value)} />
  `;
}

/** Returns why a row is left out, by row: its recipient, or an empty cell of a variable. */
function faultsOf({ rows, variables }, wrong) {
  const faults = new Map(wrong.map(({ index, message }) => [rows[index], said(message)]));
  for (const row of rows) {
    const empty = variables.find(({ column }) => column >= 0 && !row.cells[column]);
    if (empty && !faults.has(row)) faults.set(row, t("{name} is empty", { name: `{{${empty.name}}}` }));
  }
  return faults;
}

function Recipients({ found, error, faults, columns, to, setTo, good }) {
  const left = [...faults].toSorted(([a], [b]) => a.number - b.number);
  return html`
    <${Card} title=${t("Recipients")}>
      <div class="pad stack tight">
        <${Select} label=${t("Column with the numbers")} value=${String(to)} options=${columns}
          choose=${(column) => setTo(Number(column))} />
        <div role="status">
          ${error && html`<p class="note bad">${error.message}</p>`}
          ${!found && !error && html`<p class="soft">${t("Checking the numbers…")}</p>`}
          ${found &&
            html`<p class=${`note ${left.length > 0 ? "warn" : "good"}`}>${
              tn("{n} row can be sent.", "{n} rows can be sent.", good.length)
            } ${left.length > 0 && tn("{n} row is left out:", "{n} rows are left out:", left.length)}</p>`}
        </div>
        ${found?.repeated > 0 && html`<p class="note warn">${
          tn(
            "{n} row has a number that another row has, too: each is sent.",
            "{n} rows have a number that another row has, too: each is sent.",
            found.repeated,
          )
        }</p>`}
      </div>
      ${left.length > 0 && html`
        <${Table} caption=${t("Rows that are left out")} rows=${left.slice(0, FAULTS_SHOWN)} keyOf=${([row]) =>
          row.number}
          columns=${[
            [t("Row"), ([row]) => number(row.number)],
            [t("Number"), ([row]) => html`<span class="break">${row.cells[to] || "–"}</span>`],
            [t("Reason"), ([, reason]) => reason],
          ]} />
      `}
      ${left.length > FAULTS_SHOWN && html`
        <footer class="row end pager"><span class="soft">${t("and {n} more", {
          n: number(left.length - FAULTS_SHOWN),
        })}</span></footer>
      `}
      </${Card}>
  `;
}
