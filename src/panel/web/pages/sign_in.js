// Signing in with a password (and a code, if an authenticator app is set up) or a passkey; and choosing a login by a one-time link.
import { call, CallError, loadSession, session } from "../api.js";
import { html, useEffect, useRef, useState, useStore } from "../html.js";
import { t } from "../i18n.js";
import { useLoad } from "../live.js";
import { canPasskey, passkeySignIn } from "../passkeys.js";
import { go, useToken } from "../router.js";
import { Card, Field, Form, LinkOver, Loaded, Title, Work } from "../ui.js";

export function SignIn({ query }) {
  const { hasOperator } = useStore(session);
  const [second, setSecond] = useState(false);
  const card = useRef(null);
  // Focus the code's field as soon as it appears.
  useEffect(() => card.current?.querySelector("[name=code]")?.focus(), [second]);
  if (!hasOperator) {
    return html`
      <${Card} pad="stack">
        <${Title}>${t("Welcome")}</${Title}>
        <p>${t(
          "No one can sign in yet. When it started, the gateway printed a one-time link: open it to create your login.",
        )}</p>
        <p class="soft">${t("Lost the link? Create another on the gateway's machine:")}</p>
        <pre class="note">paloma operator link</pre>
      </${Card}>
    `;
  }
  const signIn = async ({ login, password, code }) => {
    try {
      await call("POST", "/sign-in", { body: { login, password, ...(code && { code }) } });
    } catch (error) {
      if (second || error.code !== "second_factor_required") throw error;
      return setSecond(true);
    }
    await loadSession();
  };
  const byPasskey = async () => {
    await passkeySignIn();
    await loadSession();
  };
  return html`
    <div class="card" ref=${card}>
      <div class="pad stack">
        <${Title}>${t("Sign in")}</${Title}>
        ${query.ended &&
          html`<p class="note" role="status">${
            t("Your session has ended. Sign in to pick up where you left off.")
          }</p>`}
        <${Form} submit=${signIn} button=${t("Sign in")}>${(wrong) =>
          html`
            <${Field} label=${t("Username")} name="login" autocomplete="username" autocapitalize="none" required
              wrong=${wrong("login")} />
            <${Field} label=${t("Password")} name="password" type="password" autocomplete="current-password" required
              wrong=${wrong("password")} />
            ${second && html`
              <${Field} label=${t("Code of your authenticator app")} name="code" inputmode="numeric"
                autocomplete="one-time-code" required wrong=${wrong("code")} />
            `}
          `}</${Form}>
        ${canPasskey() && html`<${Work} run=${byPasskey}>${t("Sign in with a passkey")}</${Work}>`}
        <p class="hint">${t("Forgot your password? An operator of the gateway can send you a new link.")}</p>
      </div></div>
  `;
}

export function Welcome() {
  const token = useToken();
  const link = useLoad(async () => (await call("POST", "/welcome", { body: { token } })).data, []);
  const join = async ({ login, password, again }) => {
    if (password !== again) {
      throw new CallError({ errors: [{ path: "again", message: t("The passwords do not match.") }] });
    }
    await call("POST", "/join", { body: { token, login, password } });
    await loadSession();
    go("/", { replace: true });
  };
  if (link.error?.code === "link_dead") return html`<${LinkOver} />`;
  return html`<${Loaded} state=${link}>${({ kind, accountName }) =>
    html`
      <${Card} pad="stack">
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
            <${Field} label=${t("Password")} name="password" type="password" autocomplete="new-password" required
              minlength="10" hint=${t("At least 10 characters. A sentence is easy to remember.")}
              wrong=${wrong("password")} />
            <${Field} label=${t("Repeat password")} name="again" type="password" autocomplete="new-password" required
              wrong=${wrong("again")} />
          `}</${Form}>
      </${Card}>
    `}</${Loaded}>`;
}
