// Light, dark, or the system's choice.
const KEY = "paloma.theme";
export const THEMES = ["auto", "light", "dark"];

/** Returns what this browser keeps under a name; null for nothing, and where the browser keeps nothing. */
export function kept(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

export const theme = () => kept(KEY) ?? "auto";

export function setTheme(name) {
  localStorage.setItem(KEY, name);
  startTheme();
}

export function startTheme() {
  const name = theme();
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
}
