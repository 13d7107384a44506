// The people with a login (members of an account, or operators), and the invitations that are still open.
import { call } from "../api.js";
import { html, useState } from "../html.js";
import { t } from "../i18n.js";
import { useData } from "../live.js";
import { useDialog } from "../router.js";
import {
  Ask,
  Badge,
  Card,
  Dialog,
  Field,
  Form,
  Head,
  OneTimeLink,
  Select,
  Table,
  TableCard,
  timeAt,
  Work,
} from "../ui.js";

const roleWord = (role) => role === "agent" ? t("Answers chats") : t("Manages everything");

/** `below`: where the people and the invitations are. `hasRoles`: whether a role is chosen. */
function PeopleList({ below, title, text, invite, hasRoles = false }) {
  const people = useData(`${below}/people`);
  const invitations = useData(`${below}/invitations`);
  const [isInviting, setInviting] = useDialog("new");
  const withdraw = (id) => () => call("DELETE", `${below}/invitations/${id}`).then(invitations.reload);
  const role = [t("Role"), ({ role }) => roleWord(role)];
  return html`
    <div class="stack">
      <${Head} title=${title} text=${text}>
        <button type="button" class="primary" onClick=${() => setInviting(true)}>${invite}</button></${Head}>
        <${TableCard} state=${people} caption=${title} empty=${[
          t("No one yet"),
          t("Create a link and send it to them. With it they choose a username and a password."),
        ]} columns=${[
          [
            t("Username"),
            (row) =>
              html`<strong>${row.login}</strong> ${row.name && html`<span class="soft">${row.name}</span>`} ${
                row.you && html`<${Badge}>${t("you")}</${Badge}>`
              }`,
          ],
          ...(hasRoles ? [role] : []),
          [t("Last sign-in"), timeAt("lastSignInAt")],
          [t("Created"), timeAt("createdAt")],
          ["", (row) =>
            !row.you && html`
              <${Ask} kind="small danger" title=${t("Remove {name}?", { name: row.login })} button=${t("Remove")}
                text=${t("They are signed out everywhere immediately.")}
                run=${() => call("DELETE", `${below}/people/${row.id}`).then(people.reload)} />
            `, "end"],
        ]} />
        ${invitations.data?.length > 0 && html`
          <${Card} title=${t("Open invitations")}>
            <${Table} caption=${t("Open invitations")} rows=${invitations.data}
              columns=${[
                [t("For"), (row) => html`<strong>${row.name ?? t("no name")}</strong>`],
                ...(hasRoles ? [role] : []),
                [t("Created"), timeAt("createdAt")],
                [t("Valid until"), timeAt("expiresAt")],
                [
                  "",
                  (row) => html`<${Work} kind="small" run=${withdraw(row.id)}>${t("Withdraw")}</${Work}>`,
                  "end",
                ],
              ]} />
            </${Card}>
        `}
        ${isInviting && html`
          <${Invite} below=${below} title=${invite} hasRoles=${hasRoles} made=${invitations.reload}
            close=${() => setInviting(false)} />
        `}
      </div>
  `;
}

function Invite({ below, title, hasRoles, made, close }) {
  const [link, setLink] = useState(null);
  const make = async (body) => {
    setLink((await call("POST", `${below}/invitations`, { body })).data);
    await made();
  };
  return html`
    <${Dialog} title=${title} close=${close}>${link
      ? html`
        <p>${t("Send this link to the person. With it they choose a username and a password.")}</p>
        <${OneTimeLink} token=${link.token} page="/welcome" until=${link.expiresAt} />
      `
      : html`<${Form} submit=${make} button=${t("Create the link")} cancel=${close}>${(wrong) =>
        html`
          <${Field} label=${t("For")} name="name" maxlength="100" hint=${t("A name to recognize the invitation by.")}
            wrong=${wrong("name")} />
          ${hasRoles && html`
            <${Select} label=${t("Role")} name="role" wrong=${wrong("role")}
              options=${["agent", "owner"].map((role) => [role, roleWord(role)])}
              hint=${t(
                "Who answers chats sees chats and messages, and can send; no keys, webhooks, lines or people.",
              )} />
          `}
        `}</${Form}>`}</${Dialog}>
  `;
}

export function People({ account }) {
  return html`
    <${PeopleList} below=${`/accounts/${account}`} title=${t("People")} invite=${t("Invite someone")} hasRoles
      text=${t("They can see the lines and messages of this account only.")} />
  `;
}

export function Operators() {
  return html`
    <${PeopleList} below="/operator" title=${t("Operators")} invite=${t("Invite an operator")}
      text=${t("They manage the gateway: every account, plan and line.")} />
  `;
}
