/**
 * The parts of a message: text, reasoning, tool calls; pure.
 *
 * The gateway renders reasoning and tool calls as `<details type="...">` elements inside the text of an
 * answer. They become parts here, and never markup.
 */

const OPENING = /<details type="(reasoning|tool_calls|code_interpreter)"((?: [a-z_]+="[^"]*")*)>\n?/g;
const CLOSING = "</details>";
const SUMMARY = /^<summary>[^<]*<\/summary>\n?/;
const ATTRIBUTE = / ([a-z_]+)="([^"]*)"/g;
const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', "#x27": "'", "#39": "'" };

/**
 * A part of an answer.
 * @typedef {{kind: "text"|"reasoning"|"tool", text: string, isDone: boolean, attributes: Record<string, string>}} Part
 */

/**
 * Return the parts of the content of an answer.
 * @param {string|object[]} content text, or a list of content parts
 * @returns {Part[]}
 */
export function partsOf(content) {
  const text = plainText(content);
  const parts = [];
  let position = 0;
  OPENING.lastIndex = 0;
  for (let found = OPENING.exec(text); found !== null; found = OPENING.exec(text)) {
    addText(parts, text.slice(position, found.index));
    const closing = text.indexOf(CLOSING, OPENING.lastIndex);
    const end = closing < 0 ? text.length : closing;
    parts.push(detailOf(found[1], found[2], text.slice(OPENING.lastIndex, end)));
    position = closing < 0 ? end : end + CLOSING.length;
    OPENING.lastIndex = position;
  }
  addText(parts, text.slice(position));
  return parts;
}

/**
 * Return the text of a content that people wrote or read: without reasoning and tool calls.
 * @param {string|object[]} content
 * @returns {string}
 */
export function readableText(content) {
  return partsOf(content)
    .filter((part) => part.kind === "text")
    .map((part) => part.text)
    .join("\n\n");
}

/**
 * Return the text of a content; of a list, the texts of its parts.
 * @param {string|object[]|undefined} content
 * @returns {string}
 */
export function plainText(content) {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part) => (typeof part?.text === "string" ? part.text : "")).filter(Boolean).join("\n\n");
}

/**
 * Return the last fenced code block of a text, or null.
 * @param {string} text
 * @returns {string|null}
 */
export function lastCodeBlock(text) {
  const blocks = [...text.matchAll(/^(`{3,}|~{3,})[^\n]*\n([\s\S]*?)^\1[ \t]*$/gm)];
  return blocks.at(-1)?.[2] ?? null;
}

function addText(parts, text) {
  const trimmed = text.trim();
  if (trimmed) parts.push({ kind: "text", text: trimmed, isDone: true, attributes: {} });
}

function detailOf(type, attributeText, body) {
  const attributes = {};
  for (const [, name, value] of attributeText.matchAll(ATTRIBUTE)) attributes[name] = unescapeText(value);
  const inner = unescapeText(body.replace(SUMMARY, ""));
  const lines = inner.trim().split("\n").map((line) => line.replace(/^> ?/, ""));
  return {
    kind: type === "reasoning" ? "reasoning" : "tool",
    text: lines.join("\n"),
    isDone: attributes.done !== "false",
    attributes,
  };
}

function unescapeText(text) {
  return text.replace(/&(amp|lt|gt|quot|#x27|#39);/g, (_, name) => ENTITIES[name]);
}
