// The sessions: a row each, kept up to date, with what an owner can do to it.
import { call } from "./call.js";
import { find, say } from "./dom.js";

const section = find("#sessions");
const rows = new Map();

/** What an owner can do to a line in each status; the first names what `reconnect` then means. */
const ACTIONS = {
  initializing: ["Reconnect", "delete"],
  qr: ["New QR", "delete"],
  pairing: ["New code", "delete"],
  connected: ["Reconnect", "disconnect", "logout", "delete"],
  disconnected: ["Reconnect", "logout", "delete"],
  logged_out: ["Link again", "delete"],
};

function rowOf(session) {
  const known = rows.get(session._id);
  if (known) return known;
  const row = find("#session").content.firstElementChild.cloneNode(true);
  row.addEventListener("click", ({ target }) => target.dataset.action && act(session, target.dataset.action));
  rows.set(session._id, row);
  find("ul", section).append(row);
  return row;
}

async function act({ _id, name }, action) {
  if (action === "delete" && !confirm(`Delete ${name}? It is unlinked from the phone too.`)) return;
  await attempt(() =>
    action === "delete" ? call("DELETE", `/v1/sessions/${_id}`) : call("POST", `/v1/sessions/${_id}/${action}`)
  );
}

async function attempt(work) {
  try {
    await work();
    say(section);
    await refreshSessions();
  } catch (error) {
    say(section, error);
  }
}

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
  const { qr, pairingCode } = await call("GET", `/v1/sessions/${session._id}/qr`);
  find(".by-qr", row).hidden = !qr;
  find(".by-code", row).hidden = !pairingCode;
  const image = find("img", row);
  if (qr && image.src !== qr) image.src = qr;
  find(".code", row).textContent = pairingCode ?? "";
}

export async function refreshSessions() {
  const { data } = await call("GET", "/v1/sessions");
  const present = new Set(data.map((session) => session._id));
  for (const [id, row] of rows) {
    if (present.has(id)) continue;
    row.remove();
    rows.delete(id);
  }
  find("#none").hidden = data.length > 0;
  await Promise.all(data.map(show));
}

/** Leaves nothing of an account on the page. */
export function clearSessions() {
  rows.forEach((row) => row.remove());
  rows.clear();
  say(section);
}

find("#create").addEventListener("submit", (event) => {
  event.preventDefault();
  const { name, pairingPhone } = Object.fromEntries(new FormData(event.target));
  attempt(async () => {
    await call("POST", "/v1/sessions", { name, ...(pairingPhone && { pairingPhone }) });
    event.target.reset();
  });
});
