// The people of an account.
import { html } from "../html.js";
import { t } from "../i18n.js";
import { PeopleList } from "../people_list.js";

export function People({ account }) {
  return html`
    <${PeopleList} below=${`/accounts/${account}/people`} title=${t("People")} invite=${t("Invite somebody")}
      text=${t("They see this account's lines and messages, and nothing of any other.")} />
  `;
}
