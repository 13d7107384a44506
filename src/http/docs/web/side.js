/** The sidebar: a link for each part of the page, a search over them, and a mark at the part on screen. */
import { el } from "./dom.js";

const side = document.querySelector("#side");
const field = document.querySelector("#search");
const hits = document.querySelector("#hits");
/** `{ link, words }`: what a link is found by, in lower case. */
const entries = [...side.querySelectorAll("section a")].map((link) => ({
  link,
  words: `${link.textContent} ${link.dataset.words}`.toLowerCase(),
}));
const links = new Map();

/** Adds a section; `parts` are `{ id, title, words, quiet }`, a quiet one appears in search results only. */
export function addSection(id, name, parts) {
  const own = parts.map(({ id, title, words, quiet }) => {
    const link = el("a", { href: `#${id}`, ...(quiet && { hidden: "", class: "quiet" }) }, title);
    entries.push({ link, words: `${title} ${words}`.toLowerCase() });
    links.set(id, link);
    return link;
  });
  side.append(el("section", {}, el("h2", {}, el("a", { href: `#${id}` }, name)), own));
}

function search() {
  const wanted = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const { link, words } of entries) {
    const fits = wanted.every((word) => words.includes(word));
    link.hidden = wanted.length > 0 ? !fits : link.classList.contains("quiet");
    if (fits) found++;
  }
  for (const section of side.querySelectorAll("section")) {
    section.hidden = wanted.length > 0 && !section.querySelector(":scope > a:not([hidden])");
  }
  hits.textContent = wanted.length === 0
    ? ""
    : found === 0
    ? "No results"
    : `${found} ${found === 1 ? "result" : "results"}`;
}

field.addEventListener("input", search);
field.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    field.value = "";
    search();
  }
  if (event.key === "Enter") entries.find(({ link }) => !link.hidden)?.link.click();
});
addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) {
    return;
  }
  event.preventDefault();
  field.focus();
});

/** Marks the link of the article that is being read. */
export function followScroll(articles) {
  const seen = new Set();
  const observer = new IntersectionObserver((changes) => {
    for (const { target, isIntersecting } of changes) isIntersecting ? seen.add(target) : seen.delete(target);
    const here = articles.find((article) => seen.has(article));
    side.querySelector('[aria-current="true"]')?.removeAttribute("aria-current");
    // None at the errors.
    if (!here) return;
    const link = links.get(here.id);
    link.setAttribute("aria-current", "true");
    const { offsetTop, offsetHeight } = link;
    if (offsetTop < side.scrollTop + 40 || offsetTop + offsetHeight > side.scrollTop + side.clientHeight - 40) {
      side.scrollTop = offsetTop - side.clientHeight / 3;
    }
  }, { rootMargin: "-64px 0px -60% 0px" });
  for (const article of articles) observer.observe(article);
}
