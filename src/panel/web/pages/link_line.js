// The customer's page, which links one line and is then invalid.
import { call } from "../api.js";
import { html, useState } from "../html.js";
import { t } from "../i18n.js";
import { Linking, Signing } from "../linking.js";
import { useEvery, useLoad } from "../live.js";
import { useToken } from "../router.js";
import { LinkOver, Loaded, Title } from "../ui.js";

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
      <div class="card">
        <div class="pad stack">
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
              ${data.qr &&
                html`<p class="soft">${
                  t("Open this page on another screen: the phone's camera has to scan the code.")
                }</p>`}
              ${data.passkey
                ? html`
                  <${Signing} passkey=${data.passkey} give=${(assertion) => step("/passkey", { assertion })}
                    confirm=${() => step("/passkey/confirm", {})} />
                `
                : html`<${Linking} ...${data} again=${() => step("/again", {})} />`}
            `}
        </div>
      </div>
    `}</${Loaded}>`;
}
