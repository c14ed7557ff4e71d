/**
 * Splits a text into blocks, window after window, so that the work grows as the text does.
 */
import { MAX_BLOCK_CHARACTERS, MAX_LONG_BLOCK_CHARACTERS, WINDOW_CHARACTERS } from "#app/render/limits";

const LONG = new Set(["code", "list", "table"]);
const CLOSED_BY_BLANK = new Set(["paragraph", "table"]);
const GROWTH = 2;

/**
 * Returns the blocks of a text, whose `raw` texts together are the text.
 *
 * A block is complete when another one has begun after it; one that fills its window is read again with a larger one. A
 * list that fills it is split between its items, a table beyond the limit between its rows; any other block beyond its
 * limit is "plain".
 * @param {import("#app/render/lexer").MessageLexer} lexer
 * @param {string} text
 * @param {object} [before] the block before the text
 * @returns {object[]}
 */
export function readBlocks(lexer, text, before) {
  const blocks = [];
  let position = 0;
  let size = WINDOW_CHARACTERS;
  while (position < text.length) {
    const rest = text.length - position;
    const window = rest <= size ? text.slice(position) : cut(text, position, size);
    const found = withHead(lexer, window, blocks.at(-1) ?? before);
    const possible = rest <= size ? found : completeOf(found, window, size);
    // How a block is split must depend on its own beginning alone, not on a larger window of the block before.
    const complete = size > WINDOW_CHARACTERS ? firstOf(possible) : possible;
    for (const block of complete) position += block.raw.length;
    size = complete.length > 0 ? WINDOW_CHARACTERS : size * GROWTH;
    blocks.push(...continued(complete, blocks.at(-1) ?? before));
  }
  return blocks;
}

/** Reads one complete block again. @param {object} block @param {object} [before] the block before it */
export function readAgain(lexer, block, before) {
  if (block.type === "plain") return block;
  const [token] = continued(withHead(lexer, block.raw, before), before);
  return { ...token, head: block.head, isOpen: block.isOpen, raw: block.raw };
}

/** Returns how many blocks at the beginning no further text can change. @param {object[]} blocks */
export function completeCount(blocks) {
  const last = lastIndex(blocks);
  return last > 0 && blocks[last].raw.includes("\n") ? last : Math.max(last - 1, 0);
}

/** Reads a window; the rows after a split table are read below its head. */
function withHead(lexer, window, before) {
  if (before?.type !== "table" || !before.isOpen) return lexer.blocks(window);
  const { head } = before;
  const [table, ...others] = lexer.blocks(head + window);
  const raw = table.raw.slice(head.length);
  return raw.trim() ? [{ ...table, raw, head }, ...others] : [{ type: "space", raw }, ...others];
}

function firstOf(blocks) {
  const first = blocks.findIndex(({ type }) => type !== "space");
  const second = blocks.findIndex(({ type }, index) => index > first && type !== "space");
  return second < 0 ? blocks : blocks.slice(0, second);
}

function cut(text, position, size) {
  const window = text.slice(position, position + size);
  const end = window.lastIndexOf("\n") + 1;
  return end > 0 ? window.slice(0, end) : window;
}

function completeOf(found, window, size) {
  const last = lastIndex(found);
  if (last > 0) return found.slice(0, last);
  const block = found[last];
  if (!block) return found;
  // The line after it fills the window.
  if (CLOSED_BY_BLANK.has(block.type) && found.length > last + 1) return found;
  if (block.type === "list" && block.items.length > 1) return [withoutLastItem(block)];
  if (block.type === "table" && block.rows.length > 1 && size >= MAX_BLOCK_CHARACTERS) return [withoutLastRow(block)];
  const limit = LONG.has(block.type) ? MAX_LONG_BLOCK_CHARACTERS : MAX_BLOCK_CHARACTERS;
  return size >= limit ? [{ type: "plain", raw: window, text: window }] : [];
}

function lastIndex(blocks) {
  return blocks.findLastIndex((block) => block.type !== "space");
}

function withoutLastItem(list) {
  const items = list.items.slice(0, -1);
  return { ...list, items, raw: items.map((item) => item.raw).join(""), isOpen: true };
}

function withoutLastRow(table) {
  const head = table.head ?? table.raw.split("\n", 2).map((line) => `${line}\n`).join("");
  const end = table.raw.trimEnd().lastIndexOf("\n") + 1;
  return { ...table, head, rows: table.rows.slice(0, -1), raw: table.raw.slice(0, end), isOpen: true };
}

/** Marks the list that goes on after a split one. */
function continued(complete, before) {
  const [first, ...others] = complete;
  if (!before?.isOpen || first?.type !== "list" || first.ordered !== before.ordered) return complete;
  return [{ ...first, start: first.ordered ? before.start + before.items.length : "", isContinued: true }, ...others];
}
