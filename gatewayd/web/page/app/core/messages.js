/**
 * Texts of the page in the language of the reader, and numbers, sizes and times as that language writes them.
 */
import { batch, computed, signal } from "@preact/signals";
import { chosenLanguage, rememberForServer } from "#app/core/preferences";

/** Languages of the page, each with its own name for itself. */
export const LANGUAGES = { en: "English", de: "Deutsch", ar: "العربية" };
const RIGHT_TO_LEFT = new Set(["ar"]);
const RELATIVE_UNITS = [
  ["year", 31536000],
  ["month", 2592000],
  ["week", 604800],
  ["day", 86400],
  ["hour", 3600],
  ["minute", 60],
];
const SIZE_UNITS = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"];

/** Language of the texts. */
export const language = signal(document.documentElement.lang || "en");
const words = signal({});
const rules = computed(() => new Intl.PluralRules(language.value));

/** Reads a file of texts: those of the first views, "de", or the others, "de.more". */
async function read(name) {
  const reply = await fetch(import.meta.resolve(`#language/${name}`));
  if (!reply.ok) throw new Error(`language ${name}: ${reply.status}`);
  return reply.json();
}

function show(code, texts) {
  words.value = texts;
  language.value = code;
  document.documentElement.lang = code;
  document.documentElement.dir = RIGHT_TO_LEFT.has(code) ? "rtl" : "ltr";
}

/** Loads the texts for the first paint, in the language that the server chose. */
export async function loadMessages() {
  const code = language.peek() in LANGUAGES ? language.peek() : "en";
  show(code, await read(code));
}

let others = null;

/** Loads the texts of the views that come after the first ones, once. */
export function loadOtherMessages() {
  others ??= addOthers().catch((error) => {
    others = null;
    throw error;
  });
  return others;
}

async function addOthers() {
  const code = language.peek();
  const more = await read(`${code}.more`);
  // A language that was chosen meanwhile has come whole.
  if (language.peek() === code) words.value = { ...words.peek(), ...more };
}

/**
 * Changes the language of the page, here and at the next visit.
 * @param {string} code one of LANGUAGES
 */
export async function setLanguage(code) {
  const [first, more] = await Promise.all([read(code), read(`${code}.more`)]);
  others = Promise.resolve();
  batch(() => show(code, { ...first, ...more }));
  chosenLanguage.value = code;
  rememberForServer("language", code);
}

/**
 * Returns the text of a key such as "common.save", with `{name}` replaced by the slot of that name.
 * @param {string} key
 * @param {Record<string, string | number>} [slots]
 * @returns {string}
 */
export function t(key, slots) {
  return fill(find(key), key, slots);
}

/** Returns whether there is a text for a key. */
export function hasText(key) {
  return find(key) !== undefined;
}

/**
 * Returns the text of a key for a count, which is the slot `{count}` too.
 * @param {string} key
 * @param {number} count
 * @param {Record<string, string | number>} [slots]
 * @returns {string}
 */
export function plural(key, count, slots) {
  const forms = find(key) ?? {};
  const text = forms[rules.value.select(count)] ?? forms.other;
  return fill(text, key, { count: formatNumber(count), ...slots });
}

function find(key) {
  return key.split(".").reduce((found, name) => (found && Object.hasOwn(found, name) ? found[name] : undefined), words.value);
}

function fill(text, key, slots = {}) {
  if (typeof text !== "string") return key;
  return text.replace(/\{(\w+)\}/g, (slot, name) => (name in slots ? String(slots[name]) : slot));
}

/** Formats a number. @param {number} value @param {Intl.NumberFormatOptions} [options] */
export function formatNumber(value, options) {
  return new Intl.NumberFormat(language.value, options).format(value);
}

/** Formats a size. @param {number} bytes */
export function formatBytes(bytes) {
  const step = Math.min(Math.floor(Math.log(Math.max(bytes, 1)) / Math.log(1000)), SIZE_UNITS.length - 1);
  const options = { style: "unit", unit: SIZE_UNITS[step], unitDisplay: "short" };
  return formatNumber(bytes / 1000 ** step, { ...options, maximumFractionDigits: step > 1 ? 1 : 0 });
}

/** Formats a date and time. @param {number} seconds since the epoch */
export function formatTime(seconds) {
  const format = new Intl.DateTimeFormat(language.value, { dateStyle: "medium", timeStyle: "short" });
  return format.format(new Date(seconds * 1000));
}

/** Formats a time by its distance from now, "2 hours ago". @param {number} seconds since the epoch */
export function formatRelative(seconds) {
  const format = new Intl.RelativeTimeFormat(language.value, { numeric: "auto" });
  const distance = seconds - Date.now() / 1000;
  const unit = RELATIVE_UNITS.find(([, length]) => Math.abs(distance) >= length);
  // What is a second short of 90 days is three months, and an hour and 50 minutes is an hour.
  return unit ? format.format(Math.trunc(Math.round((distance / unit[1]) * 10) / 10), unit[0]) : format.format(0, "second");
}

/** Joins texts as the language does, "a, b and c". @param {string[]} texts */
export function formatList(texts) {
  return new Intl.ListFormat(language.value).format(texts);
}
