// The page to which a tab returns from web.whatsapp.com with a signature; passes it to the page that asked for it.
import { html, useEffect, useState } from "../html.js";
import { t } from "../i18n.js";
import { bringBack } from "../linking.js";
import { Title } from "../ui.js";

const MOST_MS = 3_000;

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
    if (signed?.response) bringBack(signed, MOST_MS).then(setTaken);
    else setTaken(false);
  }, []);
  return html`
    <div class="card">
      <div class="pad stack" role="status">${taken === null
        ? html`<p>${t("Passing on the signature…")}</p>`
        : taken
        ? html`
          <${Title}>${t("Signed")}</${Title}>
          <p>${t("Linking continues in the tab where you started. You can close this one.")}</p>
        `
        : html`
          <${Title}>${t("No page is waiting for this signature")}</${Title}>
          <p>${t(
            "The page that asked for it was closed or has asked again since. Open the line and sign again.",
          )}</p>
        `}</div>
    </div>
  `;
}
