// Tries a send: a text or a file, followed until it is read.
import { api, isAgent } from "../api.js";
import { html, useState } from "../html.js";
import { t } from "../i18n.js";
import { useApi, useLines } from "../live.js";
import { href } from "../router.js";
import { Card, Choice, Empty, Field, Form, Head, Loaded, Select, toast, usePost } from "../ui.js";
import { farthest, MessageState, phone } from "../words.js";

export function Send({ account }) {
  const lines = useLines(account);
  const [kind, setKind] = useState("text");
  const [sent, setSent] = useState([]);
  const post = usePost(account);
  const send = async ({ sessionId, to, text, caption, file }, form) => {
    const where = { sessionId, to };
    let options = { body: { ...where, text } };
    if (kind === "file") {
      const data = new FormData();
      for (const [name, value] of Object.entries({ ...where, caption })) if (value) data.append(name, value);
      data.append("file", file);
      options = { form: data };
    }
    const { messageId } = await post(`/messages/send/${kind}`, options);
    setSent([messageId, ...sent].slice(0, 5));
    // Keep what was typed in the meantime.
    const box = form.elements.text;
    if (box && box.value === text) box.value = "";
  };
  return html`
    <div class="stack">
      <${Head} title=${t("Send a message")} text=${t("Goes through the same queue as the messages of your systems.")} />
      <${Loaded} state=${lines}>${(list) => {
        const linked = list.filter(({ phone, status }) => phone && status !== "logged_out");
        if (linked.length === 0) {
          return html`
            <${Card}>
              <${Empty} title=${t("No line is linked yet")}>${!isAgent() &&
                html`<a class="button primary" href=${href(`/accounts/${account}/lines`)}>${
                  t("Link a line")
                }</a>`}</${Empty}></${Card}>
          `;
        }
        return html`
          <div class="two">
            <${Card} title=${t("Message")} pad>
              <${Form} submit=${send} button=${t("Send")}>${(wrong) =>
                html`
                  <${Select} label=${t("Line")} name="sessionId" wrong=${wrong("sessionId")}
                    options=${linked.map(({ _id, name, phone: of }) => [_id, `${name} (${phone(of)})`])} />
                  <${Field} label=${t("To")} name="to" required inputmode="tel" placeholder="447700900123"
                    hint=${t("Number with country code, or a group's JID.")} wrong=${wrong("to") ?? wrong("number")} />
                  <${Choice} label=${t("Type")} name="kind" value=${kind} choose=${setKind}
                    options=${[["text", t("Text")], ["file", t("File")]]} />
                  ${kind === "text"
                    ? html`
                      <${Field} as="textarea" key="text" label=${t("Text")} name="text" required
                        wrong=${wrong("text")} />
                    `
                    : html`
                      <${Field} label=${t("File")} key="file" type="file" name="file" required wrong=${wrong("file")} />
                      <${Field} label=${t("Caption")} key="caption" name="caption" wrong=${wrong("caption")} />
                    `}
                `}</${Form}></${Card}>
                  <${Card} title=${t("Result")}>${sent.length === 0
                    ? html`
                      <${Empty} title=${t("Nothing sent yet")} text=${t("Follow the status of your message here.")} />
                    `
                    : html`<ul class="steps">${
                      sent.map((id) => html`<${Sent} key=${id} account=${account} id=${id} />`)
                    }</ul>`}</${Card}>
                  ${!isAgent() && html`<${HomeCountry} account=${account} />`}
                </div>
        `;
      }}</${Loaded}>
      </div>
  `;
}

function HomeCountry({ account }) {
  const about = useApi(account, "/account");
  const save = async ({ country }) => {
    await api(account, "PATCH", "/account", { body: { country: country.trim() || null } });
    toast(t("Saved."));
  };
  return html`
    <${Card} title=${t("National numbers")} pad>
      <${Loaded} state=${about}>${({ country }) =>
        html`<${Form} submit=${save} button=${t("Save")}>${(wrong) =>
          html`
            <${Field} label=${t("Country")} name="country" maxlength="2" defaultValue=${country ?? ""}
              hint=${t("Two letters, like DE. It completes numbers that begin with 0; empty: they are refused.")}
              wrong=${wrong("country")} />
          `}</${Form}>`}</${Loaded}></${Card}>
  `;
}

function Sent({ account, id }) {
  const { data } = useApi(account, `/messages/${id}`, ["messages"]);
  return html`
    <li><a class="grow break" href=${href(`/accounts/${account}/messages/${id}`)}>${data ? phone(data.to) : id}</a>
      ${data && html`<${MessageState} status=${farthest(data)} />`}</li>
  `;
}
