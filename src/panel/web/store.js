// A value to which components can subscribe.
import { useEffect, useState } from "./html.js";

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
