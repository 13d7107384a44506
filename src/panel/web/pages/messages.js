// The history: filters in the URL, text search, one page at a time; and one message with its states.
import { api, call, isAgent } from "../api.js";
import { html, useEffect, useState } from "../html.js";
import { number, said, t, when } from "../i18n.js";
import { useApi, useEvery, useLines, useLoad, useNames } from "../live.js";
import { go, href, setQuery } from "../router.js";
import {
  Card,
  Facts,
  Field,
  Head,
  Loaded,
  Pager,
  Pages,
  Select,
  Table,
  Time,
  timeAt,
  toast,
  usePost,
  Work,
} from "../ui.js";
import {
  chatName,
  errorWord,
  farthest,
  isGroup,
  kinds,
  kindWord,
  MessageState,
  messageWord,
  phone,
  waitWord,
} from "../words.js";

const LIMIT = 25;
const POLL_MS = 5_000;
/** A search starts after this time without typing. */
const TYPING_MS = 350;
/** Limit of requests for one search; each reads thousands of messages. */
const MOST_REQUESTS = 10;
const STATUSES = ["queued", "processing", "sent", "failed"];

export function Messages({ account, query }) {
  const lines = useLines(account);
  const { q = "", page = "1", ...rest } = query;
  const filters = new URLSearchParams(Object.entries(rest).filter(([, value]) => value));
  const messages = useLoad(
    async () => {
      if (q !== "") return await search(account, { ...Object.fromEntries(filters), q }, page);
      const found = await api(account, "GET", `/messages/history?${filters}&page=${page}&limit=${LIMIT}`);
      return { rows: found.data, ...found.pagination };
    },
    [account, JSON.stringify(query)],
    q === "" ? ["messages"] : [],
  );
  // An accepted message causes no event until it leaves.
  useEvery(POLL_MS, messages.reload, page === "1" && q === "");
  const names = useNames(account, messages.data?.rows.map(({ sessionId, to }) => [sessionId, to]) ?? []);
  const nameOf = (id) => lines.data?.find(({ _id }) => _id === id)?.name ?? t("deleted line");
  const set = (name) => ({ target }) => setQuery({ [name]: target.value, page: "" });
  const choice = (name, label, options) =>
    html`
      <${Select} label=${label} onChange=${set(name)} value=${rest[name] ?? ""}
        options=${[["", t("all")], ...options]} />
    `;
  const filtered = q !== "" || filters.size > 0 || page !== "1";
  return html`
    <div class="stack">
      <${Head} title=${t("Messages")} text=${t("Sent messages and their status, newest first.")}>
          <a class="button primary" href=${href(`/accounts/${account}/send`)}>${t("Send a message")}</a></${Head}>
        <${Card}>
          <form class="filters" role="search" onSubmit=${(event) => event.preventDefault()}>
            <${Search} value=${q} />
            ${choice("status", t("Status"), STATUSES.map((status) => [status, messageWord(status)]))}
            ${choice("sessionId", t("Line"), (lines.data ?? []).map(({ _id, name }) => [_id, name]))}
            ${choice("type", t("Type"), Object.entries(kinds()))}
            <${Field} label=${t("From (UTC)")} type="date" value=${rest.from ?? ""} onChange=${set("from")} />
            <${Field} label=${t("To (UTC)")} type="date" value=${rest.to ?? ""} onChange=${set("to")} />
          </form>
          ${rest.bulkId && html`
            <p
              class="note inset">${t("Messages of one bulk.")} <a href=${href(
                `/accounts/${account}/bulks/${rest.bulkId}`,
              )}>${t("Show progress")}</a> · <button type="button" class="link" onClick=${() =>
                setQuery({ bulkId: "", page: "" })}>${t("Show all messages")}</button></p>
          `}
          <${Loaded} state=${messages}>${({ rows, next, ...pagination }) =>
            html`
              <${Table} caption=${t("Messages")} rows=${rows} keyOf=${(row) => row.messageId} empty=${filtered
                ? [
                  t("No matches"),
                  q !== "" && next
                    ? t("Older messages have not been searched yet.")
                    : t("Try fewer words or other dates."),
                ]
                : [
                  t("No messages yet"),
                  null,
                  html`<a class="button" href=${href(`/accounts/${account}/send`)}>${t("Send a message")}</a>`,
                ]}
                columns=${[
                  [t("To"), (row) =>
                    html`<a class="main" href=${href(`/accounts/${account}/messages/${row.messageId}`)}>${
                      row.erasedAt ? html`<em class="soft">${t("erased")}</em>` : chatName(row.to, names)
                    }</a>${
                      names.has(row.to) && !isGroup(row.to) &&
                      html`<br /><span class="small soft">${phone(row.to)}</span>`
                    }`],
                  [t("Content"), (row) =>
                    html`<span class="clip">${contentOf(row)}</span>`, "wide"],
                  [t("Status"), (row) =>
                    html`
                      <${MessageState} status=${farthest(row)} />
                      <${Why} row=${row} />
                    `, "state"],
                  ...(lines.data?.length === 1
                    ? []
                    : [[t("Line"), (row) =>
                      html`<span class="clip">${nameOf(row.sessionId)}</span>`]]),
                  [t("Accepted"), timeAt("createdAt"), "bare"],
                ]} />
              ${q === ""
                ? html`<${Pages} ...${pagination} text=${t("{n} in total", { n: number(pagination.total) })} />`
                : html`<${Pager} newer=${page === "1" ? null : { page: "" }} older=${next && { page: next }} />`}
            `}</${Loaded}>
        </${Card}>
      </div>
  `;
}

/** Searches from `page` until something matches. Stops after some requests, so that nobody waits long. */
async function search(account, wanted, page) {
  for (let requests = 1, from = page;; requests++) {
    const query = new URLSearchParams({ ...wanted, page: from });
    const { data, next } = await call("GET", `/accounts/${account}/search?${query}`);
    if (data.length > 0 || next === null || requests === MOST_REQUESTS) return { rows: data, next };
    from = next;
  }
}

function Search({ value }) {
  // While somebody types, the field is ahead of the URL.
  const [typed, setTyped] = useState(null);
  useEffect(() => {
    if (typed === null) return;
    const timer = setTimeout(() => {
      setQuery({ q: typed, page: "" });
      setTyped(null);
    }, TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return html`
    <div class="wide">
      <${Field} label=${t("Search")} type="search" value=${typed ?? value} onInput=${({ target }) =>
        setTyped(target.value)}
        placeholder=${t("name, number, text, file, ID")} />
    </div>
  `;
}

/** Why a message failed, or when it is to leave. */
function Why({ row: { status, error, sendAt } }) {
  const isScheduled = status === "queued" && sendAt && new Date(sendAt) > new Date();
  const word = isScheduled ? when(sendAt) : status === "failed" && error ? errorWord(error.code) : null;
  return word && html`<br /><span class="small soft">${word}</span>`;
}

const contentOf = ({ type, text, caption, filename }) =>
  type === "text" ? text : [filename ?? kindWord(type), text ?? caption].filter(Boolean).join(" · ");

export function Message({ account, message: id }) {
  const message = useApi(account, `/messages/${id}`, ["messages"]);
  const lines = useLines(account);
  const names = useNames(account, message.data ? [[message.data.sessionId, message.data.to]] : []);
  const post = usePost(account);
  const cancel = () => api(account, "DELETE", `/messages/${id}`).then(message.reload);
  const back = [`/accounts/${account}/messages`, t("Messages")];
  return html`<${Loaded} state=${message} back=${back}>${(data) => {
    const line = lines.data?.find(({ _id }) => _id === data.sessionId);
    const again = async () => {
      const { sessionId, to, text } = data;
      // Messages other than texts are sent as forwards, from what the network keeps of them.
      const [path, what] = data.type === "text" ? ["text", { text }] : ["forward", { messageId: id }];
      const body = { sessionId, to, ...what };
      const { messageId } = await post(`/messages/send/${path}`, { body });
      toast(t("Message queued again."));
      go(`/accounts/${account}/messages/${messageId}`);
    };
    return html`
      <div class="stack">
        <${Head} back=${back} title=${chatName(data.to, names)} text=${line?.name}>
          <${MessageState} status=${farthest(data)} />
              ${data.status === "queued" && html`<${Work} kind="danger" run=${cancel}>${t("Cancel")}</${Work}>`}
              ${canSendAgain(data) && html`<${Work} run=${again}>${t("Send again")}</${Work}>`}
            </${Head}>
            ${data.error &&
              html`<p class="note bad"><strong class="mono">${data.error.code}</strong> ${
                said(data.error.message)
              }</p>`}
            <div class="two">
              <${Card} title=${t("Content")} pad="stack tight">
                ${data.filename &&
                  html`<p><strong>${data.filename}</strong> <span class="soft">${data.type}</span></p>`}
                ${(data.text ?? data.caption) && html`<p class="turn">${data.text ?? data.caption}</p>`}
                <${Facts} facts=${[
                  [
                    t("Line"),
                    line && !isAgent()
                      ? html`<a href=${href(`/accounts/${account}/lines/${line._id}`)}>${line.name}</a>`
                      : line?.name ?? t("deleted line"),
                  ],
                  data.status === "queued" && line && [t("Waiting for"), waitWord(data.waitsFor)],
                  data.status === "queued" && data.sendAt &&
                  [t("Estimated send time"), html`<${Time} at=${data.sendAt} />`],
                  [t("ID"), data.messageId, "mono"],
                  [t("Job ID"), data.jobId, "mono"],
                  data.bulkId && !isAgent() && [
                    t("Bulk"),
                    html`<a href=${href(`/accounts/${account}/bulks/${data.bulkId}`)}>${data.bulkId}</a>`,
                    "mono",
                  ],
                ]} />
              </${Card}>
              <${Card} title=${t("Timeline")} pad><ol class="life">${lifeOf(data).map(({ status, at }) =>
                html`
                  <li key=${status} class=${at === null ? "to-come" : status === "failed" ? "bad" : ""}>
                    <span>${messageWord(status)}<br />${at
                      ? html`<${Time} at=${at} />`
                      : html`<span class="soft">–</span>`}</span></li>
                `
              )}</ol></${Card}>
            </div>
          </div>
    `;
  }}</${Loaded}>`;
}

const NOT_SENT_ON = ["poll", "choices", "reaction", "status"];

const canSendAgain = ({ type, status }) =>
  type === "text" ? ["sent", "failed"].includes(status) : status === "sent" && !NOT_SENT_ON.includes(type);

/** The states that the message has reached, and those that may follow. */
function lifeOf({ life, status }) {
  if (status === "failed") return life;
  const come = new Set(life.map(({ status }) => status));
  return [
    ...life,
    ...["sent", "delivered", "read"].filter((status) => !come.has(status)).map((status) => ({ status, at: null })),
  ];
}
