// Signing in with a password, and the code of an authenticator app if one is set up; or with a passkey.
import { call, loadSession, session } from "../api.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { t } from "../i18n.js";
import { canPasskey, passkeySignIn } from "../passkeys.js";
import { useStore } from "../store.js";
import { Field, Form, Title, Work } from "../ui.js";

export function SignIn({ query }) {
  const { hasOperator } = useStore(session);
  const [second, setSecond] = useState(false);
  const card = useRef(null);
  // Focus the code's field as soon as it appears.
  useEffect(() => card.current?.querySelector("[name=code]")?.focus(), [second]);
  if (!hasOperator) {
    return html`
      <div class="card">
        <div class="pad stack">
          <${Title}>${t("Welcome")}</${Title}>
          <p>${t(
            "No one can sign in yet. When it started, the gateway printed a one-time link: open it to create your login.",
          )}</p>
          <p class="soft">${t("Lost the link? Create another on the gateway's machine:")}</p>
          <pre class="note">paloma operator link</pre>
        </div>
      </div>
    `;
  }
  const signIn = async ({ login, password, code }) => {
    try {
      await call("POST", "/sign-in", { body: { login, password, ...(code && { code }) } });
    } catch (error) {
      if (error.code !== "second_factor_required") throw error;
      if (second) throw error;
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
            <${Field} label=${t(
              "Username",
            )} name="login" autocomplete="username" autocapitalize="none" required wrong=${wrong("login")} />
            <${Field} label=${t("Password")} name="password" type="password" autocomplete="current-password" required
              wrong=${wrong("password")} />
            ${second && html`
              <${Field} label=${t(
                "Code of your authenticator app",
              )} name="code" inputmode="numeric" autocomplete="one-time-code" required
                wrong=${wrong("code")} />
            `}
          `}</${Form}>
        ${canPasskey() && html`<${Work} run=${byPasskey}>${t("Sign in with a passkey")}</${Work}>`}
        <p class="hint">${t("Forgot your password? An operator of the gateway can send you a new link.")}</p>
      </div></div>
  `;
}
