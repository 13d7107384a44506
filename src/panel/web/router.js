// Real URLs without page loads. Paths are relative to `/panel`, wherever that is.
import { makeStore, useEffect, useState, useStore } from "./html.js";

/** After this time the page is no longer scrolled, because somebody may be reading it. */
const GROWN_WITHIN_MS = 3_000;

const base = new URL("..", import.meta.url).pathname.replace(/\/$/, "");

const path = () => location.pathname.slice(base.length).replace(/\/$/, "") + location.search || "/";
/** The current path and query. */
export const place = makeStore(path());
export const href = (to) => base + to;

export function go(to, { replace = false } = {}) {
  if (to === place.get()) return;
  history[replace ? "replaceState" : "pushState"](null, "", href(to));
  place.set(path());
  if (!replace) scrollTo(0, 0);
}

/** Returns this page's path with a changed query: another part of a list. */
export function withQuery(changes) {
  const [pathname, search] = place.get().split("?");
  const query = new URLSearchParams(search);
  for (const [name, value] of Object.entries(changes)) value ? query.set(name, value) : query.delete(name);
  return pathname + (query.size ? `?${query}` : "");
}

/** Changes filters, without a new entry in the browser's history. */
export const setQuery = (changes) => go(withQuery(changes), { replace: true });

/**
 * Returns `[isOpen, setOpen]` of a page's dialog, which `?open=name` in a link opens, too. The URL loses it again, so that
 * a reload does not open it.
 */
export function useDialog(name) {
  const [isOpen, setOpen] = useState(false);
  const at = useStore(place);
  useEffect(() => {
    if (new URLSearchParams(at.split("?")[1]).get("open") !== name) return;
    setOpen(true);
    setQuery({ open: "" });
  }, [at]);
  return [isOpen, setOpen];
}

// Pages fill after the browser would restore the scroll position, so the history entry stores the position.
history.scrollRestoration = "manual";
addEventListener("scrollend", () => history.replaceState({ y: scrollY }, ""));
addEventListener("popstate", ({ state }) => {
  place.set(path());
  scrollBack(state?.y ?? 0);
});
scrollBack(history.state?.y ?? 0);

/** Scrolls to the position as soon as the page is long enough. */
function scrollBack(y) {
  const growing = new ResizeObserver(() => {
    scrollTo(0, y);
    if (scrollY >= y - 1) growing.disconnect();
  });
  growing.observe(document.body);
  setTimeout(() => growing.disconnect(), GROWN_WITHIN_MS);
}

/** Our own links change the page. With a modifier key, or to another site, the browser follows them as usual. */
addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  if (link.target || link.download || link.origin !== location.origin || !link.pathname.startsWith(base)) return;
  if (link.hash && link.pathname === location.pathname) return;
  event.preventDefault();
  go(link.pathname.slice(base.length).replace(/\/$/, "") + link.search || "/");
});

/**
 * Returns the secret of a one-time link, which follows its `#`. Opening another link in the same tab would not load the
 * page, so the hook reloads it.
 */
export function useToken() {
  useEffect(() => {
    const reload = () => location.reload();
    addEventListener("hashchange", reload);
    return () => removeEventListener("hashchange", reload);
  }, []);
  return location.hash.slice(1);
}
