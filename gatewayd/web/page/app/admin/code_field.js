/**
 * A field for source code: a plain textarea with line numbers.
 */
import { html, useId, useMemo, useRef } from "#app/core/html";
import { t } from "#app/core/messages";
import { isComposing } from "#app/core/composing";

const INDENT = "    ";

/**
 * The field. Tab indents, Shift+Tab takes an indentation back, and after Escape both move the focus as elsewhere.
 * @param {{label: string, value: string, onInput: (value: string) => void, wrongLine?: number, fieldRef?: object}} props
 *   `wrongLine` counts from 1 and is marked
 */
export function CodeField({ label, value, onInput, wrongLine = 0, fieldRef }) {
  const id = useId();
  const own = useRef(null);
  const numbers = useRef(null);
  const leaves = useRef(false);
  const field = fieldRef ?? own;
  const lines = value.split("\n").length;
  const shownNumbers = useMemo(() => numbersOf(lines, wrongLine), [lines, wrongLine]);
  const onKeyDown = (event) => {
    if (event.key === "Escape") {
      leaves.current = true;
      return;
    }
    if (event.key === "Tab" && !leaves.current && !isComposing(event)) {
      event.preventDefault();
      indent(field.current, event.shiftKey);
    } else if (event.key !== "Shift") leaves.current = false;
  };
  return html`<div class="field">
    <label for=${id}>${label}</label>
    <div class="code-field" dir="ltr">
      <div class="code-numbers" ref=${numbers} aria-hidden="true">${shownNumbers}</div>
      <textarea id=${id} ref=${field} class="input" wrap="off" spellcheck=${false} autocapitalize="off" autocomplete="off"
        aria-describedby="${id}-help" value=${value} onKeyDown=${onKeyDown} onInput=${(event) => onInput(event.target.value)}
        onBlur=${() => (leaves.current = false)} onScroll=${(event) => (numbers.current.scrollTop = event.target.scrollTop)}></textarea>
    </div>
    <p class="help" id="${id}-help">${t("admin.plugins.codeHelp")}</p>
  </div>`;
}

/** Returns the numbers as few texts, since a source may have very many lines. */
function numbersOf(lines, wrongLine) {
  const range = (first, last) => Array.from({ length: Math.max(0, last - first + 1) }, (_, place) => `${first + place}\n`).join("");
  if (wrongLine < 1 || wrongLine > lines) return range(1, lines);
  return html`${range(1, wrongLine - 1)}<span class="wrong">${wrongLine}</span>${range(wrongLine + 1, lines)}`;
}

/** Indents the lines of the selection by one step, or takes one step back. */
function indent(field, isBack) {
  const { value, selectionStart, selectionEnd } = field;
  if (!isBack && selectionStart === selectionEnd) {
    insert(field, INDENT);
    return;
  }
  const first = value.lastIndexOf("\n", selectionStart - 1) + 1;
  const lines = value.slice(first, selectionEnd).split("\n");
  const changed = lines.map((line) => (isBack ? line.replace(/^(?: {1,4}|\t)/, "") : INDENT + line)).join("\n");
  field.setSelectionRange(first, selectionEnd);
  insert(field, changed);
  field.setSelectionRange(first, first + changed.length);
}

/** Replaces the selection so that the browser can undo it. */
function insert(field, text) {
  if (text !== "" && document.execCommand("insertText", false, text)) return;
  field.setRangeText(text, field.selectionStart, field.selectionEnd, "end");
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

/** Selects a line and shows it. @param {HTMLTextAreaElement} field @param {number} line counted from 1 */
export function showLine(field, line) {
  const lines = field.value.split("\n");
  const start = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  field.focus();
  field.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0));
  const height = parseFloat(getComputedStyle(field).lineHeight);
  field.scrollTop = Math.max(0, (line - 4) * height);
}
