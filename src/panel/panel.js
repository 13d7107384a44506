// The panel in the browser: signs in with the API key, and keeps what it shows up to date.
import { closeAccount, openAccount, refreshQuota } from "./account.js";
import { apiKey, forgetKey, keepKey } from "./call.js";
import { find, say } from "./dom.js";
import { clearSessions, refreshSessions } from "./sessions.js";

const REFRESH_MS = 2_000;
let timer;
let isLost = false;

async function watch() {
  clearTimeout(timer);
  try {
    await Promise.all([refreshSessions(), refreshQuota()]);
    if (isLost) say(find("#sessions"));
    isLost = false;
  } catch (error) {
    if (!apiKey()) return; // signed out meanwhile
    if (error.status === 401 || error.status === 403) return signOut(error);
    if (error.name !== "AbortError") {
      isLost = true;
      say(find("#sessions"), error);
    }
  }
  timer = setTimeout(watch, REFRESH_MS);
}

async function signIn() {
  await openAccount();
  find("#sign-in").hidden = true;
  find("#home").hidden = find("#sign-out").hidden = false;
  await watch();
}

function signOut(error) {
  clearTimeout(timer);
  forgetKey();
  clearSessions();
  closeAccount();
  find("#home").hidden = find("#sign-out").hidden = true;
  find("#sign-in").hidden = false;
  say(find("#sign-in"), error);
}

find("#sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  keepKey(event.target.elements.key.value.trim());
  event.target.reset();
  signIn().catch(signOut);
});

find("#sign-out").addEventListener("click", () => signOut());

if (apiKey()) signIn().catch(signOut);
else find("#sign-in").hidden = false;
