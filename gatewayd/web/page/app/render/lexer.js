/**
 * Markdown to a tree of tokens: marked's lexer with our limits, without HTML, with formulas, footnotes and marks of
 * sources. The marks inside a paragraph are read when it is shown, so that a long text costs what is shown of it.
 */
import { Lexer, Tokenizer, getDefaults } from "marked";
import { blockFormula, inlineFormula } from "#app/render/formulas";
import {
  MAX_BLOCK_DEPTH,
  MAX_CELLS,
  MAX_HEADING_CHARACTERS,
  MAX_INLINE_CHARACTERS,
  MAX_INLINE_DEPTH,
  MAX_INLINE_MARKS,
} from "#app/render/limits";

const MARK = /[*_~`[\]<&!\\]|https?:|www\.|@|\$\$/g;
const BREAK = /^<br\s{0,9}\/?>/i;
const FOOTNOTE = /^ {0,3}\[\^([^\]\s]{1,40})\]:[ \t]*([^\n]*(?:\n(?: {2,}|\t)[ \t]*[^\n]+)*)(?:\n|$)/;
const FOOTNOTE_MARK = /^\[\^([^\]\s]{1,40})\]/;
const SOURCE = /^\[(\d{1,3}(?:, ?\d{1,3}){0,19})\](?![(:[])/;
const FORMULA_LINE = /^ {0,3}(?:\$\$|\\\[)/m;
const BRACKET = /\[/;

class MessageTokenizer extends Tokenizer {
  depth = 0;

  html() {}

  tag(text) {
    const found = BREAK.exec(text);
    return found ? { type: "br", raw: found[0] } : undefined;
  }

  blockquote(text) {
    return this.nested(() => super.blockquote(text));
  }

  list(text) {
    return this.nested(() => super.list(text));
  }

  lheading(text) {
    const near = text.slice(0, MAX_HEADING_CHARACTERS);
    const found = super.lheading(near);
    const isWhole = found && (found.raw.length < near.length || near.length === text.length);
    return isWhole && !FORMULA_LINE.test(found.raw) ? found : undefined;
  }

  table(text) {
    const found = super.table(text);
    return found && found.header.length * (found.rows.length + 1) <= MAX_CELLS ? found : undefined;
  }

  reflink(text, links) {
    const found = super.reflink(text, links);
    if (found?.type === "text") this.lexer.noteMissing(text);
    return found;
  }

  nested(read) {
    if (this.depth >= MAX_BLOCK_DEPTH) return undefined;
    this.depth += 1;
    try {
      return read();
    } finally {
      this.depth -= 1;
    }
  }
}

const EXTENSIONS = {
  block: [(text) => blockFormula.read(text), footnoteAt],
  inline: [(text) => inlineFormula.read(text), footnoteMarkAt, sourceAt],
  startBlock: [(text) => blockFormula.start(text)],
  startInline: [(text) => inlineFormula.start(text)],
  childTokens: {},
  renderers: {},
};

/** Reads one message. `links` and `footnotes` are what its blocks defined; `sources` counts its sources. */
export class MessageLexer extends Lexer {
  footnotes = new Set();
  sources = 0;
  missing = new Set();
  depth = 0;

  constructor() {
    super({ ...getDefaults(), gfm: true, breaks: true, tokenizer: new MessageTokenizer(), extensions: EXTENSIONS });
    this.tokens.links = Object.create(null);
  }

  /**
   * Returns the blocks of a text. The marks inside them are read by `inlineOf`.
   * @param {string} text with "\n" alone as line ends
   */
  blocks(text) {
    const known = this.tokens.links;
    this.tokens.links = Object.create(null);
    const blocks = this.blockTokens(text, []);
    for (const { src, tokens } of this.inlineQueue) tokens.source = src;
    this.inlineQueue = [];
    this.tokens.links = known;
    return blocks;
  }

  /** Returns the inline tokens of a block or a cell. @param {{tokens?: object[], text: string}} token */
  inlineOf(token) {
    const tokens = token.tokens ?? [];
    if (tokens.source !== undefined) {
      const { source } = tokens;
      tokens.source = undefined;
      this.inlineTokens(source, tokens);
    }
    return tokens;
  }

  inlineTokens(text, tokens = []) {
    if (this.depth >= MAX_INLINE_DEPTH || isCostly(text)) {
      tokens.push({ type: "text", raw: text, text });
      return tokens;
    }
    this.depth += 1;
    try {
      return super.inlineTokens(text, tokens);
    } finally {
      this.depth -= 1;
    }
  }

  /** Notes that a reference had no definition yet. @param {string} text it begins with the reference */
  noteMissing(text) {
    const end = text.indexOf("]");
    const label = /^\]\[([^\]]+)\]/.exec(text.slice(end, end + 300))?.[1] ?? text.slice(text.search(BRACKET) + 1, end);
    this.missing.add(normalLabel(label));
  }
}

/** Returns the form in which labels are compared (CommonMark, link reference definitions). @param {string} label */
export function normalLabel(label) {
  return label.replace(/\s+/g, " ").toLowerCase();
}

function isCostly(text) {
  if (text.length > MAX_INLINE_CHARACTERS) return true;
  let count = 0;
  MARK.lastIndex = 0;
  while (MARK.test(text)) {
    count += 1;
    if (count > MAX_INLINE_MARKS) return true;
  }
  return false;
}

function footnoteAt(text) {
  const found = FOOTNOTE.exec(text);
  if (!found || this.lexer.tokenizer.depth > 0) return undefined;
  const [raw, label, content] = found;
  return { type: "footnote", raw, label, text: content, tokens: this.lexer.inline(content) };
}

function footnoteMarkAt(text) {
  const found = FOOTNOTE_MARK.exec(text);
  if (!found) return undefined;
  const label = `^${normalLabel(found[1])}`;
  if (this.lexer.footnotes.has(label)) return { type: "footnote_mark", raw: found[0], label: found[1] };
  this.lexer.missing.add(label);
  return undefined;
}

function sourceAt(text) {
  const found = this.lexer.sources > 0 ? SOURCE.exec(text) : null;
  const numbers = found ? found[1].split(",").map(Number) : [];
  const isKnown = numbers.length > 0 && numbers.every((number) => number >= 1 && number <= this.lexer.sources);
  return isKnown && !this.lexer.state.inLink ? { type: "source", raw: found[0], numbers } : undefined;
}
