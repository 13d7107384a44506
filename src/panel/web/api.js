// Calls to the gateway. Addresses are relative to this file, so the panel works below any path of a proxy.
import { said, t } from "./i18n.js";
import { makeStore } from "./store.js";

const root = new URL("../", import.meta.url);
/** True while the gateway does not answer. */
export const offline = makeStore(false);
/** Who is signed in, see `GET /panel/api/state`; null: not known yet. */
export const session = makeStore(null);

export const apiUrl = (below) => new URL(`api${below}`, root).href;

/** What went wrong, in words; `code`, and for a form `fields` and, as the gateway gave them, `errors`. */
export class CallError extends Error {
  constructor({ code, detail, title, errors = [] }, status) {
    // A whole sentence needs no name of a field before it, which people do not know.
    const [first] = errors.map(({ path, message }) => (/^\p{Lu}/u.test(message) ? "" : `${path}: `) + said(message));
    super(first ?? said(detail ?? title ?? t("Something went wrong.")));
    this.code = code;
    this.status = status;
    this.errors = errors;
    this.fields = Object.fromEntries(errors.map(({ path, message }) => [path.split(".")[0], said(message)]));
  }
}

/** No answer takes longer: of what is only read, of what waits for the network. An upload may. */
const READ_MS = 20_000;
const DONE_MS = 60_000;

/** Calls `/panel/api…`; answers the JSON. `once` makes a repetition harmless. */
export async function call(method, below, { body, once, form } = {}) {
  let response;
  try {
    response = await fetch(apiUrl(below), {
      method,
      signal: form ? undefined : AbortSignal.timeout(method === "GET" ? READ_MS : DONE_MS),
      headers: {
        "x-paloma-panel": "1",
        ...(body !== undefined && { "content-type": "application/json" }),
        ...(once && { "idempotency-key": once }),
      },
      body: form ?? (body === undefined ? undefined : JSON.stringify(body)),
    });
  } catch {
    offline.set(true);
    throw new CallError({ code: "offline", detail: t("The gateway does not answer.") }, 0);
  }
  const answer = await response.json().catch(() => ({}));
  // A proxy answers for a gateway that is gone.
  const gone = [502, 503, 504].includes(response.status) && !answer.code;
  offline.set(gone);
  if (response.ok) return answer;
  // The app takes whoever is signed in no more to the sign-in, once for all calls of a page.
  if (answer.code === "sign_in_required") session.set({ ...session.get(), person: null });
  throw new CallError(gone ? { code: "offline", detail: t("The gateway does not answer.") } : answer, response.status);
}

export async function loadSession() {
  session.set((await call("GET", "/state")).data);
  return session.get();
}

/** Below `/panel/api`: the public API in the name of whoever is signed in. */
export const v1 = (account) => `/accounts/${account}/v1`;
export const api = (account, method, below, options) => call(method, v1(account) + below, options);

/** The names of all events. */
export const eventNames = () => session.get().events;
/** Of those, what a webhook hears that names none. */
export const usualEvents = () => session.get().usualEvents;
