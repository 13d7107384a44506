// The command palette (Ctrl K): goes to a page, a chat by name or number, or a message by its id.
import { api } from "./api.js";
import { html, useEffect, useRef, useState } from "./html.js";
import { t } from "./i18n.js";
import { go } from "./router.js";
import { Dialog } from "./ui.js";
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
  const [at, setAt] = useState(0);
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
  const found = [
    ...(account !== null && /^msg_\w+$/.test(words)
      ? [[t("Message"), words, `/accounts/${account}/messages/${words}`]]
      : []),
    ...pages.filter(([name]) => plain(name).includes(plain(words))).map(([name, to]) => [t("Page"), name, to]),
    ...chats,
  ];
  const chosen = Math.min(at, found.length - 1);
  useEffect(() => list.current?.children[chosen]?.scrollIntoView({ block: "nearest" }), [chosen]);
  const open = (to) => {
    close();
    go(to);
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
          placeholder=${t("a page, a chat, or a message's ID")} autocomplete="off" value=${typed}
          onInput=${({ target }) => setTyped(target.value)} onKeyDown=${onKeyDown} />
        ${found.length === 0 && html`<p class="empty" role="status">${t("No matches")}</p>`}
        <ul id="palette" role="listbox" aria-label=${t("Go to")} ref=${list}>${found.map(([kind, name, to], i) =>
          html`
            <li key=${to} id=${`palette-${i}`} role="option" aria-selected=${i === chosen} onClick=${() => open(to)}>
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
