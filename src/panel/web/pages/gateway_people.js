// The operators.
import { html } from "../html.js";
import { t } from "../i18n.js";
import { PeopleList } from "../people_list.js";

export function Operators() {
  return html`
    <${PeopleList} below="/operator/people" title=${t("Operators")} invite=${t("Invite an operator")}
      text=${t("They run the gateway: every account, plan and line.")} />
  `;
}
