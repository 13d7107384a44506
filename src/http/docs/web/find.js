/** Finds sections by words and by what means the same. */

/** Words of which each finds the others too. A word is found by its beginning: `retr` is in `retry` and `retries`. */
const SYNONYMS = [
  ["invoice", "bill", "receipt", "pdf", "document", "attachment"],
  ["hmac", "signature", "verifying", "verifier"],
  ["retry", "retries", "retried", "redeliver", "again"],
  ["ban", "banned", "block", "restrict", "suspend"],
  ["docker", "container", "compose", "kubernetes", "helm"],
  ["nginx", "caddy", "proxy", "tls", "https", "certificate"],
  ["secret", "whsec", "signing"],
  ["line", "session", "number", "device"],
  ["jid", "chat", "lid"],
  ["qr", "scan", "link", "pair"],
  ["schedule", "sendat", "later", "delay"],
  ["bulk", "campaign", "broadcast", "newsletter", "csv"],
  ["limit", "quota", "rate", "throttle", "429"],
  ["button", "menu", "list", "choice", "poll"],
  ["photo", "picture", "image"],
  ["voice", "audio", "ptt"],
  ["incoming", "inbound", "receive", "received"],
  ["token", "key", "credential", "auth", "password"],
  ["gdpr", "privacy", "erase", "consent"],
  ["unsubscribe", "stop", "opt-out", "opted"],
  ["waha", "evolution", "migrate", "moving"],
  ["monitor", "metric", "prometheus", "grafana", "alert"],
  ["cluster", "postgres", "machines", "scale"],
  ["otp", "verification", "code"],
  ["ai", "agent", "mcp", "llm", "claude"],
  ["test", "sandbox", "simulate", "mock"],
];

/** Returns the sections that have every word of `query`, best first, as `{ section, marks }`: what to mark in them. */
export function find(sections, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  const terms = words.map((word) => {
    const others = SYNONYMS.filter((group) => group.some((one) => word.startsWith(one))).flat();
    return { own: beginning([word]), akin: beginning([word, ...others]), all: [word, ...others] };
  });
  const marks = beginning(terms.flatMap(({ all }) => all));
  return sections.map((section) => {
    const scores = terms.map((term) => score(section, term));
    const whole = section.heading.toLowerCase() === words.join(" ") ? 20 : 0;
    return { section, marks, score: scores.includes(0) ? 0 : whole + scores.reduce((sum, one) => sum + one) };
  }).filter(({ score }) => score > 0).sort((a, b) => b.score - a.score);
}

/** A word itself counts more than what means the same, a heading more than the text below it. */
function score({ page, heading, text }, { own, akin }) {
  const times = (words) => (text.split(words).length - 1) / 2;
  const weighed = (words) => 10 * words.test(heading) + 5 * words.test(page) + 2 * Math.min(4, times(words));
  return weighed(own) + weighed(akin) / 4;
}

/** The pattern of words that begin with one of these; it captures, so that a text is split into what fits and what is between. */
function beginning(words) {
  const escaped = words.map((word) => word.replaceAll(/[\\^$.*+?()[\]{}|/]/g, "\\$&"));
  return new RegExp(`(?<![\\p{L}\\p{N}])(${escaped.join("|")})`, "iu");
}
