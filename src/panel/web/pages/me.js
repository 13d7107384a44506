// The person's own login: password, one-time codes, passkeys, sign-ins; language and colours.
import { call, session } from "../api.js";
import { html, useState } from "../html.js";
import { language, LANGUAGES, setLanguage, t } from "../i18n.js";
import { useData } from "../live.js";
import { addPasskey, canPasskey } from "../passkeys.js";
import { setTheme, theme, THEMES } from "../theme.js";
import {
  Ask,
  Badge,
  Card,
  Dialog,
  Field,
  Form,
  FormButton,
  FormDialog,
  Head,
  Loaded,
  Secret,
  Select,
  Table,
  Time,
  timeAt,
  toast,
} from "../ui.js";

export function Me() {
  const me = useData("/me");
  return html`
    <div class="stack">
      <${Loaded} state=${me}>${(data) =>
        html`
          <${Head} title=${data.login} text=${data.operator
            ? t("Operator of the gateway")
            : t("Member of an account")} />
          <div class="two">
            <div class="stack">
              <${Second} data=${data} reload=${me.reload} />
              <${SignIns} data=${data} reload=${me.reload} />
            </div>
            <div class="stack">
              <${Look} />
              <${Password} />
            </div>
          </div>
        `}</${Loaded}>
      </div>
  `;
}

function Look() {
  const [chosen, setChosen] = useState(theme());
  const names = { auto: t("Same as system"), light: t("Light"), dark: t("Dark") };
  return html`
    <${Card} title=${t("This browser")} pad>
      <div class="form">
        <${Field} as="select" label=${t("Language")} onChange=${({ target }) => setLanguage(target.value, true)}>
          ${Object.entries(LANGUAGES).map(([code, name]) =>
            html`<option value=${code} lang=${code} selected=${code === language.get()}>${name}</option>`
          )}</${Field}>
        <${Select} label=${t("Appearance")} value=${chosen} choose=${(name) => {
          setTheme(name);
          setChosen(name);
        }} options=${THEMES.map((name) => [name, names[name]])} />
      </div></${Card}>
  `;
}

function Password() {
  const change = async ({ present, password }, form) => {
    await call("PUT", "/me/password", { body: { present, password } });
    form.reset();
    toast(t("Password changed. Your other browsers are signed out."));
  };
  return html`
    <${Card} title=${t("Password")} pad>
      <${Form} submit=${change} button=${t("Change password")}>${(wrong) =>
        html`
          <${Whose} />
          <${Field} label=${t("Current password")} name="present" type="password" autocomplete="current-password"
            required wrong=${wrong("present")} />
          <${Field} label=${t("New password")} name="password" type="password" autocomplete="new-password"
            minlength="10" required wrong=${wrong("password")} />
        `}</${Form}></${Card}>
  `;
}

function Second({ data, reload }) {
  const [isAdding, setAdding] = useState(false);
  const removeTotp = ({ password }) => call("POST", "/me/totp/remove", { body: { password } }).then(reload);
  const add = ({ name, password }) => addPasskey(name, password).then(reload);
  const remove = (key) => () => call("DELETE", `/me/passkeys/${encodeURIComponent(key.id)}`).then(reload);
  return html`
    <${Card} title=${t("Security")}>
      <ul class="steps">
        <${Factor} name=${t("Authenticator app")} text=${t("A six-digit code, asked for after the password.")}>
          ${data.totp
            ? html`
              <${Badge} kind="good">${t("on")}</${Badge}>
              <${FormButton} kind="small danger" label=${t("Remove")} title=${t("Remove the authenticator app?")}
                submit=${removeTotp} danger button=${t("Remove")}>${(wrong) =>
                  html`<${Proof} wrong=${wrong} />`}</${FormButton}>
            `
            : html`<button type="button" class="small" onClick=${() => setAdding(true)}>${t("Set up")}</button>`}
        </${Factor}>
        ${data.passkeys.map((key) =>
          html`
            <${Factor} key=${key.id} name=${key.name}
              text=${html`${t("Passkey, last used:")} <${Time} at=${key.lastUsedAt} />`}>
              <${Ask} kind="small danger" title=${t("Remove this passkey?")} button=${t("Remove")}
                text=${t("It can no longer be used to sign in.")} run=${remove(key)} />
              </${Factor}>
          `
        )}
        <${Factor} name=${t("Passkey")} text=${canPasskey()
          ? t("Sign in with your fingerprint, face or device PIN.")
          : t("Passkeys need HTTPS (or localhost) and a host name: browsers do not accept them for IP addresses.")}>
          <${FormButton} kind="small" disabled=${!canPasskey()} title=${t("Add a passkey")} submit=${add}
            button=${t("Add")}>${(wrong) =>
              html`
                <${Field} label=${t("Name")} name="name" required maxlength="100" placeholder=${t("Laptop")}
                  wrong=${wrong("name")} />
                <${Proof} wrong=${wrong} />
              `}</${FormButton}>
        </${Factor}>
      </ul>
      ${isAdding && html`<${Totp} close=${() => setAdding(false)} reload=${reload} />`}
    </${Card}>
  `;
}

/** One of the ways to prove who signs in, with its action. */
function Factor({ name, text, children }) {
  return html`
    <li><div class="grow"><strong class="break">${name}</strong><br /><span class="soft small">${text}</span></div>
      ${children}</li>
  `;
}

/** Tells password managers whose password is asked for. */
const Whose = () =>
  html`<input type="text" name="login" autocomplete="username" value=${session.get().person.login} readonly hidden />`;

const Proof = ({ wrong }) =>
  html`
    <${Whose} />
    <${Field} label=${t("Your password")} name="password" type="password" autocomplete="current-password" required
      wrong=${wrong("password")} />
  `;

function Totp({ close, reload }) {
  const [made, setMade] = useState(null);
  if (!made) {
    return html`
      <${FormDialog} title=${t("Set up an authenticator app")} close=${close} button=${t("Continue")}
        submit=${async ({ password }) => setMade((await call("POST", "/me/totp", { body: { password } })).data)}>${(
          wrong,
        ) => html`<${Proof} wrong=${wrong} />`}</${FormDialog}>
    `;
  }
  return html`
    <${Dialog} key="code" title=${t("Set up an authenticator app")} close=${close}>
      <p>${t("Scan this with the app or type in the secret, then enter the code that the app shows.")}</p>
      <img class="qr" src=${made.qr} alt=${t("QR code for the app")} width="231" height="231" />
      <${Secret} text=${made.secret} />
      <${Form} button=${t("Turn on")} cancel=${close} submit=${async ({ code }) => {
        await call("POST", "/me/totp/confirm", { body: { code } });
        close();
        await reload();
      }}>${(wrong) =>
        html`
          <${Field} label=${t("Code")} name="code" inputmode="numeric" autocomplete="one-time-code" required
            wrong=${wrong("code")} />
        `}</${Form}></${Dialog}>
  `;
}

function SignIns({ data, reload }) {
  return html`
    <${Card} title=${t("Active sessions")}>
      <${Table} caption=${t("Active sessions")} rows=${data.signIns} columns=${[
        [
          t("Browser"),
          (row) =>
            html`<span>${browser(row.userAgent)} ${
              row.current && html`<${Badge} kind="good">${t("this browser")}</${Badge}>`
            }</span>`,
        ],
        [t("Address"), (row) => html`<span class="mono">${row.address}</span>`],
        [t("Last active"), timeAt("seenAt")],
        ["", (row) =>
          !row.current && html`
            <${Ask} kind="small danger" title=${t("Sign this browser out?")} button=${t("Sign out")}
              text=${browser(row.userAgent)} run=${() => call("DELETE", `/me/sign-ins/${row.id}`).then(reload)} />
          `, "end"],
      ]} />
      </${Card}>
  `;
}

function browser(agent) {
  const name = /Edg|Firefox|Chrome|Safari/.exec(agent)?.[0] ?? agent.slice(0, 30);
  const system = /Android|iPhone|iPad|Windows|Mac OS|Linux/.exec(agent)?.[0];
  return [name === "Edg" ? "Edge" : name, system].filter(Boolean).join(", ") || "–";
}
