// The chats of a line, and one of them: what was sent and received, with a box to answer.
import { api, call } from "../api.js";
import { html, useEffect, useRef } from "../html.js";
import { t } from "../i18n.js";
import { useLoad } from "../live.js";
import { go, href } from "../router.js";
import { Card, Empty, Field, Head, Loaded, Time, useOnce, useWork } from "../ui.js";
import { messageWord, phone } from "../words.js";

const isGroup = (chat) => chat.endsWith("@g.us");

export function Chats({ account, line: chosen, chat }) {
  const lines = useLoad(async () => (await api(account, "GET", "/sessions")).data, [account], ["lines"]);
  return html`
    <div class="stack">
      <${Loaded} state=${lines}>${(list) => {
        const line = chosen ?? list.find(({ status }) => status === "connected")?._id ?? list[0]?._id;
        return html`
          <${Head} title=${t("Chats")} text=${t("What was sent and received on a line, as far as it is kept.")}>
            ${list.length > 1 &&
              html`<${Field} as="select" label=${t("Line")} onChange=${({ target }) =>
                go(`/accounts/${account}/chats/${target.value}`)}>
          ${
                list.map(({ _id, name }) => html`<option value=${_id} selected=${_id === line}>${name}</option>`)
              }</${Field}>`}
          </${Head}>
          ${line ? html`<${OfLine} key=${line} account=${account} line=${line} chat=${chat} />` : html`
            <${Card}>
              <${Empty} title=${t("No line yet")}><a class="button primary" href=${href(
                `/accounts/${account}/lines`,
              )}>${t("Link a line")}</a></${Empty}></${Card}>
          `}
        `;
      }}</${Loaded}></div>
  `;
}

function OfLine({ account, line, chat }) {
  const chats = useLoad(async () => (await call("GET", `/accounts/${account}/lines/${line}/chats`)).data, [
    account,
    line,
  ], ["messages"]);
  const hasGroups = chats.data?.some(({ chat }) => isGroup(chat)) ?? false;
  // Asked once a visit: only the network knows what a group is called, and a line that is away cannot ask it.
  const groups = useLoad(
    async () => hasGroups ? (await api(account, "GET", `/sessions/${line}/groups`)).data : [],
    [account, line, hasGroups],
  );
  const nameOf = ({ chat, name }) => name ?? groups.data?.find(({ id }) => id === chat)?.name ?? phone(chat);
  return html`<${Loaded} state=${chats}>${(list) =>
    list.length === 0
      ? html`
        <${Card}>
          <${Empty} title=${t("No chat yet")}>
            <p>${t("Chats appear when something is sent or received.")}</p>
            </${Empty}>
            </${Card}>
      `
      : html`<div class=${`card chat ${chat ? "open" : ""}`}>
        <nav aria-label=${t("Chats")}><ul>${
        list.map((each) =>
          html`
            <li key=${each.chat}><a href=${href(
              `/accounts/${account}/chats/${line}/${encodeURIComponent(each.chat)}`,
            )} aria-current=${each.chat === chat ? "page" : undefined}>
              <strong class="clip">${nameOf(each)}</strong>
              <span class="clip small soft">${each.last.mine ? "→ " : ""}${each.last.text ?? each.last.filename ??
                each.last.type}</span>
              <span class="small soft"><${Time} at=${each.last.at} /></span></a></li>
          `
        )
      }</ul></nav>
        ${
        chat
          ? html`<${Turns} key=${chat} account=${account} line=${line} chat=${chat} name=${
            nameOf(list.find((each) => each.chat === chat) ?? { chat })
          } />`
          : html`
            <section>
              <${Empty} title=${t("Choose a chat")} />
            </section>
          `
      }
      </div>`}</${Loaded}>`;
}

function Turns({ account, line, chat, name }) {
  const turns = useLoad(
    async () => (await call("GET", `/accounts/${account}/lines/${line}/chats/${encodeURIComponent(chat)}`)).data,
    [account, line, chat],
    ["messages"],
  );
  const list = useRef(null);
  const count = turns.data?.length ?? 0;
  useEffect(() => list.current?.scrollTo(0, list.current.scrollHeight), [count]);
  const [run, busy, error] = useWork({ quiet: true });
  const once = useOnce();
  const answer = (event) => {
    event.preventDefault();
    const box = event.target.elements.text;
    if (box.value.trim() === "") return;
    run(async () => {
      const body = { sessionId: line, to: chat, text: box.value };
      await once((key) => api(account, "POST", "/messages/send/text", { body, once: key }));
      // What was typed meanwhile stays.
      if (box.value === body.text) box.value = "";
      await turns.reload();
    });
  };
  const onKeyDown = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    event.target.form.requestSubmit();
  };
  return html`
    <section>
      <header><strong class="grow clip">${name}</strong><a class="back" href=${href(
        `/accounts/${account}/chats/${line}`,
      )}>${t("All chats")}</a></header>
      <${Loaded} state=${turns}>${(rows) =>
        html`<ol class="turns" ref=${list} tabindex="0" aria-label=${t("Messages")}>${
          rows.map((turn) =>
            html`
              <li key=${turn.id} class=${`turn ${turn.mine ? "mine" : ""}`}>
                ${turn.name && isGroup(chat) && html`<small>${turn.name}</small>`}
                ${turn.url
                  ? html`<a href=${turn.url} target="_blank" rel="noopener">${turn.filename ?? turn.type}</a>`
                  : turn.filename && html`<em>${turn.filename}</em>`}
                ${turn.filename && turn.text ? " " : ""}${turn.text ??
                  (turn.filename ? "" : html`<em class="soft">${turn.type}</em>`)}
                <small><${Time} at=${turn.at} />${turn.status && ` · ${messageWord(turn.status)}`}${turn.error &&
                  ` · ${turn.error.message}`}</small>
              </li>
            `
          )
        }</ol>`}</${Loaded}>
        <div role="alert">${error && html`<p class="note bad">${error.message}</p>`}</div>
        <form class="answer" onSubmit=${answer}><textarea name="text" rows="1" required aria-label=${t(
          "Answer",
        )} placeholder=${t("Answer")} onKeyDown=${onKeyDown}></textarea>
          <button class="primary" aria-disabled=${busy}>${t("Send")}</button></form>
      </section>
  `;
}
