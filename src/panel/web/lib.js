// Stands in for the libraries when these files are read from disk; browsers get the libraries themselves (`web.ts`).
export { h, render } from "preact";
export { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
export { default as htm } from "htm";
