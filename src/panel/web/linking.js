// Linking a line: the QR as it rotates, or the code. For the line's owner, and for a customer with a link.
import { html } from "./html.js";
import { said, t } from "./i18n.js";
import { Work } from "./ui.js";

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
      ? html`<img class="qr" src=${qr} alt=${t("QR code to scan")} width="264" height="264" />`
      : html`<div class="hold" role="status">${t("Waiting for WhatsApp…")}</div>`
  }
    <ol><li>${open}</li><li>${t("Tap “Link a device” and point the camera here.")}</li>
      <li>${t("Hold it there until the line is connected. The QR code may change meanwhile.")}</li></ol>
  </div>`;
}
