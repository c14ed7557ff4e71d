/**
 * Elements of blocks: paragraphs, headings, lists, quotes, tables, code, formulas, footnotes.
 */
import { t } from "#app/core/messages";
import { codeBlock } from "#app/render/code";
import { setDirection } from "#app/render/direction";
import { element } from "#app/render/elements";
import { INLINE_KINDS } from "#app/render/inline_kinds";

const inlineParts = (token, view) => view.lexer.inlineOf(token);
const visible = (tokens) => tokens.filter((token) => token.type !== "space" && token.type !== "def");
const directed = (made, token) => void setDirection(made.node, token.text);

function setClasses(node, names) {
  const wanted = names.filter(Boolean).join(" ");
  if (!wanted) node.removeAttribute("class");
  else if (node.className !== wanted) node.className = wanted;
}

function textBlock(name, properties = {}) {
  return {
    make(token) {
      const node = element(name, properties);
      setDirection(node, token.text);
      return { node, inner: node };
    },
    parts: inlineParts,
    change: directed,
  };
}

/** Headings begin at the second level: the first one is that of the view. */
const headings = Array.from({ length: 6 }, (_, index) => textBlock(`h${Math.min(index + 2, 6)}`));

function changeList(made, token) {
  if (made.node.localName !== (token.ordered ? "ol" : "ul")) return false;
  setClasses(made.node, [!token.loose && "tight", token.isContinued && "continued"]);
  setDirection(made.node, token.raw);
  if (token.ordered && made.node.start !== Number(token.start)) made.node.start = Number(token.start);
  return true;
}

const list = {
  make(token) {
    const node = element(token.ordered ? "ol" : "ul");
    changeList({ node }, token);
    return { node, inner: node };
  },
  parts: (token) => token.items,
  change: changeList,
};

function changeItem(made, token) {
  setClasses(made.node, [token.task && "task"]);
  setDirection(made.node, token.text);
}

const listItem = {
  make(token) {
    const node = element("li");
    changeItem({ node }, token);
    return { node, inner: node };
  },
  parts: (token) => visible(token.tokens),
  change: changeItem,
};

const blockquote = { ...textBlock("blockquote"), parts: (token) => visible(token.tokens) };

const table = {
  make() {
    const node = element("div", { className: "table-scroll", tabIndex: 0, role: "region", ariaLabel: t("render.table") });
    const inner = element("table");
    node.append(inner);
    return { node, inner };
  },
  parts: (token) => [
    { type: "table_head", raw: token.raw, rows: [token.header] },
    { type: "table_body", raw: token.raw, rows: token.rows },
  ],
  change: () => true,
};

function rowGroup(name) {
  return {
    make() {
      const node = element(name);
      return { node, inner: node };
    },
    parts: (token) => token.rows.map(rowToken),
    change: () => true,
  };
}

function rowToken(cells) {
  const raw = cells.map((cell) => `${cell.align} ${cell.text}`).join("|");
  return { type: "table_row", raw, cells: cells.map((cell) => ({ ...cell, type: "table_cell", raw: cell.text })) };
}

const tableRow = { ...rowGroup("tr"), parts: (token) => token.cells };

const tableCell = {
  make(token) {
    const node = element(token.header ? "th" : "td");
    if (token.header) node.scope = "col";
    if (token.align) node.classList.add(`align-${token.align}`);
    setDirection(node, token.text);
    return { node, inner: node, align: token.align };
  },
  parts: inlineParts,
  change: (made, token) => made.align === token.align && directed(made, token) === undefined,
};

const footnote = {
  make(token, view) {
    const node = element("div", { className: "footnote", role: "note", tabIndex: -1 });
    const inner = element("p");
    node.append(element("sup", {}, token.label), inner);
    setDirection(node, token.text);
    view.keepFootnote(token.label, node);
    return { node, inner };
  },
  parts: inlineParts,
  change: (made, token, view) => {
    if (made.token.label !== token.label) return false;
    setDirection(made.node, token.text);
    view.keepFootnote(token.label, made.node);
    return true;
  },
};

const plain = {
  make(token) {
    const node = element("p", { className: "as-written" }, token.text);
    setDirection(node, token.text);
    return { node };
  },
};

/** What each type of a block token becomes. */
const BLOCK_KINDS = {
  ...INLINE_KINDS,
  paragraph: textBlock("p"),
  blockquote,
  list,
  list_item: listItem,
  table,
  table_head: rowGroup("thead"),
  table_body: rowGroup("tbody"),
  table_row: tableRow,
  table_cell: tableCell,
  code: codeBlock,
  hr: { make: () => ({ node: element("hr") }) },
  formula_block: INLINE_KINDS.formula,
  footnote,
  plain,
};

/** Returns the kind of a token; throws for a type that has none. @param {object} token */
export function kindOf(token) {
  if (token.type === "heading") return headings[token.depth - 1];
  // Text of a list item without blank lines is a block with marks inside.
  const kind = BLOCK_KINDS[token.type === "text" && token.tokens ? "paragraph" : token.type];
  if (!kind) throw new TypeError(`no element for a token of the type ${token.type}`);
  return kind;
}
