// One event stream per tab: of the account on screen, or for an operator of all lines. It is closed while the tab is
// hidden, and everything is reloaded when the tab is shown, because the stream only says that there is something to
// load.
import { api, apiUrl, call, loadSession, offline, v1 } from "./api.js";
import { useCallback, useEffect, useRef, useState } from "./html.js";
import { isGroup } from "./words.js";

const AGAIN_MS = 2_000;
/**
 * The gateway sends something every 20 s. A connection that is silent for longer is dead, whatever the browser reports.
 */
const SILENT_MS = 45_000;
/** Errors that a retry does not change. */
const OVER = ["sign_in_required", "not_permitted", "not_found"];
/** Requests caused by a burst of events are coalesced, and no page repeats a request more often than this. */
const GATHER_MS = 200;
const MOST_OFTEN_MS = 1_500;

const OPERATOR = "/operator";

const listeners = new Map();
/** The stream's path below `/panel/api`; null for none. */
let followed = null;
let source = null;
let retry = 0;
let silence = 0;

function tell(topic) {
  for (const listen of [...listeners.get(topic) ?? []]) listen();
}

function close() {
  clearTimeout(retry);
  clearTimeout(silence);
  source?.close();
  source = null;
}

function open() {
  close();
  if (!followed || document.hidden) return;
  source = new EventSource(apiUrl(`${followed}/live`));
  const hear = (name, heard = () => {}) =>
    source.addEventListener(name, ({ data }) => {
      stillHere();
      heard(JSON.parse(data));
    });
  stillHere();
  hear("ready", () => {
    offline.set(false);
    for (const topic of listeners.keys()) tell(topic);
  });
  hear("alive");
  hear("lines", () => tell("lines"));
  hear("happened", (names) => {
    tell("events");
    for (const name of names) {
      tell(name.startsWith("session.") ? "lines" : name.startsWith("webhook.") ? "webhooks" : "messages");
      if (name !== "session.qr") tell("deliveries");
    }
  });
  source.addEventListener("error", lost);
}

function stillHere() {
  clearTimeout(silence);
  silence = setTimeout(lost, SILENT_MS);
}

/** Finds out whether the gateway is down or the sign-in has ended, and retries until it knows. */
function lost() {
  close();
  retry = setTimeout(async () => {
    try {
      // In another tab, somebody else may have signed in, or the person signed out.
      const { person } = await loadSession();
      if (!person) return;
      if (followed) await call("GET", followed === OPERATOR ? `${OPERATOR}/overview` : followed);
      open();
    } catch ({ code }) {
      if (!OVER.includes(code)) lost();
    }
  }, AGAIN_MS);
}

offline.subscribe((gone) => gone ? lost() : tell("ready"));
// Somebody else may have signed in in another tab in the meantime.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return close();
  if (!followed || offline.get()) return lost();
  open();
  loadSession().catch(() => {});
});

/** Follows an account, given by its id; all lines, for operators, if null; nothing if undefined. */
export function follow(account) {
  const next = account === undefined ? null : account === null ? OPERATOR : `/accounts/${account}`;
  if (next === followed) return;
  followed = next;
  open();
}

function listen(topic, heard) {
  const heardBy = listeners.get(topic) ?? new Set();
  listeners.set(topic, heardBy.add(heard));
  return () => heardBy.delete(heard);
}

/**
 * Loads data, and reloads it when one of the topics changes, the tab is shown, or the gateway answers again. Returns
 * `{ data, error, reload }`. Old data stays until then; if a reload for other `deps` fails, the data of the previous
 * ones is removed.
 */
export function useLoad(load, deps, topics = []) {
  const [state, setState] = useState({ data: null, error: null });
  const turn = useRef(0);
  const latest = useRef(null);
  const reload = useCallback(async () => {
    // Its page was left, or shows something else by now.
    if (latest.current !== reload) return;
    const mine = ++turn.current;
    try {
      const data = await load();
      if (mine === turn.current) setState({ data, error: null, by: reload });
    } catch (error) {
      if (mine === turn.current) setState(({ data, by }) => ({ data: by === reload ? data : null, error, by: reload }));
    }
  }, deps);
  useEffect(() => {
    latest.current = reload;
    reload();
    let waiting = 0;
    let asked = 0;
    const soon = () => {
      waiting ||= setTimeout(() => {
        waiting = 0;
        asked = Date.now();
        reload();
      }, Math.max(GATHER_MS, asked + MOST_OFTEN_MS - Date.now()));
    };
    const ends = ["ready", ...topics].map((topic) => listen(topic, soon));
    return () => {
      turn.current++;
      latest.current = null;
      clearTimeout(waiting);
      for (const end of ends) end();
    };
  }, [reload]);
  return { ...state, reload };
}

/**
 * A list whose first page is reloaded as in `useLoad`, and which grows by `more`. `load(cursor)` resolves to
 * `{ data, next }`. `older(fresh, known)` returns which known rows follow the reloaded first page. `data` is
 * `{ rows, next }`. `more(before)` calls `before` just before it shows what it loaded.
 */
export function usePaged(load, deps, topics, older) {
  const kept = useRef({});
  const [, draw] = useState(0);
  const key = JSON.stringify(deps);
  const first = useLoad(
    async () => {
      const { data, next } = await load(null);
      const known = kept.current.key === key ? kept.current : { rows: [] };
      const rest = older(data, known.rows);
      kept.current = { key, rows: [...data, ...rest], next: rest.length > 0 ? known.next : next };
      return kept.current;
    },
    deps,
    topics,
  );
  const more = async (before = () => {}) => {
    const { next } = kept.current;
    const page = await load(next);
    // The list may have become another one in the meantime.
    if (kept.current.key !== key || kept.current.next !== next) return;
    before();
    kept.current = { key, rows: [...kept.current.rows, ...page.data], next: page.next };
    draw((times) => times + 1);
  };
  return { ...first, data: first.data && kept.current, more };
}

/** `useLoad` with the `data` of `GET /panel/api…`. */
export const useData = (below, topics = [], deps = []) =>
  useLoad(async () => (await call("GET", below)).data, [below, ...deps], topics);

/** How often what needs a person is asked for; most of it changes with an event besides. */
const ATTENTION_MS = 15_000;

/** What needs a person: `{ items }` of an account (`/accounts/…`), or of the gateway (`/operator`); null at first. */
export function useAttention(below) {
  const { data, reload } = useData(`${below}/attention`, ["lines", "webhooks"]);
  useEvery(ATTENTION_MS, reload);
  return data;
}

/** `useData` with the public API. */
export const useApi = (account, below, ...rest) => useData(v1(account) + below, ...rest);

/** A page of a list of the public API: the answer's `data` and `pagination`, as `TablePage` shows them. */
export const usePage = (account, below, { page = 1, limit, topics }) =>
  useLoad(() => api(account, "GET", `${below}?page=${page}&limit=${limit}`), [account, page], topics);

/** The lines of an account. */
export const useLines = (account) => useApi(account, "/sessions", ["lines"]);

/**
 * The names of these chats (`[line, chat]` each), as `Map` by chat. Those of groups that have no name yet are asked of
 * the network, once per visit; a line that is offline is asked again when lines change.
 */
export function useNames(account, chats) {
  const [names, setNames] = useState(new Map());
  const wanted = [...new Set(chats.filter(([, chat]) => chat).map((pair) => pair.join(" ")))].sort().join();
  useEffect(() => {
    const byLine = Map.groupBy(wanted.split(",").filter(Boolean).map((pair) => pair.split(" ")), ([line]) => line);
    const add = (found) => setNames((known) => new Map([...known, ...found]));
    const unasked = new Set();
    const ask = () => {
      for (const line of unasked) {
        api(account, "GET", `/sessions/${line}/groups`)
          .then(({ data }) => unasked.delete(line) && add(data.map(({ id, name }) => [id, name])), () => {});
      }
    };
    for (const [line, pairs] of byLine) {
      const all = pairs.map(([, chat]) => chat);
      call("GET", `/accounts/${account}/lines/${line}/names?chats=${all.map(encodeURIComponent).join()}`)
        .then(({ data }) => {
          add(Object.entries(data));
          if (all.every((chat) => !isGroup(chat) || chat in data)) return;
          unasked.add(line);
          ask();
        }, () => {});
    }
    return listen("lines", ask);
  }, [account, wanted]);
  return names;
}

/** Calls `work` at intervals while the tab is visible. */
export function useEvery(ms, work, on = true) {
  const latest = useRef(work);
  latest.current = work;
  useEffect(() => {
    if (!on) return;
    const timer = setInterval(() => document.hidden || latest.current(), ms);
    return () => clearInterval(timer);
  }, [ms, on]);
}
