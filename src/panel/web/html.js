// Preact with tagged templates, in which all components are written, and values to which they can subscribe.
import { h, htm, useEffect, useState } from "./lib.js";

export { render, useCallback, useEffect, useLayoutEffect, useRef, useState } from "./lib.js";
export const html = htm.bind(h);

/** Returns a value to which components can subscribe. */
export function makeStore(value) {
  const listeners = new Set();
  return {
    get: () => value,
    set(next) {
      if (next === value) return;
      value = next;
      for (const listen of [...listeners]) listen(value);
    },
    subscribe(listen) {
      listeners.add(listen);
      return () => listeners.delete(listen);
    },
  };
}

export function useStore(store) {
  const [value, set] = useState(store.get());
  useEffect(() => {
    set(store.get());
    return store.subscribe(set);
  }, [store]);
  return value;
}
