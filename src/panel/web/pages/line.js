// One line: linking, health, queue, and actions.
import { api, call } from "../api.js";
import { html, useEffect, useState } from "../html.js";
import { number, said, t, tn, when } from "../i18n.js";
import { Linking, Signing } from "../linking.js";
import { useApi, useEvery, useLoad, useNames } from "../live.js";
import { go, href } from "../router.js";
import {
  Ask,
  Card,
  Dialog,
  Facts,
  Field,
  FormButton,
  Head,
  Loaded,
  OneTimeLink,
  Table,
  Time,
  timeAt,
  toast,
  Work,
} from "../ui.js";
import { chatName, isDegraded, LineState, MessageState, phone, priorityWord, waitWord } from "../words.js";

const LINKING = ["initializing", "qr", "pairing"];
const POLL_MS = 3_000;
const QUEUE_MS = 5_000;

const listOf = (account) => `/accounts/${account}/lines`;
const deletedWord = ({ name }) => t("“{name}” was deleted.", { name });

export function Line({ account, line: id }) {
  const one = `/sessions/${id}`;
  const line = useApi(account, `${one}/status`, ["lines"]);
  const queue = useApi(account, `${one}/queue?limit=200`, ["messages", "lines"]);
  const health = useApi(account, `${one}/health`, ["messages", "lines"], [line.data?.status]);
  // An accepted message causes no event until it leaves.
  useEvery(QUEUE_MS, () => (queue.reload(), health.reload()), line.data?.phone != null);
  const isGone = line.data !== null && [line, queue, health].some(({ error }) => error?.code === "not_found");
  useEffect(() => {
    if (!isGone) return;
    toast(deletedWord(line.data));
    go(listOf(account), { replace: true });
  }, [isGone]);
  const back = [listOf(account), t("Lines")];
  return html`<${Loaded} state=${line} back=${back}>${(data) => {
    // The page has only the beginning of the queue.
    const waits = Math.max(queue.data?.length ?? 0, health.data?.queue.waiting ?? 0);
    // A line that was logged out keeps its number until it is linked again.
    const unlinked = !data.phone || ["qr", "pairing", "logged_out"].includes(data.status);
    const isLinking = unlinked && data.status !== "logged_out";
    return html`
      <div class="stack">
        <${Head} back=${back} title=${data.name} text=${data.phone ? phone(data.phone) : t("not linked yet")}>
          <${LineState} line=${data} />
              <${Actions} account=${account} line=${data} linked=${!unlinked} waits=${waits} reload=${line.reload} />
            </${Head}>
            ${isDegraded(data) ? html`<${Degraded} line=${data} />` : data.reason && !isLinking &&
              html`<p class=${`note ${data.status === "logged_out" ? "bad" : "warn"}`}>${said(data.reason)}</p>`}
            ${data.restriction &&
              html`<p class="note warn">${
                data.restriction.until
                  ? t(
                    "WhatsApp restricts this number until {time}. Messages to people who have not written first will wait.",
                    { time: when(data.restriction.until) },
                  )
                  : t("WhatsApp restricts this number. Messages to people who have not written first will wait.")
              }</p>`}
            ${isLinking && html`<${LinkNow} account=${account} line=${data} />`}
            ${!unlinked && html`<${Health} account=${account} line=${data} health=${health.data} />`}
            ${data.phone && html`<${Queue} account=${account} line=${data} queue=${queue} health=${health} />`}
          </div>
    `;
  }}</${Loaded}>`;
}

function Degraded({ line }) {
  return html`
    <div class="note warn">
      <p><strong>${t("This line is connected but receives nothing.")}</strong> ${said(line.reason)}</p>
      <p>${t(
        "The gateway reconnected it once, without success. Messages are still sent, but incoming ones do not arrive.",
      )}</p>
      <p>${t(
        "Open WhatsApp on this line's phone. If messages arrive there, log the line out here and link it again. If not, the problem is with the number itself.",
      )}</p>
    </div>
  `;
}

function LinkNow({ account, line }) {
  const [link, setLink] = useState(null);
  const linking = useLoad(async () => await api(account, "GET", `/sessions/${line._id}/qr`), [account, line._id], [
    "lines",
  ]);
  // When a new round of codes begins, the QR changes without an event.
  useEvery(POLL_MS, linking.reload, LINKING.includes(line.status));
  const give = async () => setLink((await call("POST", `/accounts/${account}/lines/${line._id}/customer-link`)).data);
  const passkey = line.passkey;
  return html`<${Card} title=${t("Link this line")} pad actions=${html`<${Work} kind="small" run=${give}>${
    t("Let someone else link it")
  }</${Work}>`}>
    ${
    passkey ? html`<${Passkey} account=${account} line=${line} />` : html`<${Loaded} state=${linking}>${(data) =>
      html`
        <div class="stack">
          <${Linking} ...${data} reason=${line.reason} again=${() =>
            api(account, "POST", `/sessions/${line._id}/reconnect`)} />
        </div>
      `}</${Loaded}>`
  }
    ${
    link && html`
      <${Dialog} title=${t("A link for your customer")} close=${() => setLink(null)}>
        <p>${t("Anyone who opens it sees only this line's QR code. It stops working once the line is linked.")}</p>
        <${OneTimeLink} token=${link.token} page="/link-line" until=${link.expiresAt} />
        </${Dialog}>
    `
  }
  </${Card}>`;
}

function Passkey({ account, line }) {
  const below = `/sessions/${line._id}/passkey`;
  const asked = useApi(account, below, ["lines"], [line.passkey.stage, line.passkey.expiresAt]);
  const give = async (assertion) => {
    await api(account, "POST", below, { body: { assertion } });
    toast(t("Signature accepted. Continue on the phone."));
  };
  return html`<${Loaded} state=${asked}>${(passkey) =>
    html`<${Signing} passkey=${passkey} give=${give} confirm=${() =>
      api(account, "POST", `${below}/confirm`)} />`}</${Loaded}>`;
}

function Actions({ account, line, linked, waits, reload }) {
  const one = `/sessions/${line._id}`;
  const command = (verb) => () => api(account, "POST", `${one}/${verb}`).then(reload);
  const lost = waits > 0 &&
    html`<p class="note warn">${
      tn(
        "1 message is waiting on this line and will fail.",
        "{n} messages are waiting on this line and will fail.",
        waits,
      )
    }</p>`;
  const rename = ({ name }) => api(account, "PATCH", one, { body: { name } }).then(reload);
  const remove = async () => {
    const removed = api(account, "DELETE", one);
    // Leave the page now: there is nothing left to show, and the phone may take its time.
    go(listOf(account));
    try {
      await removed;
      toast(deletedWord(line));
    } catch (error) {
      toast(error.message, "bad");
    }
  };
  return html`
    ${line.status === "connected"
      ? html`<${Work} run=${command("disconnect")}>${t("Disconnect")}</${Work}>`
      : (line.status === "logged_out" || (line.status === "disconnected" && line.phone)) && html`
        <${Work} kind="primary" run=${command("reconnect")}>${line.status === "logged_out"
          ? t("Link again")
          : t("Reconnect")}</${Work}>
      `}
    <${FormButton} title=${t("Rename")} submit=${rename} button=${t("Save")}>${(wrong) =>
      html`
        <${Field} label=${t("Name")} name="name" required maxlength="100" defaultValue=${line.name}
          wrong=${wrong("name")} />
      `}</${FormButton}>
    ${linked && html`
      <${Ask} title=${t("Log out “{name}”?", { name: line.name })} button=${t("Log out")} run=${command("logout")}
        text=${html`
          <p>${t("The device is unlinked from the phone. Linking it again needs a new QR code.")}</p>${lost}
        `} />
    `}
    <${Ask} title=${t("Delete “{name}”?", { name: line.name })} button=${t("Delete")} run=${remove}
      text=${html`<p>${t("The line is unlinked and deleted. Its messages stay in the history.")}</p>${lost}`} />
  `;
}

function Health({ account, line, health: data }) {
  return html`
    <${Card} title=${t("Health")} pad actions=${html`
      <a class="button small" href=${href(`/accounts/${account}/chats/${line._id}`)}>${t("Chats")}</a>
      <a class="button small" href=${href(`/accounts/${account}/messages?sessionId=${line._id}`)}>${t("Messages")}</a>
    `}>
      <${Facts} facts=${[
        ...(data ? measured(data) : []),
        [t("Linked number"), line.phone ? phone(line.phone) : "–"],
        [t("Last used"), html`<${Time} at=${line.lastUsed} />`],
        [t("Created"), html`<${Time} at=${line.createdAt} />`],
        [t("ID"), line._id, "mono"],
      ]} />
      </${Card}>
  `;
}

/** The facts of a line's health. */
function measured(health) {
  const { connectedSince, lastFrameAt, pingMs, lastSentAt, lastReceivedAt, newChats, undecryptable, webVersion } =
    health;
  return [
    connectedSince && [t("Connected since"), html`<${Time} at=${connectedSince} />`],
    [
      t("Last network activity"),
      html`<${Time} at=${lastFrameAt} />${pingMs !== null && html`<span class="soft"> (${number(pingMs)} ms)</span>`}`,
    ],
    [t("Last sent"), html`<${Time} at=${lastSentAt} />`],
    [t("Last received"), html`<${Time} at=${lastReceivedAt} />`],
    newChats && [
      t("New chats"),
      t("{used} of {limit}", { used: number(newChats.used), limit: number(newChats.limit) }) +
      (newChats.resetsAt ? `, ${t("resets {time}", { time: when(newChats.resetsAt) })}` : ""),
    ],
    undecryptable > 0 && [t("Undecryptable"), number(undecryptable)],
    webVersion && [t("WhatsApp Web version"), webVersion, "mono"],
  ];
}

/** Number of rows shown until all are asked for. */
const FIRST_ROWS = 20;

function Queue({ account, line, queue, health }) {
  const [all, setAll] = useState(false);
  const names = useNames(account, queue.data?.map(({ to }) => [line._id, to]) ?? []);
  const cancel = (id) => api(account, "DELETE", `/messages/${id}`).then(queue.reload);
  const hold = (verb) => async () => {
    await api(account, "POST", `/sessions/${line._id}/queue/${verb}`);
    await Promise.all([queue.reload(), health.reload()]);
  };
  const { waiting = 0, waitsFor } = health.data?.queue ?? {};
  const paused = (waitsFor ?? queue.data?.[0]?.waitsFor)?.kind === "paused";
  const actions = paused
    ? html`<${Work} kind="small primary" run=${hold("resume")}>${t("Resume")}</${Work}>`
    : html`<${Work} kind="small" run=${hold("pause")}>${t("Pause queue")}</${Work}>`;
  return html`
    <${Card} title=${waiting > 0 ? `${t("Queue")} (${number(waiting)})` : t("Queue")} actions=${actions}>
      ${paused &&
        html`<p class="note warn inset">${t("The queue is paused. Nothing is sent until you resume it.")}</p>`}
      <${Loaded} state=${queue}>${(rows) =>
        html`
          <${Table} caption=${t("Queue")} rows=${all ? rows : rows.slice(0, FIRST_ROWS)} keyOf=${(row) => row.messageId}
            empty=${[
              t("The queue is empty"),
              t("Messages are sent one by one, with the pauses of the plan."),
            ]} columns=${[
              [t("To"), (row) =>
                html`<span class="break"><span class="soft">${row.position}.</span> <a class="main" href=${
                  href(`/accounts/${account}/messages/${row.messageId}`)
                }>${chatName(row.to, names)}</a></span>`],
              [t("Status"), (row) =>
                html`<${MessageState} status=${row.status} />`, "state"],
              [t("Priority"), (row) =>
                priorityWord(row.priority)],
              [t("Waiting for"), (row) => html`<span class="soft">${waitWord(row.waitsFor)}</span>`],
              [t("Estimated send time"), timeAt("estimatedDeparture")],
              ["", (row) =>
                row.status === "queued" &&
                html`<${Work} kind="small danger" run=${() => cancel(row.messageId)}>${t("Cancel")}</${Work}>`, "end"],
            ]} />
          ${!all && rows.length > FIRST_ROWS && html`<footer class="row end pager"><button type="button" onClick=${() =>
            setAll(true)}>${t("Show {n} more", { n: number(rows.length - FIRST_ROWS) })}</button></footer>`}
          ${all && waiting > rows.length &&
            html`<footer class="row end pager"><a class="button" href=${
              href(`/accounts/${account}/messages?sessionId=${line._id}&status=queued`)
            }>${t("See all {n} messages", { n: number(waiting) })}</a></footer>`}
        `}</${Loaded}></${Card}>
  `;
}
