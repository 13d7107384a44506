// The state of a line in words, the same in every list and on the line's own page.
import { html } from "./html.js";
import { t } from "./i18n.js";
import { Badge } from "./ui.js";

const wordOf = ({ status, passkey }) =>
  passkey ? t("waiting for passkey") : ({
    initializing: t("starting"),
    qr: t("waiting for QR scan"),
    pairing: t("waiting for code"),
    connected: t("connected"),
    disconnected: t("disconnected"),
    logged_out: t("logged out"),
  })[status] ?? status;
const kindOf = ({ status, passkey }) =>
  passkey ? "info" : ({
    connected: "good",
    qr: "info",
    pairing: "info",
    disconnected: "warn",
    logged_out: "bad",
  })[status] ?? "";

/** Whether the line is connected but receives nothing; its reason says what the gateway noticed. */
export const isDegraded = ({ status, reason }) => status === "connected" && Boolean(reason);

const TROUBLE = ["logged_out", "disconnected", "initializing", "qr", "pairing", "connected"];
const rank = (line) => line.restriction || isDegraded(line) ? 1 : TROUBLE.indexOf(line.status);
/** Sorts lines, those in trouble first. */
export const byTrouble = (lines) => lines.toSorted((a, b) => rank(a) - rank(b));

export function LineState({ line }) {
  return html`<span class="row"><${Badge} kind=${kindOf(line)}>${wordOf(line)}</${Badge}>${
    line.restriction && html`<${Badge} kind="warn">${t("restricted")}</${Badge}>`
  }${isDegraded(line) ? html`<${Badge} kind="warn">${t("receives nothing")}</${Badge}>` : ""}</span>`;
}
