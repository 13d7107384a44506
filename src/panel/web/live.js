// One stream per tab, of the account on screen, or for an operator of all lines. It is closed while nobody looks at the
// tab, and everything is loaded anew when somebody does: a stream only says that there is something to load.
import { apiUrl, call, offline } from "./api.js";
import { useCallback, useEffect, useRef, useState } from "./html.js";

const AGAIN_MS = 2_000;
/** Requests that a burst of events would cause are made once, and no page repeats one more often than this. */
const GATHER_MS = 200;
const MOST_OFTEN_MS = 1_500;

const OPERATOR = "/operator";

const listeners = new Map();
/** The stream's path below `/panel/api`; null for none. */
let followed = null;
let source = null;
let retry = 0;

function tell(topic, detail) {
  for (const listen of [...listeners.get(topic) ?? []]) listen(detail);
}

function close() {
  clearTimeout(retry);
  source?.close();
  source = null;
}

function open() {
  close();
  if (!followed || document.hidden) return;
  source = new EventSource(apiUrl(`${followed}/live`));
  source.addEventListener("ready", () => {
    offline.set(false);
    for (const topic of listeners.keys()) if (topic !== "happened") tell(topic);
  });
  source.addEventListener("lines", () => tell("lines"));
  source.addEventListener("happened", ({ data }) => {
    const event = JSON.parse(data);
    tell("happened", event);
    tell(event.event.startsWith("session.") ? "lines" : event.event.startsWith("webhook.") ? "webhooks" : "messages");
    if (event.event !== "session.qr") tell("deliveries");
  });
  source.addEventListener("error", () => {
    close();
    retry = setTimeout(async () => {
      // Finds out whether the gateway is gone or the sign-in has ended.
      await call("GET", followed === OPERATOR ? `${OPERATOR}/overview` : followed).then(
        open,
        (error) => error.code === "offline" && again(),
      );
    }, AGAIN_MS);
  });
}

function again() {
  retry = setTimeout(() => call("GET", "/state").then(open, again), AGAIN_MS);
}

document.addEventListener("visibilitychange", () => document.hidden ? close() : open());

/** Follows an account, by its id; null for all lines, as an operator sees them, and undefined for nothing. */
export function follow(account) {
  const next = account === undefined ? null : account === null ? OPERATOR : `/accounts/${account}`;
  if (next === followed) return;
  followed = next;
  open();
}

export function listen(topic, heard) {
  const heardBy = listeners.get(topic) ?? new Set();
  listeners.set(topic, heardBy.add(heard));
  return () => heardBy.delete(heard);
}

/** Loads, and reloads when one of the topics changes: `{ data, error, loading, reload }`. The old data stays meanwhile. */
export function useLoad(load, deps, topics = []) {
  const [state, setState] = useState({ data: null, error: null, loading: true });
  const turn = useRef(0);
  const reload = useCallback(async () => {
    const mine = ++turn.current;
    try {
      const data = await load();
      if (mine === turn.current) setState({ data, error: null, loading: false });
    } catch (error) {
      if (mine === turn.current) setState(({ data }) => ({ data, error, loading: false }));
    }
  }, deps);
  useEffect(() => {
    setState({ data: null, error: null, loading: true });
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
    const ends = topics.map((topic) => listen(topic, soon));
    // Catches up on what was missed while the gateway was gone.
    ends.push(offline.subscribe((gone) => gone || soon()));
    return () => {
      turn.current++;
      clearTimeout(waiting);
      for (const end of ends) end();
    };
  }, [reload]);
  return { ...state, reload };
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
