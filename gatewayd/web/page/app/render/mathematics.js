/**
 * Formulas as MathML: Temml is loaded when the first formula needs it, and DOMPurify is the gate of what it makes.
 */
import { later, once } from "#app/render/later";
import { MAX_FORMULAS, MAX_FORMULA_DEPTH } from "#app/render/limits";

const GATE = {
  USE_PROFILES: { mathMl: true },
  FORBID_TAGS: ["annotation", "annotation-xml", "maction", "style", "a"],
  FORBID_ATTR: ["style", "id", "name", "href", "xlink:href"],
  ALLOW_ARIA_ATTR: false,
  ALLOW_DATA_ATTR: false,
};
const OPTIONS = { trust: false, maxExpand: 500, maxSize: [20, 400], strict: false, throwOnError: true, annotate: false };

const library = once(() => Promise.all([import("temml"), import("dompurify")]));

/**
 * Shows a formula in a node: its source at once, then its typeset form. A wrong one stays as it was written.
 * @param {HTMLElement} node
 * @param {{text: string, raw: string, display: boolean}} token
 * @param {{formulas: number}} view counts the formulas of the message
 */
export function showFormula(node, token, view) {
  node.append(token.raw.trim());
  view.formulas += 1;
  if (view.formulas <= MAX_FORMULAS && depthOf(token.text) <= MAX_FORMULA_DEPTH) later(typeset(node, token));
}

async function typeset(node, token) {
  const [{ default: temml }, { default: purifier }] = await library();
  const markup = markupOf(temml, token);
  if (markup === null) {
    node.classList.add("wrong");
    return;
  }
  node.replaceChildren(purifier.sanitize(markup, { ...GATE, RETURN_DOM_FRAGMENT: true }));
  node.setAttribute("aria-label", token.text.trim());
  node.setAttribute("role", "math");
}

/** Returns the MathML of a formula without style attributes, which the policy of the page refuses; null if wrong. */
function markupOf(temml, token) {
  try {
    const markup = temml.renderToString(token.text, { ...OPTIONS, displayMode: token.display });
    return markup.replace(/ style="[^"]*"/g, "");
  } catch (error) {
    // Besides its ParseError: a formula may be nested beyond the stack.
    if (error instanceof temml.ParseError || error instanceof RangeError) return null;
    throw error;
  }
}

function depthOf(text) {
  let depth = 0;
  let deepest = 0;
  for (const character of text) {
    if (character === "{") depth += 1;
    else if (character === "}") depth -= 1;
    deepest = Math.max(deepest, depth);
  }
  return Math.max(deepest, text.split("\\left").length, text.split("\\begin").length);
}
