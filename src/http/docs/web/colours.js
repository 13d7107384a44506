/** Colours of samples: comments, strings, numbers and keywords, by one expression for each language. */
import { codeBox, el } from "./dom.js";

const KINDS = ["comment", "string", "number", "keyword", "name"];
const HASH = /(?<=^|\s)#.*/;
const SLASHES = /\/\/.*|\/\*[^]*?(?:\*\/|$)/;
const COMMENTS = {
  sh: HASH,
  python: HASH,
  yaml: HASH,
  nginx: HASH,
  ini: HASH,
  caddy: HASH,
  js: SLASHES,
  ts: SLASHES,
  go: SLASHES,
  php: SLASHES,
};
/** What is not closed goes on to the end, so that no place is looked at twice. */
const STRING = /"""[^]*?(?:"""|$)|"(?:\\[^]|[^"\\])*"?|'(?:\\[^]|[^'\\])*'?|`(?:\\[^]|[^`\\])*`?/;
/** In a shell a backslash within single quotes is one. */
const SHELL_STRING = /"(?:\\[^]|[^"\\])*"?|'[^']*'?/;
const NUMBER = /\b\d[\d._]*\b/;
const CONSTANT = /\b(?:true|false|null)\b/;
const KEYWORD =
  /(?<![.\w$-])(?:as|async|await|break|case|catch|class|const|continue|def|defer|do|done|echo|elif|else|except|export|false|fi|finally|for|foreach|from|func|function|if|import|in|let|new|nil|None|not|null|of|package|raise|return|switch|then|throw|true|True|False|try|type|use|var|while|with)\b/;

/** Splits a sample into `{ kind, text }`; `kind` is null for what has no colour. */
export function partsOf(text, language) {
  const comment = COMMENTS[language];
  // What is no program has neither comments nor keywords: the answer of a server, a tree of files.
  if (!comment && language !== "json") return [{ kind: null, text }];
  const kinds = {
    ...(comment && { comment }),
    string: language === "sh" ? SHELL_STRING : STRING,
    number: NUMBER,
    keyword: language === "json" ? CONSTANT : KEYWORD,
  };
  const any = new RegExp(Object.entries(kinds).map(([kind, { source }]) => `(?<${kind}>${source})`).join("|"), "g");
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(any)) {
    parts.push({ kind: null, text: text.slice(end, match.index) });
    end = match.index + match[0].length;
    const kind = Object.keys(kinds).find((name) => match.groups[name] !== undefined);
    const isName = kind === "string" && /^\s*:/.test(text.slice(end, end + 9));
    parts.push({ kind: isName ? "name" : kind, text: match[0] });
  }
  parts.push({ kind: null, text: text.slice(end) });
  return parts.filter(({ text }) => text !== "");
}

/** Where each kind is on the page. The browser paints ranges: samples stay one text each, of thousands of words in all. */
const highlights = Object.fromEntries(
  globalThis.CSS?.highlights ? KINDS.map((kind) => [kind, new Highlight()]) : [],
);
for (const [kind, highlight] of Object.entries(highlights)) CSS.highlights.set(kind, highlight);
const rangesOf = new WeakMap();

/** Writes a sample into `pre`; a browser that cannot paint ranges shows it without colours. */
export function colour(pre, text, language) {
  for (const { kind, range } of rangesOf.get(pre) ?? []) highlights[kind]?.delete(range);
  pre.textContent = text;
  const ranges = [];
  let end = 0;
  for (const { kind, text: part } of partsOf(text, language)) {
    const [startOffset, endOffset] = [end, end += part.length];
    if (!kind || !(kind in highlights)) continue;
    const range = new StaticRange({
      startContainer: pre.firstChild,
      startOffset,
      endContainer: pre.firstChild,
      endOffset,
    });
    highlights[kind].add(range);
    ranges.push({ kind, range });
  }
  rangesOf.set(pre, ranges);
}

/** An answer, or JSON, in a box with a button that copies it. */
export function jsonBox(text) {
  const pre = el("pre", { tabindex: "0" });
  colour(pre, text, "json");
  return codeBox(pre);
}
