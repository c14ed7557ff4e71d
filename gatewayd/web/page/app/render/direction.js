/**
 * The direction of a block, which its first strong letter outside code and formulas decides.
 */
const LOOKED_AT = 1_000;
const SKIPPED = /`+[^`]*`+|\$\$[^$]*\$\$|\\\(.*?\\\)|\\\[[\s\S]*?\\\]|\]\([^)\s]*\)|https?:\/\/\S+/g;
const LETTER = /\p{L}/u;
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/**
 * Returns "ltr" or "rtl", or "" for a text without letters.
 * @param {string} text
 */
export function directionOf(text) {
  const letter = LETTER.exec(text.slice(0, LOOKED_AT).replace(SKIPPED, " "));
  if (!letter) return "";
  return RIGHT_TO_LEFT.test(letter[0]) ? "rtl" : "ltr";
}

/** Gives an element the direction of a text. @param {HTMLElement} element @param {string} text */
export function setDirection(element, text) {
  const direction = directionOf(text);
  if (direction && element.dir !== direction) element.dir = direction;
  else if (!direction) element.removeAttribute("dir");
}
