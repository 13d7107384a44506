/** How to start: in the reader's language, with the address of this gateway and the reader's key filled in. */
import { el } from "./dom.js";
import { fillSamples } from "./reader.js";

/** The panel's choice, which holds here too. */
const LANGUAGE = "paloma.language";
const LANGUAGES = { en: "English", es: "Español", pt: "Português" };
const WORDS = {
  en: { fill: "Fill in the key of {account}", refused: "The panel does not show the key to you." },
  es: { fill: "Rellenar con la clave de {account}", refused: "El panel no te muestra la clave." },
  pt: { fill: "Preencher com a chave de {account}", refused: "O painel não lhe mostra a chave." },
};
const sections = [...document.querySelectorAll(".start")];
const keyField = document.querySelector("#key");
const panel = new URL("../panel/api/", import.meta.url);
for (const section of sections) fillSamples(section);

function show(language) {
  for (const section of sections) section.hidden = section.lang !== language;
  for (const choice of choices) choice.setAttribute("aria-pressed", String(choice.lang === language));
}

const choices = Object.entries(LANGUAGES).map(([lang, name]) =>
  el("button", {
    type: "button",
    lang,
    onclick: () => {
      localStorage.setItem(LANGUAGE, lang);
      show(lang);
    },
  }, name)
);
document.querySelector("#start").prepend(
  el("div", { class: "tabs", role: "group", "aria-label": "Language" }, choices),
);
const wanted = [localStorage.getItem(LANGUAGE), ...navigator.languages.map((tag) => tag.slice(0, 2))];
show(wanted.find((language) => language in LANGUAGES) ?? "en");

/** Whoever is signed in to the panel for an account need not look for its key: a button asks the panel for it. */
const state = await fetch(new URL("state", panel)).then((response) => response.json(), () => null);
const { accountId, accountName, role } = state?.data?.person ?? {};
if (accountId && role !== "agent") {
  for (const section of sections) {
    const { fill: label, refused } = WORDS[section.lang];
    const button = el("button", { type: "button", onclick: () => fetchKey(button, refused) });
    button.textContent = label.replace("{account}", accountName);
    section.querySelectorAll(".code")[1].before(button);
  }
}

async function fetchKey(button, refused) {
  const show = new URL(`accounts/${accountId}/key/show`, panel);
  const response = await fetch(show, { method: "POST", headers: { "x-paloma-panel": "1" } });
  if (!response.ok) return button.replaceWith(el("p", { class: "error", role: "alert" }, refused));
  keyField.value = (await response.json()).data.apiKey;
  keyField.dispatchEvent(new Event("input"));
}
