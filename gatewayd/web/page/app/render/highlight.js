/**
 * Colours of code: highlight.js and its languages are loaded when the first block needs them.
 */
import { once } from "#app/render/later";
import { MAX_HIGHLIGHT_CHARACTERS, MAX_HIGHLIGHT_LINE } from "#app/render/limits";

const ALIASES = {
  "c++": "cpp", "c#": "csharp", cc: "cpp", cjs: "javascript", conf: "ini", cs: "csharp", docker: "dockerfile", golang: "go",
  h: "c", hpp: "cpp", htm: "xml", html: "xml", js: "javascript", jsx: "javascript", kt: "kotlin", make: "makefile",
  md: "markdown", mjs: "javascript", mysql: "sql", patch: "diff", pl: "perl", postgresql: "sql", ps1: "powershell",
  py: "python", python3: "python", rb: "ruby", rs: "rust", sh: "bash", svg: "xml", toml: "ini", ts: "typescript",
  tsx: "typescript", yml: "yaml", zsh: "bash", console: "shell", jsonc: "json", json5: "json",
};
const LANGUAGES = {
  bash: () => import("highlight/bash"),
  c: () => import("highlight/c"),
  cpp: () => import("highlight/cpp"),
  csharp: () => import("highlight/csharp"),
  css: () => import("highlight/css"),
  diff: () => import("highlight/diff"),
  dockerfile: () => import("highlight/dockerfile"),
  go: () => import("highlight/go"),
  ini: () => import("highlight/ini"),
  java: () => import("highlight/java"),
  javascript: () => import("highlight/javascript"),
  json: () => import("highlight/json"),
  kotlin: () => import("highlight/kotlin"),
  lua: () => import("highlight/lua"),
  makefile: () => import("highlight/makefile"),
  markdown: () => import("highlight/markdown"),
  nginx: () => import("highlight/nginx"),
  php: () => import("highlight/php"),
  powershell: () => import("highlight/powershell"),
  python: () => import("highlight/python"),
  r: () => import("highlight/r"),
  ruby: () => import("highlight/ruby"),
  rust: () => import("highlight/rust"),
  shell: () => import("highlight/shell"),
  sql: () => import("highlight/sql"),
  swift: () => import("highlight/swift"),
  typescript: () => import("highlight/typescript"),
  xml: () => import("highlight/xml"),
  yaml: () => import("highlight/yaml"),
};
const GATE = { ALLOWED_TAGS: ["span"], ALLOWED_ATTR: ["class"], ALLOW_ARIA_ATTR: false, ALLOW_DATA_ATTR: false };
const CLASSES = /^(?:hljs-[a-z_-]+|language-[a-z]+|[a-z]+_|\s)+$/;
/** Embedded languages, which a grammar asks for by name. */
const EMBEDDED = { xml: ["javascript", "css"], php: ["xml"], markdown: ["xml"], typescript: ["xml"], javascript: ["xml"] };

const library = once(() => Promise.all([import("highlight/core"), import("dompurify")]));

/** Returns the language of the name of a fence, or undefined. @param {string} name */
export function languageOf(name) {
  const plain = name.toLowerCase();
  const known = Object.hasOwn(ALIASES, plain) ? ALIASES[plain] : plain;
  return Object.hasOwn(LANGUAGES, known) ? known : undefined;
}

/**
 * Colours a complete block of code; a too large one stays plain.
 * @param {HTMLElement} node
 * @param {string} text
 * @param {string} language
 */
export async function highlight(node, text, language) {
  if (text.length > MAX_HIGHLIGHT_CHARACTERS || longestLine(text) > MAX_HIGHLIGHT_LINE) return;
  const [{ default: painter }, { default: purifier }] = await library();
  await load(painter, language);
  await idle();
  if (node.textContent !== text) return;
  node.replaceChildren(gated(purifier, painter.highlight(text, { language, ignoreIllegals: true }).value));
}

async function load(painter, language) {
  const needed = [language, ...(EMBEDDED[language] ?? [])].filter((name) => !painter.getLanguage(name));
  const modules = await Promise.all(needed.map((name) => LANGUAGES[name]()));
  needed.forEach((name, index) => painter.registerLanguage(name, modules[index].default));
}

function gated(purifier, markup) {
  const fragment = purifier.sanitize(markup, { ...GATE, RETURN_DOM_FRAGMENT: true });
  for (const node of fragment.querySelectorAll("[class]")) {
    if (!CLASSES.test(node.className)) node.removeAttribute("class");
  }
  return fragment;
}

function longestLine(text) {
  return text.split("\n").reduce((longest, line) => Math.max(longest, line.length), 0);
}

function idle() {
  return new Promise((resolve) => (window.requestIdleCallback ?? setTimeout)(resolve));
}
