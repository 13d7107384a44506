// Recipients who have opted out, and the words that opt a sender out.
import { api } from "../api.js";
import { html, useState } from "../html.js";
import { number, t } from "../i18n.js";
import { useApi, usePage } from "../live.js";
import { Ask, Card, Field, Form, FormDialog, Head, Loaded, TablePage, timeAt, toast } from "../ui.js";
import { phone } from "../words.js";

const LIMIT = 50;

export function OptOuts({ account, query }) {
  const outs = usePage(account, "/optouts", { page: query.page, limit: LIMIT, topics: ["messages"] });
  const add = async ({ number }, form) => {
    await api(account, "PUT", `/optouts/${encodeURIComponent(number)}`);
    form.reset();
    await outs.reload();
  };
  return html`
    <div class="stack">
      <${Head} title=${t("Opt-outs")} text=${t("Messages to these numbers are refused.")} />
      <div class="two">
        <${Card} title=${t("Numbers")}>
          <${TablePage} state=${outs} caption=${t("Opt-outs")} keyOf=${(row) => row.number} empty=${[
            t("No opt-outs"),
            t("Anyone who sends one of your opt-out words is added automatically."),
          ]} columns=${[
            [t("Number"), (row) => phone(row.number)],
            [t("Word"), (row) => row.word ?? html`<span class="soft">${t("added manually")}</span>`],
            [t("Time"), timeAt("createdAt")],
            ["", (row) =>
              html`
                <${Ask} kind="small danger" title=${t("Remove {name}?", { name: phone(row.number) })}
                  button=${t("Remove")} text=${t("You can send messages to this number again.")} run=${() =>
                    api(account, "DELETE", `/optouts/${encodeURIComponent(row.number)}`).then(outs.reload)} />
              `, "end"],
          ]} />
          </${Card}>
          <div class="stack">
            <${Card} title=${t("Add a number")} pad>
              <${Form} submit=${add} button=${t("Add")}>${(wrong) =>
                html`
                  <${Field} label=${t("Number")} name="number" inputmode="tel" required placeholder="447700900123"
                    wrong=${wrong("number")} />
                `}</${Form}></${Card}>
            <${Words} account=${account} />
            <${Erase} account=${account} />
          </div>
        </div>
      </div>
  `;
}

function Erase({ account }) {
  /** The number to be confirmed, and its form; null if none is. */
  const [asked, setAsked] = useState(null);
  const close = () => setAsked(null);
  const erase = async () => {
    const below = `/data/${encodeURIComponent(asked.erased)}`;
    const { data: { status, messages, events, files } } = await api(account, "DELETE", below);
    toast(
      status === "done"
        ? t("Erased: {messages} messages, {events} events, {files} files.", {
          messages: number(messages),
          events: number(events),
          files: number(files),
        })
        : t("The data is being erased in the background."),
    );
    // The number must not stay on the page either.
    asked.form.reset();
    close();
  };
  return html`
    <${Card} title=${t("Erase a number's data")} pad="stack tight">
      <p class="soft">${t(
        "Permanently erases everything stored about a number. Messages remain as empty records, and an opt-out remains.",
      )}</p>
      <${Form} submit=${({ erased }, form) => setAsked({ erased, form })} danger
        button=${t("Erase permanently")}>${() =>
          html`
            <${Field} label=${t("Number")} name="erased" inputmode="tel" required placeholder="447700900123" />
          `}</${Form}>
      ${asked !== null && html`
        <${FormDialog} title=${t("Erase all data of {name}?", { name: phone(asked.erased) })} close=${close}
          submit=${erase} button=${t("Erase permanently")} danger>${() =>
            html`<p>${t("Its messages, events and files cannot be recovered.")}</p>`}</${FormDialog}>
      `}
      </${Card}>
  `;
}

function Words({ account }) {
  const about = useApi(account, "/account");
  const save = async ({ words }) => {
    const optOutWords = words.split(/[\n,]+/).map((word) => word.trim()).filter(Boolean);
    await api(account, "PATCH", "/account", { body: { optOutWords } });
    toast(t("Saved."));
  };
  return html`
    <${Card} title=${t("Opt-out words")} pad>
      <${Loaded} state=${about}>${({ optOutWords = [] }) =>
        html`<${Form} submit=${save} button=${t("Save")}>${(wrong) =>
          html`
            <${Field} as="textarea" label=${t("Words that opt the sender out")} name="words" rows="3"
              hint=${t("One per line.")} defaultValue=${optOutWords.join("\n")}
              wrong=${wrong("optOutWords")} />
          `}</${Form}>`}</${Loaded}></${Card}>
  `;
}
