/**
 * How much of a text is laid out. What is over a limit is shown as it was written, so that no text holds the page.
 */

/** Characters of a message that are laid out; the rest is shown as one plain text. */
export const MAX_TEXT_CHARACTERS = 1_000_000;
/** Characters of one paragraph, heading or cell whose marks are read. */
export const MAX_INLINE_CHARACTERS = 16_000;
/** Characters in one paragraph that may begin or end a mark: each may be compared with each other one. */
export const MAX_INLINE_MARKS = 1_500;
/** Characters that the lexer reads at once: some of its rules look through all that follows, line for line. */
export const WINDOW_CHARACTERS = 8_000;
/** Characters of one block, and of one list, table or code block; what is longer is shown as it was written. */
export const MAX_BLOCK_CHARACTERS = 16_000;
export const MAX_LONG_BLOCK_CHARACTERS = 256_000;
/** Characters of a heading whose underline is looked for. */
export const MAX_HEADING_CHARACTERS = 400;
/** Levels of quotes and lists inside each other. */
export const MAX_BLOCK_DEPTH = 12;
/** Levels of emphasis and links inside each other. */
export const MAX_INLINE_DEPTH = 12;
/** Cells of one table. */
export const MAX_CELLS = 20_000;
/** Definitions of links and of footnotes in one message. */
export const MAX_DEFINITIONS = 200;
/** Characters of code that are highlighted, and characters of its longest line. */
export const MAX_HIGHLIGHT_CHARACTERS = 30_000;
export const MAX_HIGHLIGHT_LINE = 2_000;
/** Characters of a formula, and levels of its braces. */
export const MAX_FORMULA_CHARACTERS = 4_000;
export const MAX_FORMULA_DEPTH = 40;
/** Formulas of one message. */
export const MAX_FORMULAS = 500;
/** Characters at the end of a text whose open marks are closed while it grows. */
export const MAX_TAIL_CHARACTERS = 2_000;
