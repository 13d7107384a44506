// The additional keys of an account. Each has a name, scopes, and a limit to where it may be used; it is shown once,
// and can be removed separately.
import { api } from "../api.js";
import { html, useState } from "../html.js";
import { t } from "../i18n.js";
import { useApi } from "../live.js";
import { Ask, Card, Dialog, Empty, Field, Form, Loaded, Secret, Table, Time, usePost } from "../ui.js";

const KEYS = "/account/keys";

const scopeWord = (scope) =>
  ({ send: t("send messages"), read: t("read everything"), manage: t("manage everything else") })[scope] ?? scope;

/** The entries of a field, separated by spaces, commas or line breaks. */
export const entries = (text) => text.split(/[\s,]+/).filter(Boolean);

export function FurtherKeys({ account }) {
  const keys = useApi(account, KEYS);
  const [adding, setAdding] = useState(false);
  const remove = (id) => async () => {
    await api(account, "DELETE", `${KEYS}/${id}`);
    await keys.reload();
  };
  return html`
    <${Card} title=${t("Additional keys")} actions=${html`<button type="button" class="small" onClick=${() =>
      setAdding(true)}>${t("Add a key")}</button>`}>
      <${Loaded} state=${keys}>${(rows) =>
        rows.length === 0
          ? html`
            <${Empty} title=${t("No additional keys")}>
              <p>${t("For parts of your system that need fewer permissions, such as only sending.")}</p>
              </${Empty}>
          `
          : html`<${Table} caption=${t("Additional keys")} rows=${rows} columns=${[
            [t("Name"), (row) => html`<strong class="break">${row.name}</strong>`],
            [t("Permissions"), (row) => row.scopes.map(scopeWord).join(", ")],
            [t("Allowed from"), (row) =>
              html`<span class="break">${
                [...row.allowedIps, ...row.allowedDomains].join(", ") || t("anywhere")
              }</span>`],
            [t("Last used"), (row) =>
              html`<${Time} at=${row.lastUsedAt} />`],
            [t("Created"), (row) =>
              html`<${Time} at=${row.createdAt} />`],
            ["", (row) =>
              html`
                <${Ask} kind="small danger" title=${t("Remove {name}?", { name: row.name })} button=${t("Remove")}
                  text=${html`<p>${t("It stops working immediately, everywhere.")}</p>`}
                  run=${remove(row.id)}>${t("Remove")}</${Ask}>
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
    const scopes = Object.keys(marked);
    const places = { allowedIps: entries(allowedIps), allowedDomains: entries(allowedDomains) };
    const { data } = await post(KEYS, { body: { name, scopes, ...places } });
    setMade(data.key);
    await reload();
  };
  if (made) {
    return html`
      <${Dialog} key="made" title=${t("Save this key")} close=${close}>
        <p>${t("It is shown only once.")}</p>
        <${Secret} text=${made} />
        <div class="row end"><button type="button" class="primary" onClick=${close}>${t(
          "Done, I saved it",
        )}</button></div>
        </${Dialog}>
    `;
  }
  return html`
    <${Dialog} title=${t("Add a key")} close=${close}>
      <${Form} submit=${submit} button=${t("Add")} cancel=${close}>${(wrong) =>
        html`
          <${Field} label=${t("Name")} name="name" required maxlength="100" wrong=${wrong("name")} />
          <fieldset>
            <legend>${t("Permissions")}</legend>
            ${["send", "read", "manage"].map((scope) =>
              html`
                <label class="check"
                  key=${scope}><input type="checkbox" name=${scope} defaultChecked=${scope ===
                    "send"} />${scopeWord(scope)}</label>
              `
            )}
            ${wrong("scopes") && html`<span class="wrong">${wrong("scopes")}</span>`}
          </fieldset>
          ${placeFields(wrong)}
        `}</${Form}></${Dialog}>
  `;
}

/** The fields of a form for where a key may be used, filled with the current values. */
export function placeFields(wrong, { allowedIps = [], allowedDomains = [] } = {}) {
  return html`
    <${Field} as="textarea" label=${t("Allowed IP addresses")} hint=${t(
      "IP addresses or CIDR ranges, one per line. Leave empty to allow any.",
    )}
      name="allowedIps" rows="3" spellcheck="false" placeholder="203.0.113.0/24" defaultValue=${allowedIps.join("\n")}
      wrong=${wrong("allowedIps")} />
    <${Field} as="textarea" label=${t("Allowed web domains")}
      hint=${t(
        "One per line, subdomains included. Leave empty to allow any.",
      )} name="allowedDomains" rows="3" spellcheck="false"
      placeholder="shop.example.com" defaultValue=${allowedDomains.join("\n")} wrong=${wrong("allowedDomains")} />
  `;
}
