// Texts in the reader's language. The English sentence is the key; `lang.tsv` has a row for each, with a column for each
// language, which the gateway serves as a module of its own. Of what the gateway says, the sentences that are not there
// stay in English: developers alone meet them. A blank, `{name}`, stands for what changes.
import { makeStore } from "./html.js";
import { kept } from "./theme.js";

export const LANGUAGES = { en: "English", es: "Español", pt: "Português" };
const KEY = "paloma.language";
/** The language code. A change redraws everything. */
export const language = makeStore("en");
let words = {};
/** What the gateway says: each sentence, with its words and the names of its blanks in turn. None in English. */
let sentences = [];

export async function setLanguage(code, remember = false) {
  const { default: translated, said } = code === "en" ? { default: {}, said: [] } : await import(`./lang/${code}.js`);
  words = translated;
  sentences = said.map((sentence) => [sentence, sentence.split(/\{(\w+)\}/)]);
  document.documentElement.lang = code;
  if (remember) localStorage.setItem(KEY, code);
  language.set(code);
}

/** Starts with the saved language, else the first of the browser's languages that is available. */
export function startLanguage() {
  const wanted = [kept(KEY), ...navigator.languages.map((tag) => tag.slice(0, 2))];
  return setLanguage(wanted.find((code) => code in LANGUAGES) ?? "en");
}

/** Returns the sentence in the reader's language, with `{name}` filled in. */
export function t(sentence, values = {}) {
  return (words[sentence] ?? sentence).replaceAll(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

/** Returns the singular or the plural sentence, with the number as `{n}`. */
export function tn(one, many, n) {
  return t(n === 1 ? one : many, { n: number(n) });
}

/** Returns the texts that fill the blanks of a sentence; null if the text is another sentence. */
function blanksIn(text, [beginning, ...rest]) {
  if (!text.startsWith(beginning)) return null;
  const values = {};
  let at = beginning.length;
  for (let i = 0; i < rest.length; i += 2) {
    const [name, words] = rest.slice(i, i + 2);
    const end = i + 2 < rest.length ? text.indexOf(words, at + 1) : text.length - words.length;
    if (end <= at || !text.startsWith(words, end)) return null;
    values[name] = text.slice(at, end);
    at = end + words.length;
  }
  return at === text.length ? values : null;
}

/** Translates a text of the gateway as far as `lang.tsv` knows it; null stays null. */
export function said(text) {
  if (text === null || text === undefined) return text;
  for (const [sentence, parts] of sentences) {
    const blanks = blanksIn(text, parts);
    if (!blanks) continue;
    const values = Object.entries(blanks).map(([name, value]) => [name, said(value)]);
    return t(sentence, Object.fromEntries(values));
  }
  return text;
}

/** The language, with the reader's country for dates and numbers if the browser states one. */
const locale = () => navigator.languages.find((tag) => tag.slice(0, 2) === language.get()) ?? language.get();

export function number(n) {
  return new Intl.NumberFormat(locale()).format(n);
}

/** Returns day and time in the reader's format; for today, only the time. */
export function when(at) {
  const date = new Date(at);
  const today = date.toDateString() === new Date().toDateString();
  return new Intl.DateTimeFormat(locale(), {
    ...(today ? {} : { dateStyle: "medium" }),
    timeStyle: "short",
  }).format(date);
}

/** Returns date and time with the time zone, which is the browser's. */
export function exactly(at) {
  return new Intl.DateTimeFormat(locale(), { dateStyle: "full", timeStyle: "long" }).format(new Date(at));
}

/** Returns the short name of a day of the week; 0 is Monday. */
export function weekday(day) {
  // The first of January 2024 was a Monday.
  return new Intl.DateTimeFormat(locale(), { weekday: "short", timeZone: "UTC" }).format(Date.UTC(2024, 0, 1 + day));
}

export function bytes(n) {
  const step = Math.min(4, Math.max(0, Math.floor(Math.log2(Math.max(1, n)) / 10)));
  const digits = 10 ** (step > 1 ? 1 : 0);
  return `${number(Math.round(n / 1024 ** step * digits) / digits)} ${["B", "KB", "MB", "GB", "TB"][step]}`;
}
