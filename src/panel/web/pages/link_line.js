// Linking outside the panel: the customer's page, which links one line and is then invalid; and the page to which a tab
// returns from web.whatsapp.com with a signature, for the page that asked for it.
import { call } from "../api.js";
import { html, useEffect, useState } from "../html.js";
import { t } from "../i18n.js";
import { bringBack, Linking, Signing } from "../linking.js";
import { useEvery, useLoad } from "../live.js";
import { useToken } from "../router.js";
import { Card, Field, Form, LinkOver, Loaded, Title, Work } from "../ui.js";

const POLL_MS = 2_000;

export function LinkLine() {
  const token = useToken();
  const [done, setDone] = useState(false);
  const line = useLoad(async () => {
    const { data } = await call("POST", "/link-line", { body: { token } });
    if (data.status === "connected") setDone(true);
    return data;
  }, []);
  const step = async (below, given) => {
    await call("POST", `/link-line${below}`, { body: { token, ...given } });
    await line.reload();
  };
  const dead = line.error?.code === "link_dead";
  useEvery(POLL_MS, line.reload, !done && !dead);
  if (dead && !done) return html`<${LinkOver} />`;
  return html`<${Loaded} state=${line}>${(data) =>
    html`
      <${Card} pad="stack">
        ${done
          ? html`
            <${Title}>${t("Linked")}</${Title}>
            <p class="note good" role="status">${t("“{name}” is connected. You can close this page.", {
              name: data.name,
            })}</p>
          `
          : html`
            <${Title}>${t("Link “{name}”", { name: data.name })}</${Title}>
            <p class="soft">${t(
              "This links your WhatsApp number to this service as a device. You can unlink it on your phone at any time.",
            )}</p>
            ${data.passkey
              ? html`
                <${Signing} passkey=${data.passkey} give=${(assertion) => step("/passkey", { assertion })}
                  confirm=${() => step("/passkey/confirm", {})} />
              `
              : html`
                <${Way} byCode=${data.pairingCode !== null} link=${(phone) => step("/code", { phone })} />
                <${Linking} ...${data} again=${() => step("/again", {})} />
              `}
          `}
      </${Card}>
    `}</${Loaded}>`;
}

/** How to link: with another screen that shows the QR, or by a code on the phone alone. */
function Way({ byCode, link }) {
  const [isAsking, setAsking] = useState(false);
  if (byCode) {
    return html`
      <div>
        <${Work} kind="link" run=${() => link(null)}>${t("Scan a QR code instead")}</${Work}></div>
    `;
  }
  if (!isAsking) {
    return html`
      <p class="soft">${t("Open this page on another screen: the phone's camera has to scan the code.")} <button
        type="button" class="link" onClick=${() => setAsking(true)}>${t("I only have this phone")}</button></p>
    `;
  }
  return html`
    <${Form} submit=${({ phone }) => link(phone).then(() => setAsking(false))} button=${t("Get a code")}
      cancel=${() => setAsking(false)}>${(wrong) =>
        html`
          <${Field} label=${t("Your WhatsApp number")} name="phone" type="tel" required autocomplete="tel"
            hint=${t("With country code, like 447700900123.")} wrong=${wrong("phone")} />
        `}</${Form}>
  `;
}

const ANSWER_MS = 3_000;

export function PasskeySigned() {
  const [taken, setTaken] = useState(null);
  useEffect(() => {
    const text = location.hash.slice(1);
    history.replaceState(null, "", location.pathname);
    let signed = null;
    try {
      signed = JSON.parse(decodeURIComponent(text));
    } catch {
      // Treat it as if no page waited.
    }
    if (signed?.response) bringBack(signed, ANSWER_MS).then(setTaken);
    else setTaken(false);
  }, []);
  const [title, text] = taken
    ? [t("Signed"), t("Linking continues in the tab where you started. You can close this one.")]
    : [
      t("No page is waiting for this signature"),
      t("The page that asked for it was closed or has asked again since. Open the line and sign again."),
    ];
  return html`
    <div class="card">
      <div class="pad stack" role="status">${taken === null
        ? html`<p>${t("Passing on the signature…")}</p>`
        : html`<${Title}>${title}</${Title}><p>${text}</p>`}</div>
    </div>
  `;
}
