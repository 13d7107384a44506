// Preact with tagged templates, in which all components are written.
import { h } from "./lib/preact.js";
import htm from "./lib/htm.js";

export { Component, createContext, Fragment, render } from "./lib/preact.js";
export { useCallback, useContext, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./lib/hooks.js";
export const html = htm.bind(h);
