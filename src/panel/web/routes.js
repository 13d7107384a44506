// The pages by their paths. The gateway reads it too: the document names what its page loads (`web.ts`).

const SESSIONS = "/accounts/:account/v1/sessions";
const HISTORY = "/accounts/:account/v1/messages/history?&page=1&limit=25";

/**
 * `[path, module, export, { own, first }]`. A page's module is loaded when the page is first opened. The page is created
 * anew when the parameters `own` (by default all of the path's) change. `first`: what it asks for first, below
 * `/panel/api`; the browser asks for it while the modules come.
 */
export const OPEN = [
  ["/sign-in", "sign_in", "SignIn"],
  ["/welcome", "sign_in", "Welcome"],
  ["/link-line", "link_line", "LinkLine"],
  ["/passkey-signed", "link_line", "PasskeySigned"],
];
/** The pages of everybody in an account, agents included. */
const ANSWERING = [
  ["/me", "me", "Me"],
  ["/accounts/:account/messages", "messages", "Messages", { first: [SESSIONS, HISTORY] }],
  ["/accounts/:account/messages/:message", "messages", "Message"],
  ["/accounts/:account/chats", "chats", "Chats", { own: ["account"], first: [SESSIONS] }],
  ["/accounts/:account/chats/:line", "chats", "Chats", { own: ["account"], first: [SESSIONS] }],
  ["/accounts/:account/chats/:line/:chat", "chats", "Chats", { own: ["account"], first: [SESSIONS] }],
  ["/accounts/:account/send", "send", "Send"],
  ["/accounts/:account/templates", "templates", "Templates"],
  ["/accounts/:account/approvals", "approvals", "Approvals"],
];
const INSIDE = [
  ["/accounts/:account", "overview", "Overview"],
  ["/accounts/:account/lines", "lines", "Lines", { first: [SESSIONS] }],
  ["/accounts/:account/lines/:line", "line", "Line"],
  ["/accounts/:account/bulks", "bulks", "Bulks"],
  ["/accounts/:account/bulks/new", "new_bulk", "NewBulk"],
  ["/accounts/:account/bulks/:bulk", "bulks", "Bulk"],
  ["/accounts/:account/webhooks", "webhooks", "Webhooks"],
  ["/accounts/:account/webhooks/:webhook", "webhook", "Webhook"],
  ["/accounts/:account/events", "events", "Events", { first: ["/accounts/:account/events"] }],
  ["/accounts/:account/opt-outs", "opt_outs", "OptOuts"],
  ["/accounts/:account/key", "key", "Key"],
  ["/accounts/:account/people", "people", "People"],
];
const OPERATORS = [
  ["/gateway", "gateway", "Gateway"],
  ["/gateway/accounts", "gateway_accounts", "Accounts", { first: ["/operator/overview"] }],
  ["/gateway/plans", "gateway_plans", "Plans"],
  ["/gateway/lines", "lines", "AllLines", { first: ["/operator/lines"] }],
  ["/gateway/deliveries", "gateway", "Deliveries"],
  ["/gateway/people", "people", "Operators"],
  ["/gateway/audit", "gateway_audit", "AuditLog"],
  ["/gateway/maintenance", "maintenance", "Maintenance"],
];

/** The pages that the person may open. */
export const pagesOf = (person) => [
  ...ANSWERING,
  ...(person?.role === "agent" ? [] : INSIDE),
  ...(person?.operator ? OPERATORS : []),
];

/** Returns the page of a path below `/panel`; null if there is none among these. */
export function find(routes, pathname) {
  for (const [pattern, module, name, { own, first = [] } = {}] of routes) {
    const params = match(pattern, pathname);
    if (!params) continue;
    return {
      module,
      name,
      params,
      key: JSON.stringify((own ?? Object.keys(params)).map((it) => params[it])),
      first: first.map((path) => path.replace(/:(\w+)/, (_, it) => encodeURIComponent(params[it]))),
    };
  }
  return null;
}

/**
 * Returns the values for the pattern's names, as in `/accounts/:account/lines/:id`; null if the path does not match.
 */
function match(pattern, pathname) {
  const names = [];
  const source = pattern.replaceAll(/:(\w+)/g, (_, name) => names.push(name) && "([^/]+)");
  const found = new RegExp(`^${source}/?$`).exec(pathname);
  try {
    return found && Object.fromEntries(names.map((name, i) => [name, decodeURIComponent(found[i + 1])]));
  } catch {
    // The path has a malformed percent encoding.
    return null;
  }
}
