// The entry point: loads the language and the session, then the page for the URL.
import { loadSession, offline, session } from "./api.js";
import { Brand, Frame, icon, Offline } from "./frame.js";
import { html, render, useEffect, useLayoutEffect, useRef, useState, useStore } from "./html.js";
import { language, startLanguage, t } from "./i18n.js";
import { follow } from "./live.js";
import { go, href, place } from "./router.js";
import { find, OPEN, pagesOf } from "./routes.js";
import { startTheme } from "./theme.js";
import { Loading, Title, Toasts } from "./ui.js";

/** Returns the component of a page once its module is loaded, else null. */
function usePage(route) {
  const [page, setPage] = useState(null);
  const key = route && `${route.module}.${route.name}`;
  useEffect(() => {
    if (!route) return;
    let wanted = true;
    let end = () => {};
    import(`./pages/${route.module}.js`).then(
      (module) => wanted && setPage({ key, component: module[route.name] }),
      () => {
        if (!wanted) return;
        // Reload the document too, because the gateway may come back with another version.
        end = offline.subscribe((gone) => gone || location.reload());
        offline.set(true);
      },
    );
    return () => {
      wanted = false;
      end();
    };
  }, [key]);
  return page?.key === key ? page.component : null;
}

const home = ({ operator, role, accountId }) =>
  operator ? "/gateway" : `/accounts/${accountId}${role === "agent" ? "/chats" : ""}`;

function App() {
  const at = useStore(place);
  const who = useStore(session);
  useStore(language);
  const [pathname, search] = at.split("?");
  const person = who?.person ?? null;
  const open = find(OPEN, pathname);
  const inside = open ? null : find(pagesOf(person), pathname);
  const Page = usePage(open ?? inside);
  const away = !open && !person;
  const login = useRef(null);
  useEffect(() => {
    if (!who) return;
    if (away && who.leaving) go("/sign-in", { replace: true });
    else if (away) go(`/sign-in?next=${encodeURIComponent(at)}${login.current ? "&ended=1" : ""}`, { replace: true });
    else if (pathname === "/" || pathname === "") go(home(person), { replace: true });
    else if (pathname === "/sign-in" && person) {
      const next = new URLSearchParams(search).get("next");
      go(next?.startsWith("/") && next !== "/" ? next : home(person), { replace: true });
    }
  }, [who, at]);
  useEffect(() => {
    // Somebody else has signed in, perhaps in another tab; this page is not theirs.
    if (person && login.current && login.current !== person.login) go(home(person), { replace: true });
    login.current = person?.login ?? login.current;
  }, [person?.login]);
  const account = inside?.params.account ?? null;
  const [version] = useState(who?.version);
  useEffect(() => {
    // Pages of another version do not match the modules already loaded.
    if (who?.version !== version) location.reload();
  }, [pathname]);
  const followed = !person || who.leaving ? undefined : account ?? (person.operator ? null : undefined);
  // At once: a stream that opens while its person signs out is refused.
  useLayoutEffect(() => follow(followed), [followed]);
  if (!who || away) return html`<${Toasts} />`;
  const query = Object.fromEntries(new URLSearchParams(search));
  const content = Page
    ? html`<${Page} ...${(open ?? inside).params} query=${query} key=${(open ?? inside).key} />`
    : open || inside || pathname === "/"
    ? html`<${Loading} />`
    : html`
      <div class="empty">
        <${Title}>${t("Page not found")}</${Title}><a href=${href("/")}>${t("Back to home")}</a></div>
    `;
  if (open) {
    return html`
      <div class="alone">
        <header>
          <${Brand} size="28" />
        </header>
        <${Offline} />
        <main>${content}</main>
        <${Toasts} />
      </div>
    `;
  }
  return html`<${Frame} account=${account} person=${person} pathname=${pathname}>${content}</${Frame}><${Toasts} />`;
}

// A relative URL would refer to another file once the path has changed.
document.querySelector('link[rel="icon"]').href = icon;

startTheme();
const languageStarted = startLanguage();
const start = () =>
  loadSession().catch((error) => {
    document.getElementById("app").textContent = error.message;
    setTimeout(start, 2_000);
  });
await Promise.all([start(), languageStarted]);
while (!session.get()) await new Promise((resolve) => setTimeout(resolve, 500));
document.getElementById("app").textContent = "";
render(html`<${App} />`, document.getElementById("app"));
