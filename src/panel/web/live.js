// One stream a tab, of the account on screen, or for an operator of all lines. It is closed while nobody looks at the
// tab, and everything is asked anew when somebody does: what a stream says is only that there is something to ask.
import { apiUrl, call, offline } from "./api.js";
import { useCallback, useEffect, useRef, useState } from "./html.js";

const AGAIN_MS = 2_000;
/** Questions that the same burst of events would ask are asked once, and no page asks the same more often than this. */
const GATHER_MS = 200;
const MOST_OFTEN_MS = 1_500;

const OPERATOR = "/operator";

const listeners = new Map();
/** What the stream is of, below `/panel/api`; null for none. */
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
      // Says whether it is the gateway that is gone, or the sign-in.
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

/** Loads, and again when one of the topics says so: `{ data, error, loading, reload }`. What was there stays meanwhile. */
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
    // Whatever was missed while the gateway was gone.
    ends.push(offline.subscribe((gone) => gone || soon()));
    return () => {
      turn.current++;
      clearTimeout(waiting);
      for (const end of ends) end();
    };
  }, [reload]);
  return { ...state, reload };
}

/** Calls `work` every so often while the tab is seen. */
export function useEvery(ms, work, on = true) {
  const latest = useRef(work);
  latest.current = work;
  useEffect(() => {
    if (!on) return;
    const timer = setInterval(() => document.hidden || latest.current(), ms);
    return () => clearInterval(timer);
  }, [ms, on]);
}
