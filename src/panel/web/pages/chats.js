// The chats of a line: the list, and beside it the open chat.
import { call, isAgent, v1 } from "../api.js";
import { html, useEffect, useState } from "../html.js";
import { number, t } from "../i18n.js";
import { useLines, usePaged } from "../live.js";
import { go, href } from "../router.js";
import { Badge, Card, Empty, Head, Loaded, Select, Time, useWork } from "../ui.js";
import { isGroup, kindOf, kindWord, phone } from "../words.js";
import { Thread } from "./chat.js";

const PAGE = 100;
/** The initial filter of the list. */
const ALL = { q: "", only: "" };
/** A search starts after this time without typing. */
const TYPING_MS = 250;

export function Chats({ account, line: chosen, chat }) {
  const lines = useLines(account);
  return html`
    <div class="stack">
      <${Loaded} state=${lines}>${(list) => {
        // The URL may name a deleted line.
        const line = chosen ?? list.find(({ status }) => status === "connected")?._id ?? list[0]?._id;
        const about = list.find(({ _id }) => _id === line);
        const offered = about ? list : [{ _id: line, name: t("deleted line") }, ...list];
        return html`
          <${Head} title=${t("Chats")} text=${t("The stored messages of a line, sent and received.")}>
            ${list.some(({ _id }) => _id !== line) &&
              html`
                <${Select} label=${t("Line")} value=${line} choose=${(id) => go(`/accounts/${account}/chats/${id}`)}
                  options=${offered.map(({ _id, name }) => [_id, name])} />
              `}
          </${Head}>
          ${line ? html`<${OfLine} key=${line} account=${account} line=${line} chat=${chat} about=${about} />` : html`
            <${Card}>
              <${Empty} title=${t("No lines yet")}>${!isAgent() &&
                html`<a class="button primary" href=${href(`/accounts/${account}/lines`)}>${
                  t("Link a line")
                }</a>`}</${Empty}></${Card}>
          `}
        `;
      }}</${Loaded}></div>
  `;
}

/** The known chats that follow those of a reloaded first page; none if there may be others between. */
function older(fresh, known) {
  const last = fresh.at(-1);
  const isSame = (chat) => known.some((other) => other.chat === chat.chat && other.lastAt === chat.lastAt);
  return last && fresh.some(isSame) ? known.filter(({ lastAt }) => lastAt < last.lastAt) : [];
}

function OfLine({ account, line, chat, about }) {
  const [wanted, setWanted] = useState(ALL);
  const chats = usePaged(
    (after) => {
      const query = new URLSearchParams({ limit: PAGE, ...(after && { after }) });
      if (wanted.q.trim() !== "") query.set("q", wanted.q.trim());
      if (wanted.only) query.set(wanted.only, "true");
      return call("GET", `${v1(account)}/sessions/${line}/chats?${query}`);
    },
    [account, line, wanted.q, wanted.only],
    ["messages"],
    older,
  );
  return html`<${Loaded} state=${chats}>${({ rows, next }) =>
    rows.length === 0 && !next && wanted.q === "" && wanted.only === "" && !chat
      ? html`
        <${Card}>
          <${Empty} title=${t("No chats yet")} text=${t("Chats appear once a message is sent or received.")} />
          </${Card}>
      `
      : html`<div class=${`card chat ${chat ? "open" : ""}`}>
        <${List} chats=${rows} more=${next && chats.more} wanted=${wanted} want=${setWanted} open=${chat}
          to=${(chat) => href(`/accounts/${account}/chats/${line}/${encodeURIComponent(chat)}`)} />
        ${
        chat
          ? html`
            <${Thread} key=${chat} account=${account} line=${line} chat=${chat} about=${about}
              changed=${chats.reload} />
          `
          : html`
            <section>
              <${Empty} title=${t("Choose a chat")} />
            </section>
          `
      }
      </div>`}</${Loaded}>`;
}

function List({ chats, more, wanted, want, open, to }) {
  const [typed, setTyped] = useState("");
  const [run, busy] = useWork();
  useEffect(() => {
    const timer = setTimeout(() => want((now) => now.q === typed ? now : { ...now, q: typed }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  const names = Map.groupBy(chats, ({ name }) => name);
  return html`
    <nav aria-label=${t("Chats")}>
      <form class="find" role="search" onSubmit=${(event) => event.preventDefault()}>
        <input type="search" aria-label=${t("Search chats")} placeholder=${t("name or number")} maxlength="100"
          value=${typed} onInput=${({ target }) => setTyped(target.value)} />
        <select aria-label=${t("Show")} onChange=${({ target }) => want({ ...wanted, only: target.value })}>
          ${[["", t("All chats")], ["unread", t("Unread")], ["wrote", t("Only chats with replies")]].map((
            [value, text],
          ) => html`<option value=${value} selected=${value === wanted.only}>${text}</option>`)}
        </select>
      </form>
      ${chats.length === 0 &&
        html`<p class="empty" role="status">${more ? t("No matches among the newest chats") : t("No matches")}</p>`}
      <ul>${chats.map((one) =>
        html`
          <${Entry} key=${one.chat} of=${one} to=${to(one.chat)} isOpen=${one.chat === open}
            isAlone=${one.name === null || names.get(one.name).length === 1} />
        `
      )}</ul>
      ${more && html`
        <button type="button" class="plain" aria-disabled=${busy} onClick=${() => run(more)}>${t("Show more")}</button>
      `}
    </nav>
  `;
}

/** `isAlone`: no other chat in the list has its name. */
function Entry({ of: { chat, number: digits, name, unread, lastAt, lastMessage }, to, isOpen, isAlone }) {
  const address = phone(digits ?? chat);
  return html`
    <li><a href=${to} class=${unread ? "unread" : ""} aria-current=${isOpen ? "page" : undefined}>
      <span class="row"><strong class="clip grow">${name ?? address}</strong>
        <small class="soft"><${Time} at=${lastAt} /></small></span>
      ${!isAlone && !isGroup(chat) && html`<span class="clip small soft">${address}</span>`}
      <span class="row"><span class="clip grow small soft">${lastMessage ? summary(lastMessage) : ""}</span>
        ${lastMessage?.status === "failed" && html`<${Badge} kind="bad">${t("failed")}</${Badge}>`}
        ${unread > 0 && html`<span class="count">${number(unread)}<span class="unseen"> ${t("unread")}</span></span>`}
      </span></a></li>
  `;
}

function summary(message) {
  const { direction, deletedAt, text, media } = message;
  const kind = kindOf(message);
  const words = kind === "text" ? text : [kindWord(kind), text ?? media?.filename].filter(Boolean).join(" · ");
  return (direction === "out" ? "→ " : "") + (deletedAt ? t("deleted") : words ?? kindWord(kind));
}
