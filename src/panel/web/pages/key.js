// The API key: shown only on demand, regenerated after a warning, and from where it may be used.
import { call } from "../api.js";
import { html, useState } from "../html.js";
import { t } from "../i18n.js";
import { useData } from "../live.js";
import { Ask, Card, Dialog, Form, Head, Loaded, Secret, toast, Work } from "../ui.js";
import { entries, FurtherKeys, placeFields } from "./further_keys.js";

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
    `  -H 'content-type: application/json' -d '{"to":"34600111222","text":"Hello"}'`;
  return html`
    <div class="stack">
      <${Head} title=${t("API key")} text=${t("Your systems send it in the header x-api-key.")} />
      <${Card} title=${t("Key")} pad>
        <div class="stack">
          ${key ? html`<${Secret} text=${key} />` : html`
            <div
              class="secret"><code aria-label=${t(
                "The key is hidden",
              )}>pk_••••••••••••••••••••••••</code><${Work} kind="primary" run=${show}>${t(
                "Show the key",
              )}</${Work}></div>
          `}
          ${fresh &&
            html`<p class="note good" role="status">${t("This key works now; the one before does not any more.")}</p>`}
          <div class="row"><${Ask} title=${t("Make a new key?")} button=${t("Make a new key")} run=${regenerate}
              text=${html`<p>${t("The present one stops working at once, everywhere it is used.")}</p>`}>${t(
                "Regenerate",
              )}</${Ask}>${key &&
                html`<button type="button" onClick=${() => setKey(null)}>${t("Hide")}</button>`}</div>
        </div></${Card}>
        <${Card} title=${t("Use it")} pad><pre tabindex="0">${sample}</pre></${Card}>
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
    toast(t("Saved; in force now."));
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
    <${Card} title=${t("Where the key works")} pad>
      <${Form} submit=${save} button=${t("Save")}>${(wrong) => placeFields(wrong, data)}</${Form}>
        ${left && html`
          <${Dialog} title=${t("Your own address is not on the list")} close=${() => setLeft(null)}>
            <p>${t("Calls with the key from where you are now would be refused. Is it used elsewhere only?")}</p>
            <div
              class="row end"><button type="button" onClick=${() => setLeft(null)}>${t(
                "Back to the list",
              )}</button><${Work} kind="primary danger" run=${() => put(left, true)}>${t(
                "Save anyway",
              )}</${Work}></div></${Dialog}>
        `}
      </${Card}>
  `;
}
