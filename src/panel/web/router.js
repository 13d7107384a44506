// Real addresses without page loads. Paths are below `/panel`, wherever that stands.
import { useEffect } from "./html.js";
import { makeStore } from "./store.js";

/** After this long a page is left as it is: by then somebody may read it. */
const GROWN_WITHIN_MS = 3_000;

const base = new URL("..", import.meta.url).pathname.replace(/\/$/, "");

const path = () => location.pathname.slice(base.length).replace(/\/$/, "") + location.search || "/";
/** The address now: path and query. */
export const place = makeStore(path());
export const href = (to) => base + to;

export function go(to, { replace = false } = {}) {
  if (to === place.get()) return;
  history[replace ? "replaceState" : "pushState"](null, "", href(to));
  place.set(path());
  if (!replace) scrollTo(0, 0);
}

/** This page with another query: another part of a list. */
export function withQuery(changes) {
  const [pathname, search] = place.get().split("?");
  const query = new URLSearchParams(search);
  for (const [name, value] of Object.entries(changes)) value ? query.set(name, value) : query.delete(name);
  return pathname + (query.size ? `?${query}` : "");
}

/** A change of filters, to which "back" does not lead. */
export const setQuery = (changes) => go(withQuery(changes), { replace: true });

// Pages are filled after the browser would have scrolled, so where somebody was stands in the history's own entry.
history.scrollRestoration = "manual";
addEventListener("scrollend", () => history.replaceState({ y: scrollY }, ""));
addEventListener("popstate", ({ state }) => {
  place.set(path());
  scrollBack(state?.y ?? 0);
});
scrollBack(history.state?.y ?? 0);

/** Scrolls there as soon as the page is that long. */
function scrollBack(y) {
  const growing = new ResizeObserver(() => {
    scrollTo(0, y);
    if (scrollY >= y - 1) growing.disconnect();
  });
  growing.observe(document.body);
  setTimeout(() => growing.disconnect(), GROWN_WITHIN_MS);
}

/** Our own links change the page; with a modifier key, or to another site, the browser follows them as usual. */
addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  if (link.target || link.origin !== location.origin || !link.pathname.startsWith(base)) return;
  if (link.hash && link.pathname === location.pathname) return;
  event.preventDefault();
  go(link.pathname.slice(base.length).replace(/\/$/, "") + link.search || "/");
});

/** The secret of a one-time link, which stands behind its `#`. Another link opened in the same tab loads no page by itself. */
export function useToken() {
  useEffect(() => {
    const reload = () => location.reload();
    addEventListener("hashchange", reload);
    return () => removeEventListener("hashchange", reload);
  }, []);
  return location.hash.slice(1);
}

/** The values of `/accounts/:account/lines/:id` in the path, or null where it does not fit. */
export function match(pattern, pathname) {
  const names = [];
  const source = pattern.replaceAll(/:(\w+)/g, (_, name) => names.push(name) && "([^/]+)");
  const found = new RegExp(`^${source}/?$`).exec(pathname);
  try {
    return found && Object.fromEntries(names.map((name, i) => [name, decodeURIComponent(found[i + 1])]));
  } catch {
    // A stray percent sign.
    return null;
  }
}
