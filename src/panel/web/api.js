// Calls to the gateway. URLs are relative to this file, so the panel works below any path of a proxy.
import { said, t } from "./i18n.js";
import { makeStore } from "./html.js";

const root = new URL("../", import.meta.url);
/** True while the gateway does not answer. */
export const offline = makeStore(false);
/**
 * The answer of `GET /panel/api/state`, which includes the signed-in person; null until it is loaded. `leaving` once that
 * person signs out.
 */
export const session = makeStore(null);
/** Whether the signed-in person is an agent, who answers chats and sees nothing else. */
export const isAgent = () => session.get().person?.role === "agent";
/** Aborted when the person signs out. */
let asking = new AbortController();

export const apiUrl = (below) => new URL(`api${below}`, root).href;

/**
 * A failed call, described in words. `code` is the gateway's; for a form, `fields` has the message of each field, and
 * `errors` are those of the gateway.
 */
export class CallError extends Error {
  constructor({ code, detail, title, errors = [] }) {
    // A message that is a whole sentence stands without the name of its field, which people do not know.
    const [first] = errors.map(({ path, message }) => (/^\p{Lu}/u.test(message) ? "" : `${path}: `) + said(message));
    super(first ?? said(detail ?? title ?? t("Something went wrong.")));
    this.code = code;
    this.errors = errors;
    this.fields = Object.fromEntries(errors.map(({ path, message }) => [path.split(".")[0], said(message)]));
  }
}

/** Timeouts of reads, and of calls that may wait for the network. Uploads have none. */
const READ_MS = 20_000;
const DONE_MS = 60_000;
const never = new Promise(() => {});
const notResponding = () => new CallError({ code: "offline", detail: t("The gateway is not responding.") });

/**
 * Calls `/panel/api…`; resolves to the JSON of the answer, and never once the signal is aborted. `once`, an idempotency
 * key, makes a repetition harmless. `json` is a body in parts that are JSON together.
 */
export async function call(
  method,
  below,
  { body, json = body && [JSON.stringify(body)], once, form, signal = asking.signal } = {},
) {
  const timeout = form ? [] : [AbortSignal.timeout(method === "GET" ? READ_MS : DONE_MS)];
  let response;
  try {
    response = await fetch(apiUrl(below), {
      method,
      signal: AbortSignal.any([signal, ...timeout]),
      headers: {
        // Reads have no header: the document asks for the first ones ahead, with none.
        ...(method !== "GET" && { "x-paloma-panel": "1" }),
        ...(json && { "content-type": "application/json" }),
        ...(once && { "idempotency-key": once }),
      },
      body: form ?? (json && new Blob(json)),
    });
  } catch {
    if (signal.aborted) return await never;
    offline.set(true);
    throw notResponding();
  }
  const answer = await response.json().catch(() => ({}));
  if (signal.aborted) return await never;
  // The answer comes from a proxy, because the gateway is down.
  const gone = [502, 503, 504].includes(response.status) && !answer.code;
  offline.set(gone);
  if (response.ok) return answer;
  // Without a person the app opens the sign-in page, once for all calls of a page.
  if (answer.code === "sign_in_required") session.set({ ...session.get(), person: null });
  throw gone ? notResponding() : new CallError(answer);
}

export async function loadSession() {
  session.set((await call("GET", "/state")).data);
  return session.get();
}

/** Signs the person out. From now on their pages ask for nothing, and get no answer to what they have asked for. */
export async function signOut() {
  asking.abort();
  const next = new AbortController();
  session.set({ ...session.get(), leaving: true });
  try {
    await call("POST", "/sign-out", { signal: next.signal });
    sessionStorage.clear();
    session.set({ ...session.get(), person: null });
  } catch (error) {
    session.set({ ...session.get(), leaving: false });
    throw error;
  } finally {
    asking = next;
  }
}

/** The path of the public API, called on behalf of the signed-in person, below `/panel/api`. */
export const v1 = (account) => `/accounts/${account}/v1`;
export const api = (account, method, below, options) => call(method, v1(account) + below, options);

/** The names of all events. */
export const eventNames = () => session.get().events;
/** The events of a webhook that names none. */
export const usualEvents = () => session.get().usualEvents;
