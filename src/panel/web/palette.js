// The command palette (Ctrl K): goes to a page, a chat by name or number, or a message by its id, and does what is
// asked for most.
import { api, call, isAgent, session } from "./api.js";
import { html, useEffect, useRef, useState } from "./html.js";
import { t } from "./i18n.js";
import { go } from "./router.js";
import { Dialog, toast } from "./ui.js";
import { phone } from "./words.js";

/** A search for chats starts after this time without typing. */
const TYPING_MS = 200;
/** Chats shown of each line, and lines asked. */
const MOST_CHATS = 5;
const MOST_LINES = 10;

const plain = (text) => text.toLowerCase().normalize("NFD").replaceAll(/\p{M}/gu, "");

/** `pages`: `[name, path]` each. `account`: whose chats and messages are found; null for none. */
export function Palette({ pages, account, close }) {
  const [typed, setTyped] = useState("");
  const [chats, setChats] = useState([]);
  const [queues, setQueues] = useState([]);
  const [at, setAt] = useState(0);
  useEffect(() => {
    if (account !== null && !isAgent()) queueActions(account).then(setQueues, () => {});
  }, [account]);
  const list = useRef(null);
  const words = typed.trim();
  useEffect(() => {
    setAt(0);
    setChats([]);
    if (account === null || words.length < 2) return;
    let isWanted = true;
    const timer = setTimeout(
      () => chatsOf(account, words).then((found) => isWanted && setChats(found), () => {}),
      TYPING_MS,
    );
    return () => {
      isWanted = false;
      clearTimeout(timer);
    };
  }, [account, words]);
  const isMeant = ([name]) => plain(name).includes(plain(words));
  /** `[kind, name, to]` each; `to` is a path, or does the work and resolves to what it has done. */
  const found = [
    ...(account !== null && /^msg_\w+$/.test(words)
      ? [[t("Message"), words, `/accounts/${account}/messages/${words}`]]
      : []),
    ...pages.filter(isMeant).map(([name, to]) => [t("Page"), name, to]),
    ...[...actions(account), ...queues].filter(isMeant).map(([name, to]) => [t("Action"), name, to]),
    ...chats,
  ];
  const chosen = Math.min(at, found.length - 1);
  useEffect(() => list.current?.children[chosen]?.scrollIntoView({ block: "nearest" }), [chosen]);
  const open = (to) => {
    close();
    if (typeof to === "string") go(to);
    else to().then((done) => toast(done), ({ message }) => toast(message, "bad"));
  };
  const onKeyDown = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && found.length > 0) setAt((chosen + step + found.length) % found.length);
    else if (event.key === "Enter" && found[chosen]) open(found[chosen][2]);
    else return;
    event.preventDefault();
  };
  return html`
    <${Dialog} title=${t("Go to")} close=${close}>
      <form class="palette" role="search" onSubmit=${(event) => event.preventDefault()}>
        <input type="search" role="combobox" aria-label=${t("Go to")} aria-expanded="true" aria-controls="palette"
          aria-autocomplete="list" aria-activedescendant=${found.length > 0 ? `palette-${chosen}` : undefined}
          placeholder=${t("a page, a chat, an action, or a message's ID")} autocomplete="off" value=${typed}
          onInput=${({ target }) => setTyped(target.value)} onKeyDown=${onKeyDown} />
        ${found.length === 0 && html`<p class="empty" role="status">${t("No matches")}</p>`}
        <ul id="palette" role="listbox" aria-label=${t("Go to")} ref=${list}>${found.map(([kind, name, to], i) =>
          html`
            <li key=${kind + name} id=${`palette-${i}`} role="option" aria-selected=${i === chosen} onClick=${() =>
              open(to)}>
              <span class="clip grow">${name}</span><span class="small soft">${kind}</span></li>
          `
        )}</ul>
      </form>
      </${Dialog}>
  `;
}

/** Resolves to the chats of the account with this in their name or number. */
async function chatsOf(account, words) {
  const { data: lines } = await api(account, "GET", "/sessions");
  const query = new URLSearchParams({ q: words.slice(0, 100), limit: MOST_CHATS });
  const found = await Promise.all(
    lines.slice(0, MOST_LINES).map(async ({ _id, name: line }) => {
      const { data } = await api(account, "GET", `/sessions/${_id}/chats?${query}`);
      return data.map(({ chat, name, number }) => {
        const to = `/accounts/${account}/chats/${_id}/${encodeURIComponent(chat)}`;
        return [`${t("Chat")} · ${line}`, name ?? phone(number ?? chat), to];
      });
    }),
  );
  return found.flat();
}

/** What the person may do from here, by name: the path of the page that does it, or of its dialog. */
function actions(account) {
  const { person } = session.get();
  const ofAccount = [
    [t("Link a line"), "/lines?open=new"],
    [t("New bulk"), "/bulks/new"],
    [t("Add a webhook"), "/webhooks?open=new"],
    [t("Invite someone"), "/people?open=new"],
  ];
  return [
    ...(account === null || isAgent() ? [] : ofAccount.map(([name, below]) => [name, `/accounts/${account}${below}`])),
    ...(person.operator
      ? [
        [t("New account"), "/gateway/accounts?open=new"],
        [t("Invite an operator"), "/gateway/people?open=new"],
        [t("Back up now"), backUp],
      ]
      : []),
  ];
}

async function backUp() {
  await call("POST", "/operator/backups");
  return t("The backup is being made.");
}

/** Resolves to what pauses and resumes the queue of each line. */
async function queueActions(account) {
  const { data: lines } = await api(account, "GET", "/sessions");
  const change = (line, verb, done) => async () => {
    await api(account, "POST", `/sessions/${line._id}/queue/${verb}`);
    return done;
  };
  return lines.slice(0, MOST_LINES).flatMap((line) => [
    [t("Pause the queue of {line}", { line: line.name }), change(line, "pause", t("The queue is paused."))],
    [t("Resume the queue of {line}", { line: line.name }), change(line, "resume", t("The queue is sending again."))],
  ]);
}
