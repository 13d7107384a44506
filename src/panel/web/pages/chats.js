// The chats of a line, and the messages of one chat, with a box to answer.
import { call, session } from "../api.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../html.js";
import { number, said, t } from "../i18n.js";
import { useData, useGroups, useLines, useLoad } from "../live.js";
import { go, href } from "../router.js";
import { Card, Empty, Head, Loaded, Select, Time, usePost, useWork } from "../ui.js";
import { chatName, isGroup, kindWord, messageWord, phone } from "../words.js";

/** The initial filter and length of the list; each "more" adds as many again. */
const ALL = { words: "", wrote: false, limit: 100 };
/** A search starts after this time without typing. */
const TYPING_MS = 250;
/** Within this distance of the end, the view follows new messages. */
const AT_END_PX = 60;

/** Whether there is a physical keyboard, on which Enter sends. On a touch keyboard it starts a new line. */
const hasKeys = () => matchMedia("(hover: hover)").matches;

export function Chats({ account, line: chosen, chat }) {
  const lines = useLines(account);
  return html`
    <div class="stack">
      <${Loaded} state=${lines}>${(list) => {
        // The URL may name a deleted line.
        const line = chosen ?? list.find(({ status }) => status === "connected")?._id ?? list[0]?._id;
        const about = list.find(({ _id }) => _id === line);
        return html`
          <${Head} title=${t("Chats")} text=${t("The stored messages of a line, sent and received.")}>
            ${list.some(({ _id }) => _id !== line) &&
              html`<${Select} label=${t("Line")} value=${line} onChange=${({ target }) =>
                go(`/accounts/${account}/chats/${target.value}`)} options=${
                (about ? list : [{ _id: line, name: "–" }, ...list]).map(({ _id, name }) => [_id, name])
              } />`}
          </${Head}>
          ${line
            ? html`
              <${OfLine} key=${line} account=${account} line=${line} chat=${chat}
                about=${about} />
            `
            : html`
              <${Card}>
                <${Empty} title=${t("No lines yet")}><a class="button primary" href=${href(
                  `/accounts/${account}/lines`,
                )}>${t("Link a line")}</a></${Empty}></${Card}>
            `}
        `;
      }}</${Loaded}></div>
  `;
}

function OfLine({ account, line, chat, about }) {
  const [wanted, setWanted] = useState(ALL);
  const chats = useLoad(
    () => {
      const query = new URLSearchParams({ limit: wanted.limit });
      if (wanted.wrote) query.set("wrote", "1");
      if (wanted.words !== "") {
        query.set("q", wanted.words);
        const named = groups.filter(({ name }) => name.toLowerCase().includes(wanted.words.trim().toLowerCase()));
        if (named.length > 0) query.set("groups", named.map(({ id }) => id).join());
      }
      return call("GET", `/accounts/${account}/lines/${line}/chats?${query}`);
    },
    [account, line, wanted],
    ["messages"],
  );
  const groups = useGroups(account, chats.data?.data.map(({ chat }) => [line, chat]) ?? []);
  const nameOf = (chat, name) => name ?? chatName(chat, groups);
  return html`<${Loaded} state=${chats}>${({ data, total }) =>
    total === 0 && wanted === ALL && !chat
      ? html`
        <${Card}>
          <${Empty} title=${t("No chats yet")}>
            <p>${t("Chats appear once a message is sent or received.")}</p>
            </${Empty}>
            </${Card}>
      `
      : html`<div class=${`card chat ${chat ? "open" : ""}`}>
        <${List} chats=${data} total=${total} wanted=${wanted} want=${setWanted} nameOf=${nameOf} open=${chat}
          to=${(chat) => href(`/accounts/${account}/chats/${line}/${encodeURIComponent(chat)}`)} />
        ${
        chat
          ? html`
            <${Turns} key=${chat} account=${account} line=${line} chat=${chat} nameOf=${nameOf}
              about=${about} />
          `
          : html`
            <section>
              <${Empty} title=${t("Choose a chat")} />
            </section>
          `
      }
      </div>`}</${Loaded}>`;
}

function List({ chats, total, wanted, want, nameOf, open, to }) {
  const [typed, setTyped] = useState("");
  useEffect(() => {
    const timer = setTimeout(
      () => want((now) => now.words === typed ? now : { ...ALL, wrote: now.wrote, words: typed }),
      TYPING_MS,
    );
    return () => clearTimeout(timer);
  }, [typed]);
  return html`
    <nav aria-label=${t("Chats")}>
      <form class="find" role="search" onSubmit=${(event) => event.preventDefault()}>
        <input type="search" aria-label=${t("Search chats")} placeholder=${t("name or number")} value=${typed}
          onInput=${({ target }) => setTyped(target.value)} />
        <label class="check"><input type="checkbox" checked=${wanted.wrote} onChange=${({ target }) =>
          want({ ...wanted, wrote: target.checked })} />${t("Only chats with replies")}</label>
      </form>
      ${total === 0 && html`<p class="empty" role="status">${t("No matches")}</p>`}
      <ul>${chats.map(({ chat, name, last }) =>
        html`
          <li key=${chat}><a href=${to(chat)} aria-current=${chat === open ? "page" : undefined}>
            <span class="row"><strong class="clip grow">${nameOf(chat, name)}</strong>
              <small class="soft"><${Time} at=${last.at} /></small></span>
            <span class="clip small soft">${last.mine ? "→ " : ""}${last.text ?? last.filename ??
              kindWord(last.type)}</span></a></li>
        `
      )}</ul>
      ${total > chats.length && html`
        <button type="button" class="plain" onClick=${() => want({ ...wanted, limit: wanted.limit + ALL.limit })}>${t(
          "Show {n} more",
          {
            n: number(Math.min(ALL.limit, total - chats.length)),
          },
        )}</button>
      `}
    </nav>
  `;
}

function Turns({ account, line, chat, nameOf, about }) {
  const turns = useData(`/accounts/${account}/lines/${line}/chats/${encodeURIComponent(chat)}`, ["messages"]);
  // A group does not take the name of a member who writes in it.
  const name = nameOf(chat, isGroup(chat) ? null : turns.data?.findLast(({ name }) => name)?.name);
  const list = useRef(null);
  const head = useRef(null);
  const box = useRef(null);
  const isAtEnd = useRef(true);
  const toEnd = () => list.current?.scrollTo(0, list.current.scrollHeight);
  useLayoutEffect(() => {
    if (isAtEnd.current) toEnd();
  }, [turns.data]);
  useEffect(() => {
    if (!list.current) return;
    // The list shrinks when the box grows with its text, or when a touch keyboard appears.
    const resized = new ResizeObserver(() => isAtEnd.current && toEnd());
    resized.observe(list.current);
    return () => resized.disconnect();
  }, [turns.data === null]);
  const onScroll = ({ target }) =>
    isAtEnd.current = target.scrollHeight - target.scrollTop - target.clientHeight < AT_END_PX;
  // The draft survives a reload, a change of chat, and an expired sign-in; signing out removes it.
  const [draft] = useState(() => `draft ${session.get().person.login} ${line} ${chat}`);
  useEffect(() => {
    box.current.value = sessionStorage.getItem(draft) ?? "";
    // A touch keyboard would cover the messages.
    (hasKeys() ? box : head).current.focus({ preventScroll: true });
  }, []);
  const keep = () =>
    box.current.value === "" ? sessionStorage.removeItem(draft) : sessionStorage.setItem(draft, box.current.value);
  const [run, busy, error] = useWork({ quiet: true });
  const post = usePost(account);
  const answer = (event) => {
    event.preventDefault();
    const text = box.current.value;
    if (text.trim() === "") return;
    run(async () => {
      const body = { sessionId: line, to: chat, text };
      await post("/messages/send/text", { body });
      // Keep what was typed in the meantime.
      if (box.current?.value === text) {
        box.current.value = "";
        keep();
      }
      isAtEnd.current = true;
      await turns.reload();
    });
  };
  const onKeyDown = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || !hasKeys()) return;
    event.preventDefault();
    event.target.form.requestSubmit();
  };
  return html`
    <section>
      <header><strong class="clip" ref=${head} tabindex="-1">${name}</strong>
        <span class="soft grow clip">${name === phone(chat) || isGroup(chat)
          ? ""
          : phone(chat)}</span><a class="back" href=${href(
            `/accounts/${account}/chats/${line}`,
          )}>${t("All chats")}</a></header>
      <${Loaded} state=${turns}>${(rows) =>
        html`<ol class="turns" ref=${list} tabindex="0" aria-label=${t("Messages")} onScroll=${onScroll}>${
          rows.length === 0 && html`<li class="empty">${t("No messages of this chat are stored.")}</li>`
        }${rows.map((turn) => html`<${Turn} key=${turn.id} turn=${turn} />`)}</ol>`}</${Loaded}>
        <div role="status">${about && about.status !== "connected" && html`
          <p class="note warn inset">${about.phone && about.status !== "logged_out"
            ? t("The line is not connected. Your reply will wait until it is.")
            : t("The line is not linked, so it cannot send.")} <a href=${href(
              `/accounts/${account}/lines/${line}`,
            )}>${t("Open the line")}</a></p>
        `}</div>
        <div role="alert">${error && html`<p class="note bad inset">${error.fields?.text ?? error.message}</p>`}</div>
        <form class="answer" onSubmit=${answer}><textarea name="text" rows="1" required ref=${box} aria-label=${t(
          "Reply",
        )} placeholder=${t("Reply")} onKeyDown=${onKeyDown} onInput=${keep}></textarea>
          <button class="primary" aria-disabled=${busy}>${t("Send")}</button></form>
      </section>
  `;
}

function Turn({ turn }) {
  const { mine, name, chat, at, status, error, text, filename, type } = turn;
  const called = filename ?? (text === null ? kindWord(type) : null);
  return html`
    <li class=${`turn ${mine ? "mine" : ""}`}>
      ${name && isGroup(chat) && html`<small>${name}</small>`}
      ${turn.url || called ? html`<${File} turn=${turn} called=${called ?? kindWord(type)} />` : ""}
      ${text !== null && html`<div>${text}</div>`}
      <small><${Time} at=${at} />${status && ` · ${messageWord(status)}`}${error &&
        html`<span class="wrong">${` · ${said(error.message)}`}</span>`}</small>
    </li>
  `;
}

/** A received file, while it is kept. An image from this origin is shown inline. */
function File({ turn: { type, url }, called }) {
  if (!url) return html`<em class="soft">${called}</em>`;
  const { origin, searchParams } = new URL(url);
  if (Number(searchParams.get("expires")) * 1000 < Date.now()) {
    return html`<em class="soft">${t("{file} (no longer available)", { file: called })}</em>`;
  }
  const isPicture = ["imageMessage", "stickerMessage"].includes(type) && origin === location.origin;
  return html`<a href=${url} target="_blank" rel="noopener">${
    isPicture ? html`<img src=${url} alt=${called} loading="lazy" />` : called
  }</a>`;
}
