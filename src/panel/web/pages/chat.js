// One chat: its messages, older ones as one scrolls up, and a box to answer.
import { api, call, isAgent, session, v1 } from "../api.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../html.js";
import { t } from "../i18n.js";
import { useLoad, usePaged } from "../live.js";
import { href } from "../router.js";
import { Loaded, usePost, useWork, Work } from "../ui.js";
import { isGroup, phone } from "../words.js";
import { Turn } from "./turn.js";

const PAGE = 50;
/** Within this distance of the end, the view follows new messages. */
const AT_END_PX = 60;
/** Within this distance of the beginning, older messages are loaded. */
const AT_START_PX = 400;

/** Whether there is a physical keyboard, on which Enter sends. On a touch keyboard it starts a new line. */
const hasKeys = () => matchMedia("(hover: hover)").matches;

const orNone = (none) => (error) => {
  if (error.code !== "not_found") throw error;
  return none;
};

export function Thread({ account, line, chat, about, changed }) {
  const base = `/sessions/${line}/chats/${encodeURIComponent(chat)}`;
  const known = useLoad(
    () => api(account, "GET", base).then(({ data }) => data, orNone({ name: null, number: null, unread: 0 })),
    [account, base],
    ["messages"],
  );
  const said = usePaged(
    (before) => {
      const query = new URLSearchParams({ limit: PAGE, ...(before && { before }) });
      return api(account, "GET", `${base}/messages?${query}`).catch(orNone({ data: [], next: null }));
    },
    [account, base],
    ["messages"],
    (fresh, known) => {
      const at = known.findIndex(({ messageId }) => messageId === fresh.at(-1)?.messageId);
      return at < 0 ? [] : known.slice(at + 1);
    },
  );
  // What waits, and what ended before it left, is not in the chat.
  const sent = useLoad(
    () => {
      const query = new URLSearchParams({ sessionId: line, recipient: chat, limit: PAGE });
      return call("GET", `${v1(account)}/messages/history?${query}`).then(({ data }) => data.filter(hasNotLeft));
    },
    [account, line, chat],
    ["messages"],
  );
  const { name, number, unread } = known.data ?? { name: null, number: null, unread: 0 };
  const address = phone(number ?? chat);
  const head = useRef(null);
  const read = async () => {
    await api(account, "POST", `${base}/read`, { body: {} });
    await Promise.all([known.reload(), changed()]);
  };
  const shown = said.data && sent.data
    ? { ...said, data: { ...said.data, rows: inTime(said.data, sent.data) } }
    : { ...said, data: null, error: said.error ?? sent.error };
  return html`
    <section>
      <header><strong class="clip" ref=${head} tabindex="-1">${name ?? address}</strong>
        <span class="soft grow clip">${name === null || isGroup(chat) ? "" : address}</span>
        ${unread > 0 && about?.status === "connected" &&
          html`<${Work} kind="small" run=${read}>${t("Mark as read")}</${Work}>`}
        <a class="back" href=${href(`/accounts/${account}/chats/${line}`)}>${t("All chats")}</a></header>
      <${Loaded} state=${shown}>${({ rows, next }) =>
        html`<${Turns} rows=${rows} more=${next && said.more} isGroup=${isGroup(chat)} />`}</${Loaded}>
        <div role="status">${about && about.status !== "connected" && html`
          <p class="note warn inset">${about.phone && about.status !== "logged_out"
            ? t("The line is not connected. Your reply will wait until it is.")
            : t("The line is not linked, so it cannot send.")} ${!isAgent() &&
            html`<a href=${href(`/accounts/${account}/lines/${line}`)}>${t("Open the line")}</a>`}</p>
        `}</div>
        <${Answer} account=${account} line=${line} chat=${chat} head=${head}
          sent=${() => Promise.all([said.reload(), sent.reload(), known.reload()])} />
      </section>
  `;
}

const waits = ({ status }) => status === "queued" || status === "processing";
const hasNotLeft = (item) => waits(item) || item.status === "failed";

/** Returns all messages, the oldest first; those that wait come last. */
function inTime({ rows, next }, sent) {
  const turns = rows.toReversed();
  const known = new Set(rows.map(({ messageId }) => messageId));
  const since = next === null ? "" : turns[0].timestamp;
  for (const item of sent.toReversed()) {
    const { messageId, type, text, caption, filename, status, error, createdAt, sendAt } = item;
    if (known.has(messageId) || createdAt < since) continue;
    const turn = {
      messageId,
      direction: "out",
      author: null,
      type,
      text: text ?? caption,
      media: filename ? { filename, url: null } : null,
      status,
      error,
      sendAt,
      timestamp: createdAt,
      reactions: [],
    };
    const at = waits(item) ? -1 : turns.findLastIndex(({ timestamp }) => timestamp <= createdAt);
    if (waits(item)) turns.push(turn);
    else turns.splice(at + 1, 0, turn);
  }
  return turns;
}

/** Messages as they are drawn: one that has not changed is not drawn again. */
const drawn = new WeakMap();

function turnOf(message, isGroup) {
  const turn = drawn.get(message) ?? html`<${Turn} key=${message.messageId} message=${message} isGroup=${isGroup} />`;
  drawn.set(message, turn);
  return turn;
}

function Turns({ rows, more, isGroup }) {
  const list = useRef(null);
  const isAtEnd = useRef(true);
  const loading = useRef(false);
  const toEnd = () => list.current?.scrollTo(0, list.current.scrollHeight);
  useLayoutEffect(() => {
    if (isAtEnd.current) toEnd();
  }, [rows]);
  useEffect(() => {
    // The list shrinks when the box grows with its text, or when a touch keyboard appears.
    const resized = new ResizeObserver(() => isAtEnd.current && toEnd());
    resized.observe(list.current);
    return () => resized.disconnect();
  }, []);
  // What one reads stays where it is when older messages come above it.
  const fromEnd = useRef(null);
  useLayoutEffect(() => {
    if (fromEnd.current === null) return;
    list.current.scrollTop = list.current.scrollHeight - fromEnd.current;
    fromEnd.current = null;
  }, [rows[0]?.messageId]);
  const older = async () => {
    if (!more || loading.current) return;
    loading.current = true;
    try {
      await more(() => fromEnd.current = list.current && list.current.scrollHeight - list.current.scrollTop);
    } catch {
      // The button remains; the frame shows that the gateway does not answer.
    } finally {
      loading.current = false;
    }
  };
  const onScroll = ({ target }) => {
    isAtEnd.current = target.scrollHeight - target.scrollTop - target.clientHeight < AT_END_PX;
    if (target.scrollTop < AT_START_PX) older();
  };
  // Blocks keep their messages, whatever comes before or after.
  const middle = useRef(null);
  if (!rows.some(({ messageId }) => messageId === middle.current)) middle.current = rows[0]?.messageId;
  const at = rows.findIndex(({ messageId }) => messageId === middle.current);
  const blocks = Map.groupBy(rows, (_, i) => Math.floor((i - at) / PAGE));
  return html`
    <div class="turns" ref=${list} tabindex="0" role="region" aria-label=${t("Messages")}
      onScroll=${onScroll}>${rows.length === 0 &&
        html`<p class="empty">${t("No messages of this chat are stored.")}</p>`}
        ${more && html`
          <button key="more" type="button" class="plain small" onClick=${older}>${t("Show older messages")}</button>
        `}
        ${[...blocks].map(([n, messages]) =>
          html`<ol key=${n}>${messages.map((message) => turnOf(message, isGroup))}</ol>`
        )}</div>
  `;
}

function Answer({ account, line, chat, head, sent }) {
  const box = useRef(null);
  const picker = useRef(null);
  const [file, setFile] = useState(null);
  const [run, busy, error] = useWork({ quiet: true });
  const post = usePost(account);
  // The draft survives a reload, a change of chat, and an expired sign-in; signing out removes it.
  const [draft] = useState(() => `draft ${session.get().person.login} ${line} ${chat}`);
  useEffect(() => {
    box.current.value = sessionStorage.getItem(draft) ?? "";
    // A touch keyboard would cover the messages.
    (hasKeys() ? box : head).current.focus({ preventScroll: true });
  }, []);
  const keep = () =>
    box.current.value === "" ? sessionStorage.removeItem(draft) : sessionStorage.setItem(draft, box.current.value);
  const attach = (chosen) => {
    setFile(chosen);
    if (!chosen) picker.current.value = "";
    box.current.focus();
  };
  const send = async (text) => {
    if (!file) return await post("/messages/send/text", { body: { sessionId: line, to: chat, text } });
    const form = new FormData();
    const fields = { sessionId: line, to: chat, caption: text.trim() };
    for (const [name, value] of Object.entries(fields)) if (value) form.append(name, value);
    form.append("file", file);
    await post("/messages/send/file", { form });
    if (picker.current) attach(null);
  };
  const answer = (event) => {
    event.preventDefault();
    const text = box.current.value;
    if (text.trim() === "" && !file) return;
    run(async () => {
      await send(text);
      // Keep what was typed in the meantime.
      if (box.current?.value === text) {
        box.current.value = "";
        keep();
      }
      const turns = box.current?.closest("section").querySelector(".turns");
      turns?.scrollTo(0, turns.scrollHeight);
      await sent();
    });
  };
  const onKeyDown = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || !hasKeys()) return;
    event.preventDefault();
    event.target.form.requestSubmit();
  };
  return html`
    <div role="alert">${error &&
      html`<p class="note bad inset">${error.fields?.text ?? error.fields?.file ?? error.message}</p>`}</div>
    <form class="answer" onSubmit=${answer}>
      ${file && html`<p class="attached"><span class="clip">${file.name}</span><button type="button" class="plain small"
        aria-label=${t("Remove {file}", { file: file.name })} onClick=${() => attach(null)}>✕</button></p>`}
      <input type="file" hidden ref=${picker} aria-label=${t("File")} onChange=${({ target }) =>
        attach(target.files[0] ?? null)} />
      <button type="button" class="plain" aria-label=${t("Attach a file")} title=${t("Attach a file")}
        onClick=${() => picker.current.click()}><svg width="18" height="18" viewBox="0 0 20 20" fill="none"
        stroke="currentColor" stroke-width="1.6" stroke-linecap="round" aria-hidden="true"><path
        d="M15.5 9.5 9.6 15.4a3.6 3.6 0 0 1-5.1-5.1l6.6-6.6a2.4 2.4 0 0 1 3.4 3.4l-6.5 6.5a1.2 1.2 0 0 1-1.7-1.7l5.5-5.5"
        /></svg></button>
      <textarea name="text" rows="1" ref=${box} aria-label=${t("Reply")} placeholder=${file
        ? t("Caption")
        : t("Reply")} onKeyDown=${onKeyDown} onInput=${keep}></textarea>
      <button class="primary" aria-disabled=${busy}>${t("Send")}</button></form>
  `;
}
