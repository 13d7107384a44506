/**
 * The menu of the guides: groups of pages in reading order, by their paths in `docs/` without the extension. A new page
 * is added here; a page that is not here is served, but neither listed nor found by the search.
 */
export const CONTENTS: readonly { title: string; pages: readonly string[] }[] = [
  {
    title: "Recipes",
    pages: [
      "recipes/first-message",
      "recipes/invoice-from-php",
      "recipes/incoming-webhook",
      "recipes/answer-a-menu",
      "recipes/offer-to-300",
      "recipes/remind-until-paid",
      "recipes/many-customers",
      "recipes/behind-a-proxy",
      "recipes/monitoring",
      "recipes/from-waha-or-evolution",
    ],
  },
  {
    title: "Messages",
    pages: ["messages", "media", "groups", "chats", "choices", "templates", "approval", "reminders", "verification"],
  },
  { title: "Events", pages: ["webhooks", "events"] },
  { title: "Lines", pages: ["linking", "sessions", "queue", "consent"] },
  { title: "Other programs", pages: ["n8n", "chatwoot", "mcp", "cloud", "migrate"] },
  { title: "Testing", pages: ["sandbox", "cloud-testing"] },
  {
    title: "Running a gateway",
    pages: ["operate", "accounts", "panel", "proxy", "backup", "upgrade", "machines", "limits"],
  },
];
