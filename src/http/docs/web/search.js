/** The search over guides and reference. What it looks through is loaded when the field is first used. */
import { el } from "./dom.js";
import { find } from "./find.js";

const SHOWN = 20;
const SNIPPET = 110;
const side = document.querySelector("#side");
const field = document.querySelector("#search");
const hits = document.querySelector("#hits");
const list = document.querySelector("#results");
let loading = null;

function sections() {
  loading ??= fetch(new URL("search.json", import.meta.url)).then((response) => response.json());
  // A failure is not kept: the next key tries again.
  loading.catch(() => loading = null);
  return loading;
}

/** The place of a section's text that was found, as nodes; its beginning if only the heading was. */
function snippet({ text }, marks) {
  const found = marks.exec(text);
  const start = found ? Math.max(0, text.lastIndexOf(" ", found.index - SNIPPET / 3) + 1) : 0;
  const shown = text.slice(start, start + SNIPPET);
  const parts = shown.split(marks);
  return [
    start > 0 ? "… " : "",
    ...parts.map((part, i) => i % 2 === 1 ? el("mark", {}, part) : part),
    start + SNIPPET < text.length ? " …" : "",
  ];
}

let asked = 0;

async function show() {
  const query = field.value.trim();
  const own = ++asked;
  let found = [];
  if (query !== "") {
    try {
      found = find(await sections(), query);
    } catch {
      hits.textContent = "The search could not be loaded.";
      return;
    }
  }
  // What was typed meanwhile is answered by its own call.
  if (own !== asked) return;
  list.replaceChildren(
    ...found.slice(0, SHOWN).map(({ section, marks }) =>
      el("li", {}, [
        el("a", { href: new URL(section.url, import.meta.url).href }, [
          el("strong", {}, section.heading || section.page),
          section.heading ? el("span", { class: "soft" }, ` ${section.page}`) : null,
          el("span", { class: "snippet" }, snippet(section, marks)),
        ]),
      ])
    ),
  );
  list.hidden = found.length === 0;
  for (const part of side.querySelectorAll("section")) part.hidden = query !== "";
  hits.textContent = query === "" ? "" : counted(found.length);
}

function counted(count) {
  if (count === 0) return "No results";
  return `${count} ${count === 1 ? "result" : "results"}${count > SHOWN ? `, the first ${SHOWN} shown` : ""}`;
}

/** The arrows go from the field through the results and back. */
function move(event, by) {
  const stops = [field, ...list.querySelectorAll("a")];
  const to = stops[stops.indexOf(document.activeElement) + by];
  if (!to) return;
  event.preventDefault();
  to.focus();
}

field.addEventListener("focus", () => sections().catch(() => {}));
field.addEventListener("input", show);
side.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && field.value !== "") {
    // The first press ends the search, the next one closes the menu of a phone.
    event.stopPropagation();
    field.value = "";
    field.focus();
    show();
  }
  if (event.target !== field && !list.contains(event.target)) return;
  if (event.key === "ArrowDown") move(event, 1);
  if (event.key === "ArrowUp") move(event, -1);
  if (event.key === "Enter" && event.target === field) show().then(() => list.querySelector("a")?.click());
});
addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) {
    return;
  }
  event.preventDefault();
  field.focus();
});
