// The frame of every page: navigation, and a notice while the gateway does not answer.
import { call, offline, signOut } from "./api.js";
import { html, useEffect, useRef, useState, useStore } from "./html.js";
import { t } from "./i18n.js";
import { useAttention } from "./live.js";
import { href } from "./router.js";
import { Work } from "./ui.js";

const ICONS = {
  home: "M3 9.5 10 4l7 5.5V16a1 1 0 0 1-1 1h-4v-5H8v5H4a1 1 0 0 1-1-1z",
  line:
    "M6 2.5h8a1.5 1.5 0 0 1 1.5 1.5v12a1.5 1.5 0 0 1-1.5 1.5H6A1.5 1.5 0 0 1 4.5 16V4A1.5 1.5 0 0 1 6 2.5zM8.5 15h3",
  message: "M3 5h14v10H3zM3 5.5l7 5 7-5",
  bulk: "M3 3.5h14v4H3zM3 9.5h14M3 13h14M3 16.5h9",
  chat: "M3 4.5h14v9H9l-4 3.5v-3.5H3z",
  send: "M3 10 17 3.5 13 16.5l-3.5-5zM9.5 11.5 17 3.5",
  hook: "M10 3.5a3 3 0 0 1 1.5 5.5l2.5 4.5M8.5 9 6 13.5M14 13.5a2.5 2.5 0 1 1-2 3.5H7.5a2.5 2.5 0 1 1-1.5-3.5",
  event: "M2.5 10h4l2-5.5 3.5 11 2-5.5h3.5",
  key: "M12.5 3a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM9 10.5 3 16.5M5 14.5l2 2",
  people:
    "M7.5 9.5a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM2 17c0-3 2.5-5 5.5-5s5.5 2 5.5 5M13 4a3 3 0 0 1 0 5.5M15 12.5c2 .7 3 2.5 3 4.5",
  stop: "M10 2.5a7.5 7.5 0 1 0 0 15 7.5 7.5 0 0 0 0-15zM5 5l10 10",
  check: "M3.5 4.5h13v11h-13zM6.5 10l2.5 2.5 4.5-5",
  gauge: "M3 14a7 7 0 1 1 14 0M10 14l3.5-5",
  list: "M3 5h14M3 10h14M3 15h9",
  tool: "M12.5 3a4 4 0 0 0-3.8 5.3L3 14v3h3l5.7-5.7A4 4 0 0 0 17 7.5l-2.5 2.5-2.5-.5-.5-2.5L14 4.5z",
  plan: "M3 4h14v4H3zM3 12h14v4H3z",
  person: "M10 10a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM3.5 17.5c0-3.5 3-5.5 6.5-5.5s6.5 2 6.5 5.5",
};

function Icon({ name }) {
  return html`
    <svg width="18" height="18" viewBox="0 0 20 20" fill="none" stroke="currentColor" stroke-width="1.6"
      stroke-linejoin="round" stroke-linecap="round" aria-hidden="true">
      <path d=${ICONS[name]} />
    </svg>
  `;
}

const accountPages = (account) => [
  ["home", t("Overview"), `/accounts/${account}`, true],
  ["line", t("Lines"), `/accounts/${account}/lines`],
  ["message", t("Messages"), `/accounts/${account}/messages`],
  ["bulk", t("Bulks"), `/accounts/${account}/bulks`],
  ["chat", t("Chats"), `/accounts/${account}/chats`],
  ["send", t("Send a message"), `/accounts/${account}/send`],
  ["plan", t("Templates"), `/accounts/${account}/templates`],
  ["check", t("Approvals"), `/accounts/${account}/approvals`],
  ["hook", t("Webhooks"), `/accounts/${account}/webhooks`],
  ["event", t("Events"), `/accounts/${account}/events`],
  ["stop", t("Opt-outs"), `/accounts/${account}/opt-outs`],
  ["key", t("API key"), `/accounts/${account}/key`],
  ["people", t("People"), `/accounts/${account}/people`],
];

/** A larger count is shown as "99+". */
const MOST_COUNTED = 99;
/** The pages of agents. */
const ANSWERING = ["message", "chat", "send", "plan", "check"];

const gatewayPages = () => [
  ["gauge", t("Gateway"), "/gateway", true],
  ["people", t("Accounts"), "/gateway/accounts"],
  ["plan", t("Plans"), "/gateway/plans"],
  ["line", t("All lines"), "/gateway/lines"],
  ["hook", t("Failed deliveries"), "/gateway/deliveries"],
  ["key", t("Operators"), "/gateway/people"],
  ["list", t("Audit log"), "/gateway/audit"],
  ["tool", t("Maintenance"), "/gateway/maintenance"],
];

/** How much needs a person, by the icon of a page. */
function countsOf({ items, unread = 0 }) {
  const count = (...kinds) => items.filter(({ kind }) => kinds.includes(kind)).length;
  return {
    line: count("line_unlinked", "line_down", "line_restricted"),
    hook: count("webhook_failing", "webhook_off"),
    message: items.find(({ kind }) => kind === "failed")?.count ?? 0,
    check: items.find(({ kind }) => kind === "proposed")?.count ?? 0,
    chat: unread,
  };
}

function Pages({ pages, pathname, counts = {} }) {
  return html`<ul>${
    pages.map(([icon, name, to, exact]) => {
      const here = pathname === to || (!exact && pathname.startsWith(`${to}/`));
      const count = counts[icon] ?? 0;
      return html`
        <li key=${to}><a href=${href(to)} aria-current=${here ? "page" : undefined}>
          <${Icon} name=${icon} />${name}${count > 0 &&
            html`<span class="grow"></span><span class="count" title=${t("Needs attention")}>${
              count > MOST_COUNTED ? `${MOST_COUNTED}+` : count
            }</span>`}</a></li>
      `;
    })
  }</ul>`;
}

/** The pages of an account that the person may open. */
const pagesOf = (account, person) =>
  accountPages(account).filter(([icon]) => person.role !== "agent" || ANSWERING.includes(icon));

/** The command palette, once Ctrl K is pressed. Its module is loaded then. */
function Palette({ account, person }) {
  const [Found, setFound] = useState(null);
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const onKeyDown = (event) => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) {
        return;
      }
      event.preventDefault();
      // Not above another dialog, whose work it would leave.
      if (document.querySelector("dialog[open]")) return;
      import("./palette.js").then((module) => {
        setFound(() => module.Palette);
        setOpen(true);
      }, () => {});
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
  if (!Found || !isOpen) return null;
  const pages = [
    ...(account ? pagesOf(account, person) : []),
    ...(person.operator ? gatewayPages() : []),
    ["person", t("Your login"), "/me"],
  ].map(([, name, to]) => [name, to]);
  return html`<${Found} pages=${pages} account=${account} close=${() => setOpen(false)} />`;
}

/** The pages of an account, with counts of what needs a person. */
function AccountPages({ account, person, pathname }) {
  const attention = useAttention(`/accounts/${account}`);
  const pages = pagesOf(account, person);
  return html`<${Pages} pages=${pages} pathname=${pathname} counts=${attention ? countsOf(attention) : {}} />`;
}

export const icon = new URL("icon.svg", import.meta.url).href;

export const Brand = ({ size }) =>
  html`<a class="brand" href=${href("/")}><img src=${icon} width=${size} height=${size} alt="" />Paloma</a>`;

export function Offline() {
  return useStore(offline) &&
    html`<div class="offline" role="alert">${t("Offline: the gateway is not responding. Retrying…")}</div>`;
}

export function Frame({ account, person, pathname, children }) {
  const [open, setOpen] = useState(false);
  const [name, setName] = useState(person.accountName);
  useEffect(() => setOpen(false), [pathname]);
  useEffect(() => {
    if (!account) return;
    setName(person.accountName);
    if (!person.operator) return;
    let isShown = true;
    call("GET", `/accounts/${account}`).then(({ data }) => isShown && setName(data.name), () => {});
    return () => void (isShown = false);
  }, [account]);
  const menu = useRef(null);
  const close = () => {
    if (!open) return;
    setOpen(false);
    menu.current.focus();
  };
  const brand = html`<${Brand} size="26" />`;
  return html`
    <div class="frame" onKeyDown=${({ key }) => key === "Escape" && close()}>
      <a class="skip" href="#main">${t("Skip to content")}</a>
      <header class="bar">${brand}
        <button type="button" ref=${menu} aria-expanded=${open} aria-controls="side"
          onClick=${() => setOpen(!open)}>${t("Menu")}</button></header>
      <nav class=${`side ${open ? "open" : ""}`} id="side" aria-label=${t("Pages")}
        onClick=${({ target }) => target.closest("a") && setOpen(false)}>
        ${brand}
        <div class="places">${account && html`
          <div class="who">${t("Account")}<strong>${name ?? "…"}</strong></div>
          <${AccountPages} key=${account} account=${account} person=${person} pathname=${pathname} />
        `}
        ${person.operator && html`
          <h2>${t("Operator")}</h2>
          <${Pages} pages=${gatewayPages()} pathname=${pathname} />
        `}</div>
        <div class="foot">
          <ul>
            <li><a href=${href("/me")} aria-current=${pathname === "/me" ? "page" : undefined}>
              <${Icon} name="person" />${person.login}</a></li>
            <li><a href=${new URL("../../docs", import.meta.url).href} target="_blank" rel="noopener">
              <${Icon} name="list" />${t("API reference")}</a></li>
          </ul>
          <${Work} kind="plain small" run=${signOut}>${t("Sign out")}</${Work}>
        </div>
      </nav>
      <div>
        <${Offline} />
        <main id="main">${children}</main>
        <${Palette} account=${account} person=${person} />
      </div>
    </div>
  `;
}
