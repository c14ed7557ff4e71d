/**
 * Buttons and icons.
 */
import { html, useEffect, useRef, useState } from "#app/core/html";
import { t } from "#app/core/messages";

const SPRITE = import.meta.resolve("#icons/sprite.svg");
const COPIED_MS = 2000;

/** An icon of the sprite; it is hidden from screen readers. @param {{name: string, size?: number}} props */
export function Icon({ name, size = 18, class: more = "" }) {
  return html`<svg class="icon ${more}" width=${size} height=${size} aria-hidden="true"><use href="${SPRITE}#${name}" /></svg>`;
}

/**
 * A button with a text.
 * @param {{kind?: "primary" | "danger" | "plain", icon?: string, busy?: boolean}} props and those of `button`
 */
export function Button({ kind = "", icon, busy = false, disabled, class: more = "", type = "button", children, ...rest }) {
  return html`<button type=${type} class="button ${kind} ${more}" disabled=${disabled || busy} aria-busy=${busy} ...${rest}>
    ${icon && html`<${Icon} name=${icon} />`}${children}
  </button>`;
}

/**
 * A button with an icon alone; its label is what screen readers say and what is shown on hover.
 * @param {{icon: string, label: string, pressed?: boolean}} props and those of `button`
 */
export function IconButton({ icon, label, pressed, size, class: more = "", type = "button", children, ...rest }) {
  if (!label) throw new Error(`the button with the icon ${icon} has no label`);
  return html`<button type=${type} class="icon-button ${more}" aria-label=${label} title=${label} aria-pressed=${pressed}
    ...${rest}><${Icon} name=${icon} size=${size} />${children}</button>`;
}

/** A button that copies a text. @param {{text: string | (() => string), label?: string}} props */
export function CopyButton({ text, label, class: more }) {
  const [isCopied, setCopied] = useState(false);
  const timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async () => {
    await navigator.clipboard.writeText(typeof text === "function" ? text() : text);
    setCopied(true);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setCopied(false), COPIED_MS);
  };
  const said = isCopied ? t("common.copied") : (label ?? t("common.copy"));
  return html`<${IconButton} icon=${isCopied ? "check" : "clipboard"} label=${said} class=${more} onClick=${copy} />`;
}
