// Linking a line, for its owner and for a customer with a link: the QR code as it rotates, or the pairing code; then the
// account's passkey, if WhatsApp asks for it.
import { html, useEffect } from "./html.js";
import { said, t, when } from "./i18n.js";
import { href } from "./router.js";
import { Field, Form, useWork, Work } from "./ui.js";

/** `XXXX-XXXX`, like the boxes on the phone. */
const dashed = (code) => code.includes("-") ? code : `${code.slice(0, 4)}-${code.slice(4)}`;

/** `again()` asks for another QR or code if nobody used the last one. `reason` says why the previous attempt failed. */
export function Linking({ status, qr, pairingCode, reason: why, again }) {
  const reason = why && said(why);
  const open = t("On the phone, open WhatsApp › Linked devices.");
  const before = reason &&
    html`<p class="note warn">${qr || pairingCode ? t("{reason} Here is a new code.", { reason }) : reason}</p>`;
  if (pairingCode) {
    return html`
      ${before}
      <div class="linking">
        <p class="code" data-code>${dashed(pairingCode)}</p>
        <ol>
          <li>${open}</li>
          <li>${t("Tap “Link a device”, then “Link with phone number instead”.")}</li>
          <li>${t("Enter this code.")}</li>
        </ol>
      </div>
    `;
  }
  if (!qr && ["disconnected", "logged_out"].includes(status)) {
    return html`
      <p class="note warn" role="status">${reason ?? t("The QR code was not scanned in time.")}</p>
      <div>
        <${Work} kind="primary" run=${again}>${t("Start again")}</${Work}></div>
    `;
  }
  return html`${before}<div class="linking">
    ${
    qr
      ? html`<img class="qr" src=${qr} alt=${t("QR code to scan")} width="231" height="231" />`
      : html`<div class="qr hold" role="status">${t("Waiting for WhatsApp…")}</div>`
  }
    <ol><li>${open}</li><li>${t("Tap “Link a device” and point the camera here.")}</li>
      <li>${t("Hold it there until the line is connected. The QR code may change meanwhile.")}</li></ol>
  </div>`;
}

const SITE = "https://web.whatsapp.com/";
/** Connects the tab that returns with a signature to the page that waits for it. */
const CHANNEL = "paloma.passkey";

export function Signing({ passkey, give, confirm }) {
  return passkey.stage === "confirm"
    ? html`
      <div class="stack">
        <p>${t("Compare this code with the one on the phone.")}</p>
        <p class="code">${passkey.code}</p>
        <div>
          <${Work} kind="primary" run=${confirm}>${t("The codes match")}</${Work}></div></div>
    `
    : html`<${Sign} ...${passkey} give=${give} />`;
}

function Sign({ options, expiresAt, give }) {
  const [work, busy, error] = useWork({ quiet: true });
  useEffect(() => {
    const channel = new BroadcastChannel(CHANNEL);
    channel.onmessage = ({ data: { signed } }) => {
      if (!signed || challengeOf(signed) !== options.challenge) return;
      channel.postMessage({ taken: options.challenge });
      work(() => give(signed));
    };
    return () => channel.close();
  }, [options.challenge]);
  return html`
    <div class="stack">
      <p>${t(
        "WhatsApp asks for this account's passkey (until {time}). It can only be used on web.whatsapp.com.",
        { time: when(expiresAt) },
      )}</p>
      <div class="stack tight">
        <h3>${t("With the Paloma browser extension")}</h3>
        <p class="soft">${t("Opens web.whatsapp.com in a new tab, asks you to sign, and brings you back here.")}</p>
        <div><a class=${`button primary ${busy ? "busy" : ""}`} target="_blank" rel="noopener"
          href=${siteFor(options)}>${t("Sign on web.whatsapp.com")}</a></div>
        <div role="alert">${error && html`<p class="note bad">${error.message}</p>`}</div>
      </div>
      <details>
        <summary>${t("Without the extension")}</summary>
        <div class="stack">
          <ol class="stack tight steps-text">
            <li>${t("Open web.whatsapp.com in the browser that has the passkey, and open its console (F12).")}</li>
            <li>${t("Run this there and use the passkey. It copies the signature:")}</li>
          </ol>
          <pre class="note" tabindex="0">${snippet(options)}</pre>
          <${Form} submit=${({ assertion }) => give(pasted(assertion))} button=${t("Submit")}>${(wrong) =>
            html`
              <${Field} as="textarea" label=${t("Signature")} name="assertion" required
                wrong=${wrong("assertion")} />
            `}</${Form}>
        </div>
      </details>
    </div>
  `;
}

/** Returns the URL from which the extension reads the request to sign; see `extension/sign.js`. */
function siteFor(options) {
  const answerTo = new URL(href("/passkey-signed"), location.href).href;
  return `${SITE}#paloma-passkey=${encodeURIComponent(JSON.stringify({ options, answerTo }))}`;
}

const snippet = (options) =>
  `copy(JSON.stringify((await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(${
    JSON.stringify(options)
  }) })).toJSON()))`;

/** Returns the text itself if it is not JSON; the gateway then refuses it and says why. */
function pasted(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function challengeOf({ response }) {
  try {
    return JSON.parse(atob(response.clientDataJSON.replaceAll("-", "+").replaceAll("_", "/"))).challenge;
  } catch {
    return null;
  }
}

/** Passes a signature from web.whatsapp.com to the page that waits for it; resolves to whether there was one. */
export function bringBack(signed, mostMs) {
  return new Promise((resolve) => {
    const channel = new BroadcastChannel(CHANNEL);
    const end = (taken) => {
      channel.close();
      resolve(taken);
    };
    channel.onmessage = ({ data: { taken } }) => taken && taken === challengeOf(signed) && end(true);
    channel.postMessage({ signed });
    setTimeout(() => end(false), mostMs);
  });
}
