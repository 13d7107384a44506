// The account: its quota, its key, and where the key may be used.
import { apiKey, call, keepKey } from "./call.js";
import { find, say } from "./dom.js";

const COPIED_MS = 2_000;
const section = find("#account");
const places = find("#places");

const lines = (text) => text.split(/[\s,]+/).filter(Boolean);

function showKey() {
  find("#key").textContent = apiKey();
  find("#example").textContent = `curl -s ${location.origin}/v1/messages/send/text -H 'x-api-key: ${apiKey()}' \\\n` +
    `  -H 'content-type: application/json' -d '{"to":"4915112345678","text":"Hello"}'`;
}

function showPlaces({ allowedIps, allowedDomains }) {
  places.elements.allowedIps.value = allowedIps.join("\n");
  places.elements.allowedDomains.value = allowedDomains.join("\n");
}

/** How much of the quota is used, as it is now. */
export async function refreshQuota() {
  const { data } = await call("GET", "/v1/account");
  const { plan, used, remaining } = data;
  const of = (count, left, period) =>
    left === null ? `${count} sent ${period}` : `${count} of ${count + left} sent ${period}`;
  find("#quota").textContent = `${data.name}, on plan ${plan.name}: ` +
    `${of(used.daily, remaining.daily, "today")}, ${of(used.monthly, remaining.monthly, "this month")} (UTC).`;
  return data;
}

/** Shows the account of the key that was just signed in with. */
export async function openAccount() {
  showPlaces(await refreshQuota());
  showKey();
  say(section);
}

/** Leaves nothing of an account on the page. */
export function closeAccount() {
  places.reset();
  for (const part of ["#quota", "#key", "#example", "#saved"]) find(part).textContent = "";
  say(section);
}

async function attempt(work) {
  try {
    await work();
    say(section);
  } catch (error) {
    say(section, error);
  }
}

places.addEventListener("submit", (event) => {
  event.preventDefault();
  const { allowedIps, allowedDomains } = places.elements;
  attempt(async () => {
    const { data } = await call("PUT", "/panel/account", {
      allowedIps: lines(allowedIps.value),
      allowedDomains: lines(allowedDomains.value),
    });
    showPlaces(data);
    find("#saved").textContent = "Saved; in force now.";
  });
});
places.addEventListener("input", () => find("#saved").textContent = "");

find("#regenerate").addEventListener("click", () => {
  if (!confirm("Make a new key? The present one stops working at once, everywhere it is used.")) return;
  attempt(async () => {
    const { data } = await call("POST", "/panel/account/regenerate-key");
    keepKey(data.apiKey);
    showKey();
  });
});

find("#copy").addEventListener("click", async ({ target }) => {
  try {
    await navigator.clipboard.writeText(apiKey());
    target.textContent = "Copied";
    setTimeout(() => target.textContent = "Copy", COPIED_MS);
  } catch {
    // Over plain http browsers offer no clipboard: the key is marked, to be copied by hand.
    getSelection().selectAllChildren(find("#key"));
  }
});
