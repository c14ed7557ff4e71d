/**
 * Elements of what stands inside a paragraph.
 */
import { t } from "#app/core/messages";
import { element } from "#app/render/elements";
import { decodeEntities } from "#app/render/entities";
import { makePicture } from "#app/render/pictures";
import { safeLink } from "#app/render/links";
import { showFormula } from "#app/render/mathematics";

const parts = (token) => token.tokens;
const keep = () => true;
const marked = (name) => ({ make: () => around(element(name)), parts, change: keep });

function around(node) {
  return { node, inner: node };
}

function changeText(made, token) {
  const text = decodeEntities(token.text);
  if (made.node.data === text) return;
  if (text.startsWith(made.node.data)) made.node.appendData(text.slice(made.node.data.length));
  else made.node.data = text;
}

const text = { make: (token) => ({ node: document.createTextNode(decodeEntities(token.text)) }), change: changeText };

const link = {
  make(token) {
    const address = safeLink(decodeEntities(token.href));
    if (!address) return { ...around(element("span")), href: token.href };
    const node = element("a", { href: address.href, rel: "noopener noreferrer", title: address.href });
    if (address.protocol !== "mailto:") node.target = "_blank";
    return { ...around(node), href: token.href };
  },
  parts,
  change: (made, token) => made.href === token.href,
};

const source = {
  make(token, view) {
    const node = element("span", { className: "sources" });
    for (const number of token.numbers) {
      const button = element("button", { type: "button", className: "source-mark" }, String(number));
      button.ariaLabel = t("render.source", { number });
      view.act(button, () => view.onSource?.(number));
      node.append(button);
    }
    return { node };
  },
};

const footnoteMark = {
  make(token, view) {
    const button = element("button", { type: "button", className: "footnote-mark" }, token.label);
    button.ariaLabel = t("render.footnote", { label: token.label });
    view.act(button, () => view.showFootnote(token.label));
    const node = element("sup");
    node.append(button);
    return { node };
  },
};

const checkbox = {
  make(token) {
    const node = element("input", { type: "checkbox", checked: token.checked, disabled: true, className: "checkbox" });
    node.ariaLabel = t(token.checked ? "render.done" : "render.toDo");
    return { node };
  },
};

const formula = {
  make(token, view) {
    const node = element("span", { className: token.display ? "formula displayed" : "formula", dir: "ltr" });
    if (token.display) node.tabIndex = 0;
    showFormula(node, token, view);
    return { node };
  },
};

/** What each type of an inline token becomes. */
export const INLINE_KINDS = {
  text,
  escape: text,
  strong: marked("strong"),
  em: marked("em"),
  del: marked("del"),
  br: { make: () => ({ node: element("br") }) },
  codespan: { make: (token) => ({ node: element("code", { dir: "ltr" }, token.text) }) },
  link,
  image: { make: (token, view) => ({ node: makePicture(token, view) }) },
  source,
  footnote_mark: footnoteMark,
  checkbox,
  formula,
};
