// Templates: written here, with a preview as the recipient sees it.
import { api, isAgent } from "../api.js";
import { html, useState } from "../html.js";
import { t } from "../i18n.js";
import { usePage } from "../live.js";
import { Ask, Card, Field, Form, Head, TablePage, toast } from "../ui.js";

const LIMIT = 50;
/** A variable in a text, as the gateway reads it. */
const VARIABLE = /\{\{ {0,9}([A-Za-z_][A-Za-z0-9_]{0,63}|[1-9][0-9]?) {0,9}\}\}/g;
const NEW = { name: "", language: "en", text: "", header: null, footer: null, options: [] };

const named = ({ name, language }) => `/templates/${encodeURIComponent(name)}?language=${encodeURIComponent(language)}`;

export function Templates({ account, query }) {
  const templates = usePage(account, "/templates", { page: query.page, limit: LIMIT });
  /** The template that is written: one of the list, `NEW`, or null. */
  const [written, setWritten] = useState(null);
  const done = async (said) => {
    setWritten(null);
    toast(said);
    await templates.reload();
  };
  return html`
    <div class="stack">
      <${Head} title=${t("Templates")} text=${t("Texts with variables, written once and filled in for each message.")}>
        ${!isAgent() &&
          html`<button type="button" class="primary" onClick=${() => setWritten(NEW)}>${t("New template")}</button>`}
        </${Head}>
      ${written && html`
        <${Editor} key=${`${written.name} ${written.language}`} account=${account} template=${written} done=${done}
          close=${() => setWritten(null)} />
      `}
      <${Card}>
        <${TablePage} state=${templates} caption=${t("Templates")} keyOf=${(row) => `${row.name} ${row.language}`}
          empty=${[t("No templates yet")]} columns=${[
            [t("Name"), (row) => html`<strong class="break">${row.name}</strong>`],
            [t("Language"), (row) => row.language],
            [t("Text"), (row) => html`<span class="clip">${row.text}</span>`],
            ["", (row) =>
              !isAgent() && html`
                <div class="row end">
                  <button type="button" class="small" onClick=${() => setWritten(row)}>${t("Edit")}</button>
                  <${Ask} kind="small danger" title=${t("Remove {name}?", { name: row.name })} button=${t("Remove")}
                    text=${t("Messages that were accepted before are still sent.")}
                    run=${() => api(account, "DELETE", named(row)).then(() => done(t("Removed.")))} />
                </div>
              `, "end"],
          ]} /></${Card}>
    </div>
  `;
}

/** Returns the texts of a template as the editor shows them. */
export const textsOf = ({ text, header, footer, options }) => ({
  text,
  header: header ?? "",
  footer: footer ?? "",
  options: options.map(({ label }) => label).join("\n"),
});

function Editor({ account, template, done, close }) {
  const isNew = template === NEW;
  const [texts, setTexts] = useState(textsOf(template));
  const [values, setValues] = useState({});
  const set = (name) => ({ target }) => setTexts({ ...texts, [name]: target.value });
  const save = async ({ name, language }) => {
    const labels = texts.options.split("\n").map((label) => label.trim()).filter(Boolean);
    // What the form does not show of an option stays.
    const options = labels.map((label) => template.options.find((old) => old.label === label) ?? { label });
    const body = {
      text: texts.text,
      header: texts.header || null,
      footer: texts.footer || null,
      options: options.length > 0 ? options : null,
    };
    if (isNew) await api(account, "POST", "/templates", { body: { name, language, ...body } });
    else await api(account, "PUT", named(template), { body });
    await done(t("Saved."));
  };
  const field = (name, label, wrong, rest) =>
    html`
      <${Field} label=${label} name=${name} value=${texts[name]} onInput=${set(name)} wrong=${wrong(name)}
        ...${rest} />
    `;
  const variables = variablesIn(Object.values(texts).join("\n"));
  return html`
    <div class="two">
      <${Card} title=${isNew ? t("New template") : `${template.name} (${template.language})`} pad>
        <${Form} submit=${save} button=${t("Save")} cancel=${close}>${(wrong) =>
          html`
            ${isNew && html`
              <${Field} label=${t("Name")} name="name" required maxlength="100" placeholder="reminder"
                wrong=${wrong("name")} />
              <${Field} label=${t("Language")} name="language" required defaultValue=${template.language}
                wrong=${wrong("language")} />
            `}
            ${field("header", t("Heading"), wrong, {})}
            ${field("text", t("Text"), wrong, {
              as: "textarea",
              rows: 5,
              required: true,
              hint: t("A word in double braces is a variable: {example}", { example: "{{name}}" }),
            })}
            ${field("footer", t("Last line"), wrong, {})}
            ${field("options", t("Options, one per line"), wrong, { as: "textarea", rows: 3 })}
          `}</${Form}></${Card}>
      <${Card} title=${t("Preview")} pad="stack tight">
        <${Preview} texts=${texts} values=${values} />
        ${variables.map((name) =>
          html`<${Field} key=${name} label=${name} value=${values[name] ?? ""} onInput=${({ target }) =>
            setValues({ ...values, [name]: target.value })} />`
        )}
        </${Card}>
    </div>
  `;
}

/** Returns the names of the variables in a text, each once. */
export const variablesIn = (text) => [...new Set([...text.matchAll(VARIABLE)].map(([, name]) => name))];

/** Returns the text with its variables filled in; one without a value stands there by its name. */
export const fill = (text, values) => text.replace(VARIABLE, (whole, name) => values[name] || whole);

/** The message as it arrives. */
export function Preview({ texts, values }) {
  const filled = (text) => fill(text, values);
  const options = filled(texts.options).split("\n").map((label) => label.trim()).filter(Boolean);
  const parts = [filled(texts.text), options.map((label, i) => `${i + 1}. ${label}`).join("\n"), filled(texts.footer)];
  return html`
    <div class="turn" data-preview>
      ${texts.header && html`<strong>${filled(texts.header)}</strong>${"\n\n"}`}${parts.filter(Boolean).join("\n\n")}
    </div>
  `;
}
