/** What the reader gave for all samples: an API key, kept in this tab, and a language. And the samples of the guides. */
import { colour } from "./colours.js";
import { codeBox, el } from "./dom.js";

const KEY = "paloma-docs-key";
const LANGUAGE = "paloma-docs-language";
/** What is drawn again when the key or the language changes. */
const panes = new Set();
const keyField = document.querySelector("#key");
// What was typed before this script came stays.
keyField.value ||= sessionStorage.getItem(KEY) ?? "";
keepKey();
keyField.addEventListener("input", keepKey);

/** The key that was typed; empty if none was. */
export function key() {
  return keyField.value;
}

function keepKey() {
  sessionStorage.setItem(KEY, key());
  drawAll();
}

function drawAll() {
  for (const draw of panes) draw();
}

/** Calls `draw` now and whenever the reader's key or language changes. */
function keepDrawn(draw) {
  panes.add(draw);
  draw();
}

/** A box with a button for each of `languages`, in which `draw(pre, language)` writes the sample of the chosen one. */
export function sampleBox(languages, draw) {
  const pre = el("pre", { tabindex: "0" });
  const tabs = languages.map((name) =>
    el("button", {
      type: "button",
      onclick: () => {
        localStorage.setItem(LANGUAGE, name);
        drawAll();
      },
    }, name)
  );
  const redraw = () => {
    const chosen = localStorage.getItem(LANGUAGE);
    const language = languages.includes(chosen) ? chosen : languages[0];
    for (const tab of tabs) tab.setAttribute("aria-pressed", String(tab.textContent === language));
    draw(pre, language);
  };
  keepDrawn(redraw);
  const box = el("div", {}, [
    el("div", { class: "tabs", role: "group", "aria-label": "Language of the samples" }, tabs),
    codeBox(pre),
  ]);
  return { box, redraw };
}

const ROOT = new URL("..", import.meta.url).href.slice(0, -1);

/** Makes boxes of a guide's samples, coloured, with the reader's key and this gateway's address. */
export function fillSamples(main) {
  for (const pre of main.querySelectorAll("pre")) {
    const text = pre.textContent;
    const language = /language-(\w+)/.exec(pre.firstElementChild?.className ?? "")?.[1] ?? "text";
    const { parentElement, nextSibling } = pre;
    parentElement.insertBefore(codeBox(pre), nextSibling);
    keepDrawn(() => colour(pre, filled(text), language));
  }
}

function filled(text) {
  const withAddress = text.replaceAll("http://localhost:8080", ROOT);
  return key() ? withAddress.replaceAll("pk_…", key()) : withAddress;
}
