// Preact with tagged templates, in which all components are written.
import { h } from "./lib/preact.js";
import htm from "./lib/htm.js";

export { render } from "./lib/preact.js";
export { useCallback, useEffect, useLayoutEffect, useRef, useState } from "./lib/hooks.js";
export const html = htm.bind(h);
