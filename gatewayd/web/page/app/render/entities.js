/**
 * Character references of HTML that people write in Markdown; others stay as they are.
 */
const NAMED = new Map(
  Object.entries({
    amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", copy: "©", reg: "®", trade: "™", hellip: "…",
    mdash: "—", ndash: "–", lsquo: "‘", rsquo: "’", ldquo: "“", rdquo: "”", laquo: "«", raquo: "»", bull: "•",
    middot: "·", deg: "°", plusmn: "±", times: "×", divide: "÷", le: "≤", ge: "≥", ne: "≠", larr: "←", uarr: "↑",
    rarr: "→", darr: "↓", euro: "€", pound: "£", yen: "¥", cent: "¢", sect: "§", para: "¶", micro: "µ", infin: "∞",
  }),
);
const REFERENCE = /&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-zA-Z]{2,8}));/g;
const REPLACEMENT = "\ufffd";
const LAST_CODE_POINT = 0x10ffff;

/** Returns a text with its character references replaced. @param {string} text */
export function decodeEntities(text) {
  if (!text.includes("&")) return text;
  return text.replace(REFERENCE, (whole, decimal, hexadecimal, name) => {
    if (name) return NAMED.get(name) ?? whole;
    return character(decimal ? Number(decimal) : parseInt(hexadecimal, 16));
  });
}

function character(code) {
  const isSurrogate = code >= 0xd800 && code <= 0xdfff;
  return code === 0 || isSurrogate || code > LAST_CODE_POINT ? REPLACEMENT : String.fromCodePoint(code);
}
