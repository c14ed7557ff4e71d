/**
 * Tabs, and dialogs that a view keeps open itself.
 */
import { html, useId, useLayoutEffect, useRef } from "#app/core/html";

/**
 * A row of tabs and the panel of the chosen one. Arrows move between them.
 * @param {{label: string, tabs: {id: string, label: string, content: () => unknown}[], value: string,
 *   onChange: (id: string) => void}} props
 */
export function Tabs({ label, tabs, value, onChange }) {
  const base = useId();
  const list = useRef(null);
  const chosen = tabs.find((tab) => tab.id === value) ?? tabs[0];
  const move = (event) => {
    const isBack = document.documentElement.dir === "rtl" ? "ArrowRight" : "ArrowLeft";
    const isOn = document.documentElement.dir === "rtl" ? "ArrowLeft" : "ArrowRight";
    const at = tabs.indexOf(chosen);
    const next = { [isBack]: at - 1, [isOn]: at + 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    const tab = tabs.at(next % tabs.length);
    onChange(tab.id);
    list.current.querySelector(`#${CSS.escape(`${base}-${tab.id}`)}`)?.focus();
  };
  return html`<div class="tabs">
    <div role="tablist" aria-label=${label} ref=${list} onKeyDown=${move}>
      ${tabs.map((tab) => html`<button type="button" role="tab" key=${tab.id} id="${base}-${tab.id}" class="tab"
        aria-selected=${String(tab === chosen)} aria-controls="${base}-panel" tabindex=${tab === chosen ? 0 : -1}
        onClick=${() => onChange(tab.id)}>${tab.label}</button>`)}
    </div>
    <div role="tabpanel" id="${base}-panel" aria-labelledby="${base}-${chosen.id}" tabindex="0">${chosen.content()}</div>
  </div>`;
}

/**
 * A dialog that is open as long as it is shown; Escape, its frame and its close button call `onClose`.
 * @param {{title: string, onClose: () => void, wide?: boolean}} props
 */
export function Dialog({ title, onClose, wide = false, children }) {
  const element = useRef(null);
  const id = useId();
  useLayoutEffect(() => {
    const opener = document.activeElement;
    const dialog = element.current;
    dialog.showModal();
    return () => {
      // What lies behind an open dialog takes no focus.
      dialog.close();
      if (opener?.isConnected) opener.focus();
      else document.querySelector("main")?.focus();
    };
  }, []);
  const onCancel = (event) => {
    event.preventDefault();
    onClose();
  };
  return html`<dialog ref=${element} class=${wide ? "wide" : ""} aria-labelledby=${id} onCancel=${onCancel}
    onMouseDown=${(event) => event.target === element.current && onClose()}>
    <div class="dialog-body"><h2 id=${id} dir="auto">${title}</h2>${children}</div>
  </dialog>`;
}
