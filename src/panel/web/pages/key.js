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
      <${Head} title=${t("API key")} text=${t("Your systems send it in the x-api-key header.")} />
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
            html`<p class="note good" role="status">${t("This key works now. The previous one no longer does.")}</p>`}
          <div class="row"><${Ask} title=${t("Create a new key?")} button=${t("Create new key")} run=${regenerate}
              text=${html`<p>${t("The current key stops working immediately, everywhere.")}</p>`}>${t(
                "Regenerate key",
              )}</${Ask}>${key &&
                html`<button type="button" onClick=${() => setKey(null)}>${t("Hide")}</button>`}</div>
        </div></${Card}>
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
