/**
 * Short notices of what happened elsewhere.
 */
import { effect, signal } from "@preact/signals";
import { html } from "#app/core/html";
import { t } from "#app/core/messages";
import { me } from "#app/core/session";

const SHOWN_MS = 6000;
const MAX_SHOWN = 4;

const shown = signal([]);
let count = 0;

effect(() => {
  // They name chats and offer to change them.
  if (me.value === null) shown.value = [];
});

/**
 * Shows a notice; one with an action stays until it is closed.
 * @param {"info" | "success" | "warning" | "error"} kind
 * @param {string} text
 * @param {{action?: {label: string, run: () => void}}} [options]
 */
export function toast(kind, text, { action } = {}) {
  const id = ++count;
  shown.value = [...shown.peek(), { id, kind, text, action }].slice(-MAX_SHOWN);
  if (!action && kind !== "error") setTimeout(() => closeToast(id), SHOWN_MS);
}

function closeToast(id) {
  shown.value = shown.peek().filter((one) => one.id !== id);
}

/** The notices, in the corner of the page. */
export function Toasts() {
  return html`<div class="toasts" role="region" aria-label=${t("common.notices")}>
    <div role="status">${shown.value.filter((one) => one.kind !== "error").map(toastCard)}</div>
    <div role="alert">${shown.value.filter((one) => one.kind === "error").map(toastCard)}</div>
  </div>`;
}

function toastCard({ id, kind, text, action }) {
  const act = () => {
    closeToast(id);
    action.run();
  };
  return html`<div class="toast ${kind}" key=${id}>
    <p dir="auto">${text}</p>
    ${action && html`<button type="button" class="button plain" onClick=${act}>${action.label}</button>`}
    <button type="button" class="button plain" onClick=${() => closeToast(id)}>${t("common.close")}</button>
  </div>`;
}
