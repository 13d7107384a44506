// The API key: shown only on demand, regenerated after a warning, and from where it may be used. Additional keys, each
// with a name and scopes, are shown once and can be removed separately.
import { api, call } from "../api.js";
import { html, useState } from "../html.js";
import { t } from "../i18n.js";
import { useApi, useData } from "../live.js";
import {
  Ask,
  Card,
  Dialog,
  Field,
  Form,
  FormDialog,
  Head,
  Loaded,
  Secret,
  SecretDialog,
  Table,
  timeAt,
  toast,
  usePost,
  Work,
} from "../ui.js";

export function Key({ account }) {
  const base = `/accounts/${account}`;
  const about = useData(base);
  const [key, setKey] = useState(null);
  const [fresh, setFresh] = useState(false);
  const show = async () => setKey((await call("POST", `${base}/key/show`)).data.apiKey);
  const regenerate = async () => {
    setKey((await call("POST", `${base}/key/regenerate`)).data.apiKey);
    setFresh(true);
  };
  const sample =
    `curl -s ${new URL("../../../v1/messages/send/text", import.meta.url).href} -H 'x-api-key: ${key ?? "…"}' \\\n` +
    `  -H 'content-type: application/json' -d '{"to":"447700900123","text":"Hello"}'`;
  return html`
    <div class="stack">
      <${Head} title=${t("API key")} text=${t("Your systems send it in the x-api-key header.")} />
      <${Card} title=${t("Key")} pad="stack">
        ${key ? html`<${Secret} text=${key} />` : html`
          <div class="row secret">
            <code aria-label=${t("The key is hidden")}>pk_••••••••••••••••••••••••</code>
            <${Work} kind="primary" run=${show}>${t("Show the key")}</${Work}>
          </div>
        `}
        ${fresh &&
          html`<p class="note good" role="status">${t("This key works now. The previous one no longer does.")}</p>`}
        <div class="row">
          <${Ask} label=${t("Regenerate key")} title=${t("Create a new key?")} button=${t("Create new key")}
            text=${t("The current key stops working immediately, everywhere.")} run=${regenerate} />
          ${key && html`<button type="button" onClick=${() => setKey(null)}>${t("Hide")}</button>`}
        </div>
      </${Card}>
        <${Card} title=${t("Example")} pad><pre tabindex="0">${sample}</pre></${Card}>
        <${Loaded} state=${about}>${(data) =>
          html`<${Places} base=${base} data=${data} reload=${about.reload} />`}</${Loaded}>
        <${FurtherKeys} account=${account} />
      </div>
  `;
}

function Places({ base, data, reload }) {
  const [left, setLeft] = useState(null);
  const put = async (places, elsewhere) => {
    await call("PUT", `${base}/key/places`, { body: { ...places, ...(elsewhere && { elsewhere }) } });
    setLeft(null);
    toast(t("Saved."));
    await reload();
  };
  const save = async ({ allowedIps, allowedDomains }) => {
    const places = { allowedIps: entries(allowedIps), allowedDomains: entries(allowedDomains) };
    try {
      await put(places, false);
    } catch (error) {
      if (error.errors?.some(({ message }) => /lock out/.test(message))) setLeft(places);
      throw error;
    }
  };
  return html`
    <${Card} title=${t("Where the key may be used")} pad>
      <${Form} submit=${save} button=${t("Save")}>${(wrong) => placeFields(wrong, data)}</${Form}>
        ${left && html`
          <${Dialog} title=${t("Your own IP address is not on the list")} close=${() => setLeft(null)}>
            <p>${t(
              "Requests with this key from where you are now would be refused. Save only if the key is used elsewhere.",
            )}</p>
            <div class="row end">
              <button type="button" onClick=${() => setLeft(null)}>${t("Back to the list")}</button>
              <${Work} kind="primary danger" run=${() => put(left, true)}>${t("Save anyway")}</${Work}>
            </div>
          </${Dialog}>
        `}
      </${Card}>
  `;
}

const KEYS = "/account/keys";

const scopes = () => ({
  send: t("send messages"),
  read: t("read everything"),
  manage: t("manage everything else"),
  propose: t("propose messages"),
});

/** The entries of a field, separated by spaces, commas or line breaks. */
const entries = (text) => text.split(/[\s,]+/).filter(Boolean);

function FurtherKeys({ account }) {
  const keys = useApi(account, KEYS);
  const [adding, setAdding] = useState(false);
  const remove = (id) => () => api(account, "DELETE", `${KEYS}/${id}`).then(keys.reload);
  return html`
    <${Card} title=${t("Additional keys")} actions=${html`<button type="button" class="small" onClick=${() =>
      setAdding(true)}>${t("Add a key")}</button>`}>
      <${Loaded} state=${keys}>${(rows) =>
        html`<${Table} caption=${t("Additional keys")} rows=${rows} empty=${[
          t("No additional keys"),
          t("For parts of your system that need fewer permissions, such as only sending."),
        ]} columns=${[
          [t("Name"), (row) => html`<strong class="break">${row.name}</strong>`],
          [t("Permissions"), (row) => row.scopes.map((scope) => scopes()[scope] ?? scope).join(", ")],
          [
            t("Allowed from"),
            (row) =>
              html`<span class="break">${
                [...row.allowedIps, ...row.allowedDomains].join(", ") || t("anywhere")
              }</span>`,
          ],
          [t("Last used"), timeAt("lastUsedAt")],
          [t("Created"), timeAt("createdAt")],
          ["", (row) =>
            html`
              <${Ask} kind="small danger" title=${t("Remove {name}?", { name: row.name })} button=${t("Remove")}
                text=${t("It stops working immediately, everywhere.")} run=${remove(row.id)} />
            `, "end"],
        ]} />`}</${Loaded}>
      ${adding && html`<${NewKey} account=${account} reload=${keys.reload} close=${() => setAdding(false)} />`}
      </${Card}>
  `;
}

function NewKey({ account, reload, close }) {
  const post = usePost(account);
  const [made, setMade] = useState(null);
  const submit = async ({ name, allowedIps, allowedDomains, ...marked }) => {
    const places = { allowedIps: entries(allowedIps), allowedDomains: entries(allowedDomains) };
    const { data } = await post(KEYS, { body: { name, scopes: Object.keys(marked), ...places } });
    setMade(data.key);
    await reload();
  };
  if (made) {
    return html`
      <${SecretDialog} title=${t("Save this key")} text=${t("It is shown only once.")} secret=${made} close=${close} />
    `;
  }
  return html`
    <${FormDialog} title=${t("Add a key")} close=${close} submit=${submit} button=${t("Add")}>${(wrong) =>
      html`
        <${Field} label=${t("Name")} name="name" required maxlength="100" wrong=${wrong("name")} />
        <fieldset>
          <legend>${t("Permissions")}</legend>
          ${Object.entries(scopes()).map(([scope, word]) =>
            html`
              <label class="check" key=${scope}>
                <input type="checkbox" name=${scope} defaultChecked=${scope === "send"} />${word}</label>
            `
          )}
          ${wrong("scopes") && html`<span class="wrong">${wrong("scopes")}</span>`}
        </fieldset>
        ${placeFields(wrong)}
      `}</${FormDialog}>
  `;
}

/** The fields of a form for where a key may be used, filled with the current values. */
function placeFields(wrong, { allowedIps = [], allowedDomains = [] } = {}) {
  return html`
    <${Field} as="textarea" label=${t("Allowed IP addresses")}
      hint=${t("IP addresses or CIDR ranges, one per line. Leave empty to allow any.")}
      name="allowedIps" rows="3" spellcheck="false" placeholder="203.0.113.0/24" defaultValue=${allowedIps.join("\n")}
      wrong=${wrong("allowedIps")} />
    <${Field} as="textarea" label=${t("Allowed web domains")}
      hint=${t("One per line, subdomains included. Leave empty to allow any.")}
      name="allowedDomains" rows="3" spellcheck="false" placeholder="shop.example.com"
      defaultValue=${allowedDomains.join("\n")} wrong=${wrong("allowedDomains")} />
  `;
}
