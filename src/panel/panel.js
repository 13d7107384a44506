// The panel in the browser: signs in with the API key, shows the sessions live, links lines. It uses the public API only.

const REFRESH_MS = 2_000;
const KEY = "paloma.apiKey";
const find = (selector, root = document) => root.querySelector(selector);

/** Calls the API; throws an Error with the problem's own sentence. */
async function call(method, path, body) {
  const response = await fetch(`/v1${path}`, {
    method,
    headers: {
      "x-api-key": sessionStorage.getItem(KEY) ?? "",
      ...(body && { "content-type": "application/json" }),
    },
    body: body && JSON.stringify(body),
  });
  const answer = await response.json();
  if (response.ok) return answer;
  throw Object.assign(new Error(answer.detail ?? answer.title), { status: response.status });
}

function say(section, error) {
  find(".error", section).textContent = error ? error.message : "";
}

const rows = new Map();

function rowOf(session) {
  const known = rows.get(session._id);
  if (known) return known;
  const row = find("#session").content.firstElementChild.cloneNode(true);
  row.addEventListener("click", async (event) => {
    const action = event.target.dataset.action;
    if (!action) return;
    if (action === "delete" && !confirm(`Delete ${session.name}? It is unlinked from the phone too.`)) return;
    try {
      if (action === "delete") await call("DELETE", `/sessions/${session._id}`);
      else await call("POST", `/sessions/${session._id}/${action}`);
      say(find("#sessions"));
    } catch (error) {
      say(find("#sessions"), error);
    }
    await refresh();
  });
  rows.set(session._id, row);
  find("#sessions ul").append(row);
  return row;
}

/** What an owner can do to a line in each status; the first names what `reconnect` then means. */
const ACTIONS = {
  initializing: ["Reconnect", "delete"],
  qr: ["New QR", "delete"],
  pairing: ["New code", "delete"],
  connected: ["Reconnect", "disconnect", "logout", "delete"],
  disconnected: ["Reconnect", "logout", "delete"],
  logged_out: ["Link again", "delete"],
};

function offer(row, status) {
  const [reconnect, ...others] = ACTIONS[status];
  for (const button of row.querySelectorAll("[data-action]")) {
    const { action } = button.dataset;
    if (action === "reconnect") button.textContent = reconnect;
    else button.hidden = !others.includes(action);
  }
}

async function show(session) {
  const row = rowOf(session);
  find(".name", row).textContent = session.name;
  find(".phone", row).textContent = session.phone ? `+${session.phone}` : "";
  const status = find(".status", row);
  status.textContent = session.status.replace("_", " ");
  status.dataset.status = session.status;
  find(".reason", row).textContent = session.reason ?? "";
  offer(row, session.status);
  const linking = session.status === "qr" || session.status === "pairing";
  find(".link", row).hidden = !linking;
  if (!linking) return;
  const { qr, pairingCode } = await call("GET", `/sessions/${session._id}/qr`);
  find(".by-qr", row).hidden = !qr;
  find(".by-code", row).hidden = !pairingCode;
  const image = find("img", row);
  if (qr && image.src !== qr) image.src = qr;
  find(".code", row).textContent = pairingCode ?? "";
}

async function refresh() {
  const { data } = await call("GET", "/sessions");
  const present = new Set(data.map((session) => session._id));
  for (const [id, row] of rows) {
    if (present.has(id)) continue;
    row.remove();
    rows.delete(id);
  }
  find("#none").hidden = data.length > 0;
  await Promise.all(data.map(show));
}

let timer;

async function watch() {
  clearTimeout(timer);
  try {
    await refresh();
  } catch (error) {
    if (error.status === 401 || error.status === 403) return signOut(error);
    say(find("#sessions"), error);
  }
  timer = setTimeout(watch, REFRESH_MS);
}

function signOut(error) {
  clearTimeout(timer);
  sessionStorage.removeItem(KEY);
  rows.forEach((row) => row.remove());
  rows.clear();
  find("#home").hidden = find("#sign-out").hidden = true;
  find("#sign-in").hidden = false;
  say(find("#sign-in"), error);
}

async function signIn() {
  await call("GET", "/sessions");
  const key = sessionStorage.getItem(KEY);
  find("#sign-in").hidden = true;
  find("#home").hidden = find("#sign-out").hidden = false;
  find("#key").textContent = key;
  find("#example").textContent = `curl -s ${location.origin}/v1/messages/send/text -H 'x-api-key: ${key}' \\\n` +
    `  -H 'content-type: application/json' -d '{"to":"4915112345678","text":"Hello"}'`;
  await watch();
}

find("#sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(KEY, event.target.elements.key.value.trim());
  event.target.reset();
  signIn().catch(signOut);
});

find("#create").addEventListener("submit", async (event) => {
  event.preventDefault();
  const { name, pairingPhone } = Object.fromEntries(new FormData(event.target));
  try {
    await call("POST", "/sessions", { name, ...(pairingPhone && { pairingPhone }) });
    event.target.reset();
    say(find("#sessions"));
  } catch (error) {
    say(find("#sessions"), error);
  }
  await refresh();
});

find("#sign-out").addEventListener("click", () => signOut());
find("#copy").addEventListener("click", async ({ target }) => {
  try {
    await navigator.clipboard.writeText(sessionStorage.getItem(KEY));
    target.textContent = "Copied";
    setTimeout(() => target.textContent = "Copy", REFRESH_MS);
  } catch {
    // Over plain http browsers offer no clipboard: the key is marked, to be copied by hand.
    getSelection().selectAllChildren(find("#key"));
  }
});

if (sessionStorage.getItem(KEY)) signIn().catch(signOut);
else find("#sign-in").hidden = false;
