/**
 * Settings of this browser, in localStorage under one key; each is a signal, and all tabs follow a change.
 */
import { effect, signal } from "@preact/signals";

const KEY = "gatewayd";
const COOKIE_SECONDS = 365 * 24 * 3600;
const DEFAULTS = { theme: "auto", language: "", favouriteModels: [], shortcuts: true, notifications: false };

/** Colours: "auto", "light" or "dark". */
export const theme = signal(DEFAULTS.theme);
/** Language of the page, "" for that of the browser. */
export const chosenLanguage = signal(DEFAULTS.language);
/** Ids of the models that come first in the picker. */
export const favouriteModels = signal(DEFAULTS.favouriteModels);
/** Whether the keyboard shortcuts work. */
export const shortcuts = signal(DEFAULTS.shortcuts);
/** Whether the browser tells of an answer that ends while the page is hidden. */
export const notifications = signal(DEFAULTS.notifications);

export const preferences = { theme, language: chosenLanguage, favouriteModels, shortcuts, notifications };

/** Reads what is stored; a value of another type than its default counts as absent. */
function read() {
  let stored;
  try {
    stored = JSON.parse(localStorage.getItem(KEY) ?? "{}") ?? {};
  } catch {
    stored = {};
  }
  for (const [name, setting] of Object.entries(preferences)) {
    const value = stored[name];
    const fits = typeof value === typeof DEFAULTS[name] && Array.isArray(value) === Array.isArray(DEFAULTS[name]);
    if (fits && JSON.stringify(value) !== JSON.stringify(setting.peek())) setting.value = value;
  }
}

/** Sets a cookie that the server reads for the first paint: "theme" or "language". */
export function rememberForServer(name, value) {
  const secure = location.protocol === "https:" ? "; Secure" : "";
  document.cookie = `${name}=${value}; Path=/; Max-Age=${value ? COOKIE_SECONDS : 0}; SameSite=Lax${secure}`;
}

read();
addEventListener("storage", (event) => {
  if (event.key === KEY) read();
});
effect(() => {
  const values = Object.fromEntries(Object.entries(preferences).map(([name, setting]) => [name, setting.value]));
  localStorage.setItem(KEY, JSON.stringify(values));
});
effect(() => {
  const root = document.documentElement;
  if (root.dataset.theme === theme.value) return;
  root.dataset.theme = theme.value;
  const scheme = document.querySelector('meta[name="color-scheme"]');
  scheme?.setAttribute("content", theme.value === "auto" ? "light dark" : theme.value);
  rememberForServer("theme", theme.value === "auto" ? "" : theme.value);
});
