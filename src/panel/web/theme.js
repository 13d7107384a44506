// Light, dark, or the system's choice.
const KEY = "paloma.theme";
export const THEMES = ["auto", "light", "dark"];

export function theme() {
  try {
    return localStorage.getItem(KEY) ?? "auto";
  } catch {
    return "auto";
  }
}

export function setTheme(name) {
  localStorage.setItem(KEY, name);
  startTheme();
}

export function startTheme() {
  const name = theme();
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
}
