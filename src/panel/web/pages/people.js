// The people with a login (members of an account, or operators), and links to invite them.
import { call } from "../api.js";
import { html, useState } from "../html.js";
import { t } from "../i18n.js";
import { useData } from "../live.js";
import { Ask, Badge, Card, Dialog, Head, Loaded, OneTimeLink, Table, Time, Work } from "../ui.js";

function PeopleList({ below, title, text, invite }) {
  const people = useData(below);
  const [link, setLink] = useState(null);
  const make = async () => setLink((await call("POST", below)).data);
  return html`
    <div class="stack">
      <${Head} title=${title} text=${text}>
        <${Work} kind="primary" run=${make}>${invite}</${Work}></${Head}>
        <${Loaded} state=${people}>${(rows) =>
          html`<${Card}>${
            rows.length === 0
              ? html`<div class="empty"><strong>${t("No one yet")}</strong><p>${
                t("Create a link and send it to them. With it they choose a username and a password.")
              }</p></div>`
              : html`<${Table} caption=${title} rows=${rows} columns=${[
                [t("Username"), (row) =>
                  html`<strong>${row.login}</strong> ${row.you && html`<${Badge}>${t("you")}</${Badge}>`}`],
                [t("Last sign-in"), (row) =>
                  html`<${Time} at=${row.lastSignInAt} />`],
                [t("Created"), (row) =>
                  html`<${Time} at=${row.createdAt} />`],
                ["", (row) =>
                  !row.you && html`
                    <${Ask} kind="small danger" title=${t("Remove {name}?", { name: row.login })} button=${t(
                      "Remove",
                    )} text=${html`<p>${t("They are signed out everywhere immediately.")}</p>`}
                      run=${async () => {
                        await call("DELETE", `${below}/${row.id}`);
                        await people.reload();
                      }}>${t("Remove")}</${Ask}>
                  `, "end"],
              ]} />`
          }</${Card}>`}</${Loaded}>
        ${link && html`
          <${Dialog} title=${invite} close=${() => setLink(null)}>
            <p>${t("Send this link to the person. With it they choose a username and a password.")}</p>
            <${OneTimeLink} token=${link.token} page="/welcome" until=${link.expiresAt} />
            </${Dialog}>
        `}
      </div>
  `;
}

export function People({ account }) {
  return html`
    <${PeopleList} below=${`/accounts/${account}/people`} title=${t("People")} invite=${t("Invite someone")}
      text=${t("They can see the lines and messages of this account only.")} />
  `;
}

export function Operators() {
  return html`
    <${PeopleList} below="/operator/people" title=${t("Operators")} invite=${t("Invite an operator")}
      text=${t("They manage the gateway: every account, plan and line.")} />
  `;
}
