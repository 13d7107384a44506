// The components that pages are built from.
import { api, CallError, offline } from "./api.js";
import { html, makeStore, useEffect, useRef, useState, useStore } from "./html.js";
import { exactly, t, when } from "./i18n.js";
import { href, useDialog, withQuery } from "./router.js";

const TOAST_MS = 6_000;
const toasts = makeStore([]);
let lastToast = 0;

/** Shows a message in a corner for some seconds. */
export function toast(text, kind = "") {
  const id = ++lastToast;
  toasts.set([...toasts.get(), { id, text, kind }]);
  setTimeout(() => toasts.set(toasts.get().filter((other) => other.id !== id)), TOAST_MS);
}

export function Toasts() {
  return html`
    <div class="toasts" role="status" aria-live="polite">
      ${useStore(toasts).map(({ id, text, kind }) => html`<div key=${id} class=${`toast ${kind}`}>${text}</div>`)}
    </div>
  `;
}

/**
 * Runs the work of a button or a form, one run at a time; returns `[run, busy, error]`. Errors become toasts, unless
 * `quiet`. A busy button is not `disabled`, because that would take the focus from it.
 */
export function useWork({ quiet = false } = {}) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const running = useRef(false);
  // The error is no longer true once the gateway answers again.
  useEffect(() => {
    if (error?.code === "offline") return offline.subscribe((gone) => gone || setError(null));
  }, [error]);
  const run = async (work) => {
    if (running.current) return;
    running.current = true;
    setBusy(true);
    setError(null);
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof CallError)) console.error(error);
      if (quiet) setError(error);
      else toast(error.message, "bad");
    } finally {
      running.current = false;
      setBusy(false);
    }
  };
  return [run, busy, error];
}

const newKey = () => crypto.randomUUID?.() ?? String(Math.random()).slice(2) + Date.now();

const ofFile = (_, value) => value instanceof File ? [value.name, value.size, value.lastModified] : value;

/**
 * Returns `post(path, { body, json, form })` for the API. A request keeps its idempotency key until it is answered, so
 * repeating it does nothing twice; a different request gets a new key.
 */
export function usePost(account) {
  const last = useRef({});
  return async (path, options) => {
    const request = [path, ...options.json ?? [JSON.stringify(options.body ?? [...options.form], ofFile)]];
    const { request: before, key } = last.current;
    const isSame = before?.length === request.length && request.every((part, i) => part === before[i]);
    last.current = { request, key: isSame ? key : newKey() };
    const answer = await api(account, "POST", path, { ...options, once: last.current.key });
    last.current = {};
    return answer;
  };
}

export function Work({ run, kind = "", disabled = false, children, ...rest }) {
  const [work, busy] = useWork();
  return html`
    <button type="button" class=${kind} disabled=${disabled} aria-disabled=${busy} onClick=${() => work(run)}
      ...${rest}>${children}</button>
  `;
}

/** A form that shows errors below its fields, or else above its button. `submit(values)`; `children(errorsOf)`. */
export function Form({ submit, children, button, danger = false, disabled = false, cancel }) {
  const [run, busy, error] = useWork({ quiet: true });
  const form = useRef(null);
  useEffect(() => form.current.querySelector('[aria-invalid="true"]')?.focus(), [error]);
  const onSubmit = (event) => {
    event.preventDefault();
    run(() => submit(Object.fromEntries(new FormData(event.target)), event.target));
  };
  const wrong = error?.fields ?? {};
  const shown = new Set();
  const of = (name) => {
    shown.add(name);
    return wrong[name] ?? null;
  };
  const inside = children(of);
  const above = error && ![...shown].some((name) => wrong[name]) ? error.message : null;
  return html`
    <form class="form" ref=${form} onSubmit=${onSubmit}>
      ${inside}
      <div role="alert">${above && html`<p class="note bad">${above}</p>`}</div>
      <div class="row">
        ${cancel && html`<button type="button" onClick=${cancel}>${t("Cancel")}</button>`}
        <button class=${`primary ${
          danger ? "danger" : ""
        }`} disabled=${disabled} aria-disabled=${busy}>${button}</button>
      </div>
    </form>
  `;
}

let fieldCount = 0;

export function Field({ label, hint, wrong, as = "input", children, ...rest }) {
  const id = useRef(null);
  id.current ??= `f${++fieldCount}`;
  const described = [hint && `${id.current}h`, wrong && `${id.current}w`].filter(Boolean).join(" ") || undefined;
  const invalid = wrong ? "true" : undefined;
  return html`
    <div class="label">
      <label for=${id.current}>${label}</label>
      <${as} id=${id.current} aria-describedby=${described} aria-invalid=${invalid}
        ...${rest}>${children}</${as}>
      ${hint && html`<small id=${`${id.current}h`}>${hint}</small>`}
      ${wrong && html`<span class="wrong" id=${`${id.current}w`}>${wrong}</span>`}
    </div>
  `;
}

/** A field to choose one of `options` (`[value, text]` each), with which `choose` is called, if it is given. */
export function Select({ options, value, choose, ...rest }) {
  const onChange = choose && (({ target }) => choose(target.value));
  return html`
    <${Field} as="select" onChange=${onChange} ...${rest}>${options.map(([name, text]) =>
      html`<option value=${name} selected=${name === value}>${text}</option>`
    )}</${Field}>
  `;
}

/** One of `options` (`[value, text]` each), all of which are seen. */
export function Choice({ label, name, options, value, choose }) {
  return html`
    <fieldset>
      <legend>${label}</legend>
      <div class="row choice">${options.map(([option, text]) =>
        html`
          <label><input type="radio" name=${name} value=${option} checked=${option === value}
            onChange=${() => choose(option)} />${text}</label>
        `
      )}</div>
    </fieldset>
  `;
}

export function Dialog({ title, close, children }) {
  const ref = useRef(null);
  useEffect(() => {
    const dialog = ref.current;
    dialog.showModal();
    dialog.querySelector("form :is(input:not([hidden]), select, textarea)")?.focus();
    return () => {
      // Closing returns the focus to the earlier element, unless the dialog's work has removed it.
      dialog.close();
      requestAnimationFrame(() => document.activeElement === document.body && focusTitle());
    };
  }, []);
  const onCancel = (event) => {
    event.preventDefault();
    close();
  };
  return html`
    <dialog ref=${ref} onCancel=${onCancel} aria-labelledby="dialog-title">
      <div class="inside">
        <div class="head"><h2 id="dialog-title">${title}</h2>
          <button type="button" class="plain small" aria-label=${t("Close")} onClick=${close}>✕</button></div>
        ${children}
      </div>
    </dialog>
  `;
}

/** A dialog with a form, which may be cancelled. The other properties are those of `Form`. */
export function FormDialog({ title, close, ...form }) {
  return html`
    <${Dialog} title=${title} close=${close}>
      <${Form} cancel=${close} ...${form} />
      </${Dialog}>
  `;
}

/**
 * A button that opens a dialog with a form, which closes once it is submitted. `opens`: the name by which a link opens it,
 * too (`useDialog`).
 */
export function FormButton({ kind, label, disabled, submit, opens, ...dialog }) {
  const [open, setOpen] = useDialog(opens);
  const close = () => setOpen(false);
  const done = async (values) => {
    await submit(values);
    close();
  };
  return html`
    <button type="button" class=${kind} disabled=${disabled} onClick=${() => setOpen(true)}>${label ??
      dialog.title}</button>
    ${open && html`<${FormDialog} close=${close} submit=${done} ...${dialog} />`}
  `;
}

/** A button that first says what would be lost. Its label is that of the dialog's `button`, if it has none of its own. */
export function Ask({ text, run, kind = "danger", label, ...dialog }) {
  return html`
    <${FormButton} kind=${kind} label=${label ?? dialog.button} submit=${run} danger ...${dialog}>${() =>
      html`<div class="stack tight">${text}</div>`}</${FormButton}>
  `;
}

/** `pad`: with room around the content, and the classes of that room if there are any. */
export function Card({ title, actions, pad = false, kind = "", children }) {
  return html`
    <section class=${`card ${kind}`}>
      ${title && html`<header><h2>${title}</h2>${actions && html`<div class="row">${actions}</div>`}</header>`}
      ${pad ? html`<div class=${pad === true ? "pad" : `pad ${pad}`}>${children}</div>` : children}
    </section>
  `;
}

/** The page's heading. It sets the tab's title, and takes the focus, so that screen readers announce the new page. */
export function Title({ children }) {
  const ref = useRef(null);
  useEffect(focusTitle, []);
  useEffect(() => {
    document.title = `${ref.current.textContent} · Paloma`;
  });
  return html`<h1 ref=${ref} tabindex="-1">${children}</h1>`;
}

const focusTitle = () => document.querySelector("main h1")?.focus({ preventScroll: true });

export function Head({ title, text, back, children }) {
  return html`
    <div class="head">
      <div class="grow">
        ${back && html`<div class="crumbs"><a href=${href(back[0])}>← ${back[1]}</a></div>`}
        <${Title}>${title}</${Title}>
        ${text && html`<p>${text}</p>`}
      </div>
      <div class="row">${children}</div>
    </div>
  `;
}

/** An empty state, which says what can be done. */
export function Empty({ title, text, children }) {
  return html`<div class="empty"><strong>${title}</strong>${text && html`<p>${text}</p>`}${children}</div>`;
}

export function Badge({ kind = "", children }) {
  return html`<span class=${`badge ${kind}`}>${children}</span>`;
}

/** The link of a row: a click anywhere in the row follows it. */
export const rowLink = (to, text, kind = "") => html`<a class=${`main ${kind}`} href=${href(to)}>${text}</a>`;

/** The column of a table with the account of each row. */
export const accountColumn = () => [
  t("Account"),
  (row) => html`<a class="break" href=${href(`/accounts/${row.accountId}`)}>${row.accountName}</a>`,
];

/** The cell of a column with the time of this name. */
export const timeAt = (name) => (row) => html`<${Time} at=${row[name]} />`;

export function Time({ at }) {
  if (at === null || at === undefined) return html`<span class="soft">–</span>`;
  return html`<time class="nowrap" dateTime=${new Date(at).toISOString()} title=${exactly(at)}>${when(at)}</time>`;
}

/**
 * A table whose rows become cards on a phone. `columns`: `[name, cell(row), class?]`. `empty`: `[title, text?, action?]`,
 * which stands there if there are no rows.
 */
export function Table({ columns, rows, caption, keyOf = (row) => row.id, empty }) {
  if (rows.length === 0 && empty) {
    const [title, text, action] = empty;
    return html`<${Empty} title=${title} text=${text}>${action}</${Empty}>`;
  }
  return html`
    <div class="scroll" tabindex="0" role="region" aria-label=${caption}>
      <table class="cards">
        <thead>
          <tr>${columns.map(([name, , kind]) =>
            html`<th class=${kind ?? ""} scope="col">${name || html`<span class="unseen">${t("Actions")}</span>`}</th>`
          )}</tr>
        </thead>
        <tbody>${rows.map((row) =>
          html`
            <tr key=${keyOf(row)}>${columns.map(([name, cell, kind]) =>
              html`<td class=${kind ?? ""} data-name=${name}>${cell(row)}</td>`
            )}</tr>
          `
        )}</tbody>
      </table>
    </div>
  `;
}

/** Names with what they have: `[name, value, class?]` each; those that are falsy are left out. */
export function Facts({ facts }) {
  return html`
    <dl class="facts">${facts.filter(Boolean).map(([name, value, kind]) =>
      html`
        <dt>${name}</dt>
        <dd class=${kind}>${value}</dd>
      `
    )}</dl>
  `;
}

/**
 * Links to the previous and next part of a list. `newer` and `older` are changes of the query, null at the ends of the
 * list; `{ page: "" }` is the first page.
 */
export function Pager({ text = "", newer = null, older = null }) {
  return html`
    <footer class="row end pager">
      ${text && html`<span class="soft">${text}</span>`}
      ${newer && html`<a class="button" href=${href(withQuery(newer))}>${t("Newer")}</a>`}
      ${older && html`<a class="button" href=${href(withQuery(older))}>${t("Older")}</a>`}
    </footer>
  `;
}

/** `Pager` of what the API lists by page numbers: the answer's `pagination`. */
export function Pages({ page, limit, total, text }) {
  return html`
    <${Pager} text=${text} newer=${page > 1 ? { page: page > 2 ? page - 1 : "" } : null}
      older=${page * limit < total ? { page: page + 1 } : null} />
  `;
}

export function Loading() {
  return html`<p class="soft late" role="status">${t("Loading…")}</p>`;
}

/** Shows the loaded data, or why loading failed. `back`: where to go if the whole page depends on the data. */
export function Loaded({ state: { data, error, reload }, back, children }) {
  const isGone = error?.code === "not_found";
  if (data !== null && !isGone) {
    // That the gateway does not answer is shown by the frame, once for the whole page.
    const isOld = error && error.code !== "offline";
    return html`${
      isOld &&
      html`<p class="note warn inset" role="status">${
        t("This may be out of date: {reason}", { reason: error.message })
      }</p>`
    }${children(data)}`;
  }
  if (!error) return html`<${Loading} />`;
  const title = t("Could not load this page");
  const again = isGone ? "" : html`<${Work} run=${reload}>${t("Try again")}</${Work}>`;
  if (back) return html`<${Head} back=${back} title=${title} text=${error.message}>${again}</${Head}>`;
  return html`
    <div class="card">
      <div class="empty" role="alert"><strong>${title}</strong><p>${error.message}</p>${again}</div>
    </div>
  `;
}

/** The `Table` of all rows that are loaded, in a card. */
export function TableCard({ state, ...table }) {
  return html`
    <${Loaded} state=${state}>${(rows) =>
      html`
        <${Card}>
          <${Table} rows=${rows} ...${table} />
          </${Card}>
      `}</${Loaded}>
  `;
}

/** The `Table` of a page of rows that is loaded (`usePage`), with its `Pages`. `textOf(total)`: what these say. */
export function TablePage({ state, empty, textOf = () => "", ...table }) {
  return html`<${Loaded} state=${state}>${({ data, pagination }) =>
    html`
      <${Table} rows=${data} empty=${pagination.total === 0 && empty} ...${table} />
      <${Pages} ...${pagination} text=${textOf(pagination.total)} />
    `}</${Loaded}>`;
}

function Copy({ text }) {
  const [done, setDone] = useState(false);
  const copy = async ({ target }) => {
    try {
      await navigator.clipboard.writeText(text);
      setDone(true);
      setTimeout(() => setDone(false), 2_000);
    } catch {
      // Over plain http, browsers offer no clipboard; select the text to be copied by hand.
      const code = target.parentElement.querySelector("code, pre");
      if (code) getSelection().selectAllChildren(code);
    }
  };
  return html`<button type="button" class="small" onClick=${copy}>${done ? t("Copied") : t("Copy")}</button>`;
}

/** A secret or a link, with a button to copy it. */
export function Secret({ text }) {
  return html`<div class="row secret"><code>${text}</code><${Copy} text=${text} /></div>`;
}

/** A dialog with a secret that is shown this once. */
export function SecretDialog({ title, text, secret, close }) {
  return html`
    <${Dialog} title=${title} close=${close}>
      <p>${text}</p>
      <${Secret} text=${secret} />
      <div class="row end">
        <button type="button" class="primary" onClick=${close}>${t("Done, I saved it")}</button>
      </div>
      </${Dialog}>
  `;
}

/** Replaces the page of a one-time link that is no longer valid. */
export function LinkOver() {
  return html`
    <div class="card">
      <div class="empty" role="alert">
        <${Title}>${t("This link is no longer valid")}</${Title}>
        <p>${t("It has expired or has already been used. Ask the sender for a new one.")}</p>
      </div>
    </div>
  `;
}

/** A one-time link. Its origin is that of this page, by which the person reaches the gateway. */
export function OneTimeLink({ token, page, until }) {
  const url = `${location.origin}${href(page)}#${token}`;
  return html`
    <div class="stack tight">
      <${Secret} text=${url} />
      <p class="hint">${t(
        "Works once, until {time}. Anyone who has this link can use it, so send it only to that person.",
        {
          time: when(until),
        },
      )}</p>
    </div>
  `;
}
