/**
 * Blocks of code: the name of the language, copy, wrap, and colours once the block is complete.
 */
import { t } from "#app/core/messages";
import { element, iconButton } from "#app/render/elements";
import { highlight, languageOf } from "#app/render/highlight";
import { later } from "#app/render/later";

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const COPIED_MS = 2_000;
const MAX_NAME_CHARACTERS = 30;

/** Returns whether the fence of a block is open: more of its text may come. @param {{raw: string}} token */
export function isOpenFence(token) {
  const fence = FENCE.exec(token.raw)?.[1];
  if (!fence) return false;
  const last = token.raw.slice(token.raw.trimEnd().lastIndexOf("\n") + 1).trim();
  const isClosing = last.length >= fence.length && last === fence[0].repeat(last.length);
  return !(isClosing && token.raw.trimEnd().includes("\n"));
}

/** Returns the text of a block, without the line end that marked may add. @param {{text: string}} token */
function codeOf(token) {
  return token.text.replace(/\n$/, "");
}

function makeHead(name, view, copied) {
  const head = element("div", { className: "code-head" });
  const wrap = iconButton("wrap-text", t("render.wrap"));
  const copy = iconButton("clipboard", t("common.copy"));
  wrap.ariaPressed = "false";
  view.act(copy, () => copyCode(copy, copied()));
  head.append(element("span", { className: "code-language" }, name || t("render.code")), wrap, copy);
  return { head, wrap };
}

async function copyCode(button, text) {
  await navigator.clipboard.writeText(text);
  button.ariaLabel = t("common.copied");
  button.classList.add("done");
  setTimeout(() => {
    button.ariaLabel = t("common.copy");
    button.classList.remove("done");
  }, COPIED_MS);
}

function nameOf(token) {
  return (token.lang ?? "").trim().split(/[\s{,:]/, 1)[0].slice(0, MAX_NAME_CHARACTERS);
}

function paint(made, token, view) {
  const isOpen = view.streaming && isOpenFence(token);
  if (isOpen || made.isPainted) return;
  made.isPainted = true;
  const language = languageOf(nameOf(token));
  if (language) later(highlight(made.code, codeOf(token), language));
}

/** Adds a text to a block whose fence is open. @param {object} made @param {string} text */
export function appendCode(made, text) {
  made.source += text;
  made.text.appendData(text);
}

export const codeBlock = {
  make(token, view) {
    const name = nameOf(token);
    const made = { name, source: codeOf(token), isPainted: false };
    const node = element("div", { className: "code-block", dir: "ltr" });
    const { head, wrap } = makeHead(name, view, () => made.source);
    const pre = element("pre", { tabIndex: 0, role: "region" });
    pre.ariaLabel = name ? t("render.codeIn", { language: name }) : t("render.code");
    view.act(wrap, () => {
      wrap.ariaPressed = String(pre.classList.toggle("wrapped"));
    });
    made.code = element("code");
    made.text = document.createTextNode(made.source);
    made.code.append(made.text);
    pre.append(made.code);
    node.append(head, pre);
    made.node = node;
    paint(made, token, view);
    // The one object that the copy button and later changes share.
    return { node, shared: made };
  },
  change({ shared }, token, view) {
    const source = codeOf(token);
    if (shared.name !== nameOf(token) || shared.isPainted !== (shared.isPainted && source === shared.source)) return false;
    if (source.startsWith(shared.source)) appendCode(shared, source.slice(shared.source.length));
    else {
      shared.source = source;
      shared.text.data = source;
    }
    paint(shared, token, view);
    return true;
  },
};
