// One message: its states with times, its error, cancelling it, and sending it again.
import { api } from "../api.js";
import { html } from "../html.js";
import { said, t } from "../i18n.js";
import { useApi, useGroups, useLines } from "../live.js";
import { go, href } from "../router.js";
import { Badge, Card, Head, Loaded, Time, toast, usePost, Work } from "../ui.js";
import { chatName, farthest, messageKind, messageWord, waitWord } from "../words.js";

export function Message({ account, message: id }) {
  const message = useApi(account, `/messages/${id}`, ["messages"]);
  const lines = useLines(account);
  const groups = useGroups(account, message.data ? [[message.data.sessionId, message.data.to]] : []);
  const post = usePost(account);
  const cancel = async () => {
    await api(account, "DELETE", `/messages/${id}`);
    await message.reload();
  };
  return html`<${Loaded} state=${message} back=${[`/accounts/${account}/messages`, t("Messages")]}>${(data) => {
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
        <${Head} back=${[`/accounts/${account}/messages`, t("Messages")]} title=${chatName(data.to, groups)} text=${line
          ?.name}>
          <${Badge} kind=${messageKind(farthest(data))}>${messageWord(farthest(data))}</${Badge}>
              ${data.status === "queued" && html`<${Work} kind="danger" run=${cancel}>${t("Cancel")}</${Work}>`}
              ${canSendAgain(data) && html`<${Work} run=${again}>${t("Send again")}</${Work}>`}
            </${Head}>
            ${data.error &&
              html`<p class="note bad"><strong class="mono">${data.error.code}</strong> ${
                said(data.error.message)
              }</p>`}
            <div class="two">
              <${Card} title=${t("Content")} pad>
                <div class="stack tight">
                  ${data.filename &&
                    html`<p><strong>${data.filename}</strong> <span class="soft">${data.type}</span></p>`}
                  ${(data.text ?? data.caption) && html`<p class="turn">${data.text ?? data.caption}</p>`}
                  <dl class="facts">
                    <dt>${t("Line")}</dt><dd>${line
                      ? html`<a href=${href(`/accounts/${account}/lines/${line._id}`)}>${line.name}</a>`
                      : data.sessionId}</dd>
                    ${data.status === "queued" && line && html`
                      <dt>${t("Waiting for")}</dt>
                      <dd>${waitWord(data.waitsFor, line)}</dd>
                    `}
                    ${data.status === "queued" && data.sendAt && html`
                      <dt>${t("Estimated send time")}</dt>
                      <dd>
                        <${Time} at=${data.sendAt} />
                      </dd>
                    `}
                    <dt>${t("ID")}</dt><dd class="mono">${data.messageId}</dd>
                    <dt>${t("Job ID")}</dt><dd class="mono">${data.jobId}</dd>
                    ${data.bulkId && html`
                      <dt>${t("Bulk")}</dt>
                      <dd class="mono"><a href=${href(`/accounts/${account}/bulks/${data.bulkId}`)}>${data
                        .bulkId}</a></dd>
                    `}
                  </dl>
                </div>
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

const NOT_SENT_ON = ["poll", "reaction", "status"];

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
