/**
 * Shows a Markdown text in an element, block by block: what is complete is never touched again, the end is shown once a
 * frame while it grows.
 */
import { completeCount, readAgain, readBlocks } from "#app/render/blocks";
import { kindOf } from "#app/render/block_kinds";
import { appendCode, isOpenFence } from "#app/render/code";
import { MessageLexer, normalLabel } from "#app/render/lexer";
import { MAX_DEFINITIONS, MAX_TEXT_CHARACTERS } from "#app/render/limits";
import { completeTail } from "#app/render/tail";
import { make, patch, replace } from "#app/render/tree";

/** Part of the time that showing, layout included, may take while a text grows: a costly end is shown less often. */
const SHARE = 0.4;

/** What the elements of one message share. */
class MessageView {
  lexer = new MessageLexer();
  streaming = false;
  formulas = 0;
  onSource = undefined;
  kindOf = kindOf;
  notes = new Map();
  actions = new WeakMap();

  /** Makes a button do something. */
  act(button, run) {
    this.actions.set(button, run);
  }

  keepFootnote(label, node) {
    this.notes.set(normalLabel(label), node);
  }

  showFootnote(label) {
    const note = this.notes.get(normalLabel(label));
    note?.scrollIntoView({ block: "nearest" });
    note?.focus({ preventScroll: true });
  }
}

/** Shows one text; `createRenderer` makes one. */
class MessageRenderer {
  text = "";
  /** Blocks with their elements, in the order of the text. */
  made = [];
  /** How many blocks are complete, and how many characters of the text they are. */
  complete = 0;
  offset = 0;
  frame = 0;
  timer = 0;
  nextAt = 0;

  constructor(element, options) {
    this.element = element;
    this.view = new MessageView();
    this.view.onSource = options.onSource;
    this.setSources(options.sources);
    this.click = (event) => this.view.actions.get(event.target.closest("button"))?.();
    element.addEventListener("click", this.click);
  }

  /** Shows a text: at once, or with the next frame while it grows. */
  update(text, { streaming = false, sources } = {}) {
    if (sources !== undefined) this.setSources(sources);
    this.wanted = text;
    this.view.streaming = streaming;
    if (streaming) this.schedule();
    else this.flush();
  }

  destroy() {
    this.cancel();
    this.element.removeEventListener("click", this.click);
    this.element.replaceChildren();
    this.made = [];
  }

  setSources(sources) {
    const count = Array.isArray(sources) ? sources.length : Number(sources ?? 0);
    if (count === this.view.lexer.sources) return;
    this.view.lexer.sources = count;
    this.remake(({ raw }) => /\[\d/.test(raw));
  }

  schedule() {
    if (this.frame || this.timer) return;
    const wait = this.nextAt - performance.now();
    if (wait > 0) this.timer = setTimeout(() => this.request(), wait);
    else this.request();
  }

  request() {
    this.timer = 0;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      // What the last showing took is known only after its frame.
      if (performance.now() < this.nextAt) this.schedule();
      else this.flush();
    });
  }

  cancel() {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.timer);
    this.frame = 0;
    this.timer = 0;
  }

  flush() {
    this.cancel();
    const begin = performance.now();
    this.show(normalised(this.wanted, this.view.streaming));
    // A task after the frame knows what style and layout took.
    setTimeout(() => {
      this.nextAt = begin + (performance.now() - begin) / SHARE;
    });
  }

  show(text) {
    const grows = text.length >= this.text.length && text.startsWith(this.text);
    const added = grows ? text.slice(this.text.length) : "";
    if (grows && this.view.streaming && this.appendToFence(text, added)) return;
    if (!grows) this.restart();
    this.text = text;
    const shown = text.slice(this.offset, MAX_TEXT_CHARACTERS);
    const read = this.view.streaming ? completeTail(shown) : shown;
    const blocks = readBlocks(this.view.lexer, read, this.made[this.complete - 1]?.token);
    if (text.length > MAX_TEXT_CHARACTERS) blocks.push(plainBlock(text.slice(MAX_TEXT_CHARACTERS)));
    const count = this.view.streaming ? completeCount(blocks) : blocks.length;
    this.define(blocks.slice(0, count));
    this.place(blocks);
    this.finish(blocks.slice(0, count), shown);
  }

  /** Adds to an open block of code at the end without reading it again. */
  appendToFence(text, added) {
    const last = this.made.at(-1);
    if (!last?.shared || last.shared.isPainted || last.token.raw.length !== this.text.length - this.offset) return false;
    if (this.made.length !== this.complete + 1 || text.length > MAX_TEXT_CHARACTERS) return false;
    const line = this.text.slice(this.text.lastIndexOf("\n") + 1) + added;
    if (/[`~]/.test(line) || !this.text.includes("\n", this.offset) || !isOpenFence(last.token)) return false;
    if (last.shared.source !== "" && !last.token.raw.endsWith(last.shared.source)) return false;
    appendCode(last.shared, added);
    last.token = { ...last.token, raw: last.token.raw + added, text: last.token.text + added };
    this.text = text;
    return true;
  }

  restart() {
    this.complete = 0;
    this.offset = 0;
    this.view.lexer.tokens.links = Object.create(null);
    this.view.lexer.footnotes = new Set();
  }

  /** Takes the definitions of complete blocks, and makes blocks anew that waited for them. */
  define(blocks) {
    const { links } = this.view.lexer.tokens;
    const { footnotes } = this.view.lexer;
    const fresh = new Set();
    for (const block of blocks) {
      if (Object.keys(links).length + footnotes.size >= MAX_DEFINITIONS) break;
      if (block.type === "def" && !links[block.tag]) {
        links[block.tag] = { href: block.href, title: block.title };
        fresh.add(block.tag);
      } else if (block.type === "footnote" && !footnotes.has(`^${normalLabel(block.label)}`)) {
        footnotes.add(`^${normalLabel(block.label)}`);
        fresh.add(`^${normalLabel(block.label)}`);
      }
    }
    if (fresh.size > 0) this.remake(({ missing }) => missing && !missing.isDisjointFrom(fresh));
  }

  remake(isConcerned) {
    this.made = this.made.map((made, index, all) => {
      if (!isConcerned({ raw: made.token.raw, missing: made.missing })) return made;
      const token = readAgain(this.view.lexer, made.token, all[index - 1]?.token);
      return this.noting(() => replace(made, token, this.view));
    });
  }

  /** Puts the elements of the blocks behind those that are complete. */
  place(blocks) {
    const shown = blocks.filter(({ type }) => type !== "space" && type !== "def");
    const kept = this.made.slice(0, this.complete);
    const before = this.made.slice(this.complete);
    shown.forEach((token, index) => kept.push(this.noting(() => this.step(before[index], token))));
    for (const made of before.slice(shown.length)) made.node.remove();
    this.made = kept;
  }

  step(before, token) {
    if (before) return patch(before, token, this.view);
    const made = make(token, this.view);
    this.element.append(made.node);
    return made;
  }

  /** Makes a block and keeps the labels that it found no definition of. */
  noting(act) {
    const missing = new Set();
    this.view.lexer.missing = missing;
    const made = act();
    if (missing.size > 0) made.missing = missing.union(made.missing ?? new Set());
    return made;
  }

  finish(complete, shown) {
    const length = complete.reduce((sum, { raw }) => sum + raw.length, 0);
    if (!shown.startsWith(complete.map(({ raw }) => raw).join(""))) return;
    this.offset += length;
    this.complete += complete.filter(({ type }) => type !== "space" && type !== "def").length;
  }
}

/**
 * Returns what shows growing texts in an element.
 * @param {HTMLElement} element
 * @param {{sources?: object[] | number, onSource?: (number: number) => void}} [options]
 * @returns {{update(text: string, options?: {streaming?: boolean, sources?: object[] | number}): void, destroy(): void}}
 */
export function createRenderer(element, options = {}) {
  return new MessageRenderer(element, options);
}

/**
 * Shows a text in an element.
 * @param {HTMLElement} element
 * @param {string} text
 * @param {{streaming?: boolean, sources?: object[] | number, onSource?: (number: number) => void}} [options]
 */
export function renderMessage(element, text, options = {}) {
  const renderer = createRenderer(element, options);
  renderer.update(text, options);
  return renderer;
}

function plainBlock(text) {
  return { type: "plain", raw: text, text };
}

/** Returns a text with "\n" as its line ends; half a line end at the end of a growing text waits. */
function normalised(text, isGrowing) {
  if (!text.includes("\r")) return text;
  return (isGrowing && text.endsWith("\r") ? text.slice(0, -1) : text).replace(/\r\n?/g, "\n");
}
