/** The sidebar of the reference: a link for each part of the page, and a mark at the part on screen. */
import { el } from "./dom.js";

const side = document.querySelector("#side");
const links = new Map();

/** Adds a section; `parts` are `{ id, title }`. */
export function addSection(id, name, parts) {
  const own = parts.map(({ id, title }) => {
    const link = el("a", { href: `#${id}` }, title);
    links.set(id, link);
    return link;
  });
  side.append(el("section", {}, el("h2", {}, el("a", { href: `#${id}` }, name)), own));
}

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
