/**
 * Keyboard shortcuts, which one preference switches off, and their list.
 */
import { computed, signal } from "@preact/signals";
import { isComposing } from "#app/core/composing";
import { shortcuts as enabled } from "#app/core/preferences";

const IS_MAC = /mac|iphone|ipad/i.test(navigator.platform);
const registered = signal([]);

/** The shortcuts that work now: {keys, messageKey}, each once. */
export const shortcutList = computed(() => {
  const seen = new Map(registered.value.map((one) => [`${one.keys} ${one.messageKey}`, one]));
  return [...seen.values()];
});

/**
 * Adds a shortcut.
 * @param {string} keys such as "mod+shift+o" or "escape"; `mod` is Command on a Mac, else Control
 * @param {(event: KeyboardEvent) => unknown} handler returns false to leave the key to the browser
 * @param {string} messageKey what it does, for the list
 * @returns {() => void} removes it
 */
export function shortcut(keys, handler, messageKey) {
  const one = { keys, handler, messageKey };
  registered.value = [...registered.peek(), one];
  return () => {
    registered.value = registered.peek().filter((other) => other !== one);
  };
}

/** Returns whether a key press is that of a shortcut. */
function fits(event, keys) {
  const parts = keys.split("+");
  const wanted = { mod: parts.includes("mod"), shift: parts.includes("shift"), alt: parts.includes("alt") };
  const hasMod = IS_MAC ? event.metaKey : event.ctrlKey;
  const hasOther = IS_MAC ? event.ctrlKey : event.metaKey;
  if (hasMod !== wanted.mod || event.altKey !== wanted.alt || hasOther) return false;
  const key = parts.at(-1);
  const hasKey = event.key.toLowerCase() === key || event.code.toLowerCase() === `key${key}`;
  // A punctuation mark may need Shift on the reader's keyboard.
  return hasKey && (event.shiftKey === wanted.shift || !/^[a-z]/.test(key));
}

addEventListener("keydown", (event) => {
  if (!enabled.value || event.defaultPrevented || isComposing(event)) return;
  for (const one of [...registered.peek()].reverse()) {
    if (!fits(event, one.keys)) continue;
    if (one.handler(event) === false) continue;
    event.preventDefault();
    return;
  }
});

/** Returns the names of the keys of a shortcut, as this kind of machine writes them. @param {string} keys */
export function keyNames(keys) {
  const names = IS_MAC ? { mod: "⌘", shift: "⇧", alt: "⌥" } : { mod: "Ctrl", shift: "Shift", alt: "Alt" };
  const others = { escape: "Esc", arrowup: "↑", arrowdown: "↓", enter: "Enter" };
  return keys.split("+").map((key) => names[key] ?? others[key] ?? key.toUpperCase());
}
