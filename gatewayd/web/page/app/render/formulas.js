/**
 * Formulas in Markdown, as extensions of the lexer: $$ … $$ and \[ … \] displayed, \( … \) in the line. A single $ is
 * money.
 */
import { MAX_FORMULA_CHARACTERS } from "#app/render/limits";

const CLOSERS = new Map([["$$", "$$"], ["\\[", "\\]"], ["\\(", "\\)"]]);
const OPENER = /\$\$|\\[([]/;
const OPENER_OF_BLOCK = /\n {0,3}(?:\$\$|\\\[)/;
const BLOCK = /^ {0,3}(\$\$|\\\[)/;
const REST_OF_LINE = /^[ \t]*(?:\n|$)/;
const BLANK_LINE = /\n[ \t]*\n/;

/**
 * Returns the formula at the beginning of a text, or undefined. A formula has no blank line.
 * @param {string} text
 * @param {string} opener
 */
function formulaAt(text, opener) {
  const closer = CLOSERS.get(opener);
  const end = text.slice(0, MAX_FORMULA_CHARACTERS).indexOf(closer, opener.length);
  const source = end < 0 ? "" : text.slice(opener.length, end);
  if (!source.trim() || BLANK_LINE.test(source)) return undefined;
  return { raw: text.slice(0, end + closer.length), text: source, display: opener !== "\\(" };
}

/** Formula inside a paragraph. */
export const inlineFormula = {
  start: (text) => {
    const index = text.search(OPENER);
    return index < 0 ? undefined : index;
  },
  read: (text) => {
    const opener = text.slice(0, 2);
    const found = CLOSERS.has(opener) ? formulaAt(text, opener) : undefined;
    return found && { type: "formula", ...found };
  },
};

/** Formula with lines of its own. */
export const blockFormula = {
  start: (text) => {
    const near = text.slice(0, MAX_FORMULA_CHARACTERS);
    const index = near.search(OPENER_OF_BLOCK);
    return index < 0 ? undefined : index + 1;
  },
  read: (text) => {
    const begin = BLOCK.exec(text);
    const indent = begin ? begin[0].length - begin[1].length : 0;
    const found = begin ? formulaAt(text.slice(indent), begin[1]) : undefined;
    const rest = found && REST_OF_LINE.exec(text.slice(indent + found.raw.length, indent + found.raw.length + 200));
    if (!rest) return undefined;
    return { ...found, type: "formula_block", raw: text.slice(0, indent + found.raw.length) + rest[0] };
  },
};
