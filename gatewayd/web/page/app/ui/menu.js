/**
 * Menus and tips.
 */
import { html, useId, useLayoutEffect, useRef, useState } from "#app/core/html";
import { Button, Icon, IconButton } from "#app/ui/controls";

const MARGIN = 8;

/** Puts a popover under its button, or above it where there is more room; it never leaves the window. */
export function placeBeside(popover, anchor) {
  const at = anchor.getBoundingClientRect();
  const own = popover.getBoundingClientRect();
  const isBelow = at.bottom + own.height + MARGIN <= innerHeight || at.top < innerHeight - at.bottom;
  const top = isBelow ? at.bottom + 4 : at.top - own.height - 4;
  const isRightToLeft = getComputedStyle(popover).direction === "rtl";
  const wanted = isRightToLeft ? at.right - own.width : at.left;
  popover.style.top = `${Math.max(MARGIN, Math.min(top, innerHeight - own.height - MARGIN))}px`;
  popover.style.left = `${Math.max(MARGIN, Math.min(wanted, innerWidth - own.width - MARGIN))}px`;
}

/**
 * A button that opens a list of commands. Arrows move in it, Escape closes it and returns the focus.
 * @param {{label: string, icon?: string, text?: string, items: ({label: string, icon?: string, run: () => void,
 *   danger?: boolean, checked?: boolean, disabled?: boolean, detail?: string} | null)[]}} props
 *   null is a line between items; with `text` the button shows it beside its icon
 */
export function Menu({ label, icon = "ellipsis", text, items, class: more = "", ...rest }) {
  const [isOpen, setOpen] = useState(false);
  const button = useRef(null);
  const id = useId();
  const attributes = {
    "aria-haspopup": "menu",
    "aria-expanded": String(isOpen),
    "aria-controls": isOpen ? id : undefined,
    onClick: (event) => {
      event.preventDefault();
      event.stopPropagation();
      setOpen(!isOpen);
    },
    ...rest,
  };
  const close = () => {
    setOpen(false);
    button.current?.querySelector("button").focus();
  };
  return html`<span class="menu-anchor ${more}" ref=${button}>
    ${text === undefined
      ? html`<${IconButton} icon=${icon} label=${label} ...${attributes} />`
      : html`<${Button} icon=${icon} aria-label=${label} ...${attributes}>${text}<${Icon} name="chevron-down" size=${14} /><//>`}
    ${isOpen && html`<${MenuList} id=${id} label=${label} items=${items} anchor=${button} close=${close}
      leave=${() => setOpen(false)} />`}
  </span>`;
}

function MenuList({ id, label, items, anchor, close, leave }) {
  const list = useRef(null);
  useLayoutEffect(() => {
    list.current.showPopover();
    placeBeside(list.current, anchor.current);
    list.current.querySelector("[role^=menuitem]:not([disabled])")?.focus();
  }, []);
  useLayoutEffect(() => {
    const onOutside = (event) => anchor.current?.contains(event.target) || leave();
    document.addEventListener("pointerdown", onOutside);
    addEventListener("resize", leave);
    return () => {
      document.removeEventListener("pointerdown", onOutside);
      removeEventListener("resize", leave);
    };
  }, []);
  return html`<div class="menu" role="menu" id=${id} aria-label=${label} popover="manual" ref=${list}
    onKeyDown=${(event) => moveInMenu(event, list.current, close, leave)}>
    ${items.map((item, place) => (item === null
      ? html`<div role="separator" key=${place}></div>`
      : html`<${MenuItem} key=${item.label} item=${item} close=${close} />`))}
  </div>`;
}

function MenuItem({ item, close }) {
  const act = (event) => {
    event.preventDefault();
    event.stopPropagation();
    close();
    item.run();
  };
  const isChecked = item.checked !== undefined;
  return html`<button type="button" class="menu-item ${item.danger ? "danger" : ""}" tabindex="-1"
    role=${isChecked ? "menuitemcheckbox" : "menuitem"} aria-checked=${isChecked ? String(item.checked) : undefined}
    disabled=${item.disabled} onClick=${act}>
    ${item.icon && html`<${Icon} name=${item.icon} />`}
    <span dir="auto">${item.label}</span>
    ${item.detail && html`<span class="detail">${item.detail}</span>`}
    ${item.checked && html`<${Icon} name="check" />`}
  </button>`;
}

function moveInMenu(event, list, close, leave) {
  const items = [...list.querySelectorAll("[role^=menuitem]:not([disabled])")];
  const at = items.indexOf(document.activeElement);
  const moves = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 };
  if (event.key in moves) items.at(moves[event.key] % items.length)?.focus();
  else if (event.key === "Escape") close();
  else if (event.key === "Tab") return leave();
  else if (event.key.length === 1 && /\S/.test(event.key)) {
    const typed = event.key.toLowerCase();
    const next = [...items.slice(at + 1), ...items].find((item) => item.textContent.trim().toLowerCase().startsWith(typed));
    if (event.key !== " ") next?.focus();
    return;
  } else return;
  event.preventDefault();
  event.stopPropagation();
}

/** A short explanation of what it surrounds, on hover and focus. @param {{text: string}} props */
export function Tooltip({ text, children }) {
  const id = useId();
  const [isShown, setShown] = useState(false);
  const anchor = useRef(null);
  const tip = useRef(null);
  useLayoutEffect(() => {
    if (!isShown) return;
    tip.current.showPopover();
    placeBeside(tip.current, anchor.current);
  }, [isShown]);
  const hide = () => setShown(false);
  return html`<span class="tooltip-anchor" ref=${anchor} aria-describedby=${id} onPointerEnter=${() => setShown(true)}
    onPointerLeave=${hide} onFocusIn=${() => setShown(true)} onFocusOut=${hide}
    onKeyDown=${(event) => event.key === "Escape" && hide()}>
    ${children}<span role="tooltip" id=${id} class="tooltip" popover="manual" hidden=${!isShown} ref=${tip}>${text}</span>
  </span>`;
}
