// The page of a one-time link, where the recipient chooses a login.
import { call, CallError, loadSession } from "../api.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { useLoad } from "../live.js";
import { go, useToken } from "../router.js";
import { Field, Form, LinkOver, Loaded, Title } from "../ui.js";

export function Welcome() {
  const token = useToken();
  const link = useLoad(async () => (await call("POST", "/welcome", { body: { token } })).data, []);
  const join = async ({ login, password, again }) => {
    if (password !== again) {
      throw new CallError({ errors: [{ path: "again", message: t("The passwords do not match.") }] }, 0);
    }
    const { data } = await call("POST", "/join", { body: { token, login, password } });
    await loadSession();
    go(data.accountId ? `/accounts/${data.accountId}` : "/gateway", { replace: true });
  };
  if (link.error?.code === "link_dead") return html`<${LinkOver} />`;
  return html`<${Loaded} state=${link}>${({ kind, accountName }) =>
    html`
      <div class="card">
        <div class="pad stack">
          <${Title}>${kind === "operator"
            ? t("Create the operator's login")
            : t("Join {name}", { name: accountName })}</${Title}>
          <p class="soft">${kind === "operator"
            ? t("An operator manages the gateway: accounts, plans and every line.")
            : t("You will see the lines and messages of this account only.")}</p>
          <${Form} submit=${join} button=${t("Create login")}>${(wrong) =>
            html`
              <${Field} label=${t("Username")} name="login" autocomplete="username" autocapitalize="none" required
                hint=${t("A name or an e-mail address.")} wrong=${wrong("login")} />
              <${Field} label=${t(
                "Password",
              )} name="password" type="password" autocomplete="new-password" required minlength="10"
                hint=${t("At least 10 characters. A sentence is easy to remember.")} wrong=${wrong("password")} />
              <${Field} label=${t(
                "Repeat password",
              )} name="again" type="password" autocomplete="new-password" required wrong=${wrong("again")} />
            `}</${Form}>
        </div></div>
    `}</${Loaded}>`;
}
