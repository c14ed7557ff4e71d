/**
 * Completes the end of a text that still grows, so that half a mark is not shown as characters that vanish.
 */
import { MAX_TAIL_CHARACTERS } from "#app/render/limits";

const FENCE_LINE = /^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,}|~{3,})/;
const HALF_LINE = /\n[ \t]*(?:-{1,2}|=|`{1,2}|~{1,2}|#{1,6}|[*+]|\d{1,9}[.)]?)[ \t]*$/;
const HALF_FENCE = /\n[ \t>]*(`{1,}|~{1,})[ \t]*$/;
const LINK_END = /^\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?:\s+"[^"\n]*")?\s*\)/;
const HALF_LINK = /^\]\([^\n)]*$/;
const PAIRS = new Map([["\\(", "\\)"], ["\\[", "\\]"], ["$$", "$$"]]);
const MARK = /\\[\s\S]|\$\$|`+|\*+|_+|~~|!?\[|\]/g;
const EMPTY_MARK = /(?:^|(?<=\s))(?:[*_]{1,3}|~{1,2}|!?\[)$/;
const SPACE = /\s/;
const WORD = /[\p{L}\p{N}]/u;

/**
 * Returns a text with its last paragraph completed.
 * @param {string} text from the beginning of a block
 */
export function completeTail(text) {
  if (isInFence(text)) return text.replace(HALF_FENCE, "\n");
  const whole = text.replace(HALF_LINE, "\n");
  const begin = whole.lastIndexOf("\n\n") + 1;
  if (whole.length - begin > MAX_TAIL_CHARACTERS) return whole;
  return whole.slice(0, begin) + completeParagraph(whole.slice(begin));
}

function isInFence(text) {
  let open = "";
  for (const line of text.split("\n")) {
    const fence = FENCE_LINE.exec(line)?.[1];
    if (!fence) continue;
    if (!open) open = fence;
    else if (fence[0] === open[0] && fence.length >= open.length && line.trimEnd().endsWith(fence)) open = "";
  }
  return open !== "";
}

/** Reads the marks of one paragraph from left to right. */
class TailReader {
  constructor(text) {
    this.text = text;
    this.open = [];
  }

  complete() {
    MARK.lastIndex = 0;
    for (let found = MARK.exec(this.text); found; found = MARK.exec(this.text)) {
      const next = this.read(found[0], found.index);
      if (typeof next === "string") return next;
      MARK.lastIndex = next;
    }
    return this.closed();
  }

  /** Returns where to go on, or the completed text. */
  read(mark, index) {
    const end = index + mark.length;
    if (PAIRS.has(mark)) return this.pair(mark, PAIRS.get(mark), index);
    if (mark[0] === "\\") return end;
    if (mark[0] === "`") return this.code(mark, index);
    if (mark === "]") return this.bracketEnd(index);
    if (mark.endsWith("[")) this.open.push({ mark, index });
    else this.emphasis(mark, index);
    return end;
  }

  pair(opener, closer, index) {
    const end = this.text.indexOf(closer, index + opener.length);
    return end < 0 ? this.closed(index) : end + closer.length;
  }

  code(mark, index) {
    for (let at = index + mark.length; at < this.text.length; at += 1) {
      const run = this.text[at] === "`" ? /^`+/.exec(this.text.slice(at))[0].length : 0;
      if (run === mark.length) return at + run;
      at += run;
    }
    const inside = this.text.slice(index + mark.length).replace(/`+$/, "");
    if (!inside.trim()) return this.closed(index);
    this.text = this.text.slice(0, index + mark.length) + inside + mark;
    return this.closed();
  }

  bracketEnd(index) {
    const opener = this.open.findLastIndex(({ mark }) => mark.endsWith("["));
    if (opener < 0) return index + 1;
    const rest = this.text.slice(index);
    const link = LINK_END.exec(rest);
    const begin = this.open[opener];
    if (link || !HALF_LINK.test(rest)) {
      this.open.length = opener;
      return index + (link?.[0].length ?? 1);
    }
    if (begin.mark === "![") return this.closed(begin.index);
    this.text = this.text.slice(0, begin.index) + this.text.slice(begin.index + 1, index);
    this.open.splice(opener, 1);
    return this.closed();
  }

  emphasis(mark, index) {
    const before = this.text[index - 1] ?? " ";
    const after = this.text[index + mark.length] ?? "";
    if (mark.length < 2 && WORD.test(before) && WORD.test(after)) return;
    const last = this.open.at(-1);
    if (last?.mark === mark && !SPACE.test(before)) this.open.pop();
    else if (after !== "" && !SPACE.test(after)) this.open.push({ mark, index });
  }

  /** Returns the text up to an index, with what is open closed; an empty mark at its end is left out. */
  closed(end = this.text.length) {
    const picture = this.open.find(({ mark, index }) => mark === "![" && index < end);
    const until = picture ? picture.index : end;
    this.open = this.open.filter(({ index }) => index < until);
    let text = this.text.slice(0, until);
    for (const { mark, index } of this.open.toReversed()) {
      if (mark === "[") text = text.slice(0, index) + text.slice(index + 1);
    }
    return text.replace(EMPTY_MARK, "").trimEnd() + this.closers();
  }

  closers() {
    return this.open.filter(({ mark }) => !mark.endsWith("[")).map(({ mark }) => mark).reverse().join("");
  }
}

function completeParagraph(text) {
  return new TailReader(text).complete();
}
