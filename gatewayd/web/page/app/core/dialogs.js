/**
 * Dialogs: one above the page at a time, each a promise of its answer.
 */
import { effect, signal } from "@preact/signals";
import { html, useId, useLayoutEffect, useRef, useState } from "#app/core/html";
import { isComposing } from "#app/core/composing";
import { t } from "#app/core/messages";
import { me } from "#app/core/session";
import { toast } from "#app/core/toasts";

const open = signal([]);
let count = 0;

effect(() => {
  // What somebody was asked is not for those who come after them.
  if (me.value !== null) return;
  const dismissed = open.peek();
  open.value = [];
  for (const one of dismissed) one.resolve(undefined);
});

/**
 * Shows a component in a dialog. It gets `close(answer)` beside its props, and names the dialog by an element
 * with the id of its prop `titleId`.
 * @param {Function} component
 * @param {object} [props] `wide` makes the dialog wider
 * @returns {Promise<any>} the answer; undefined when the dialog was dismissed
 */
export function openDialog(component, props = {}) {
  return new Promise((resolve) => {
    open.value = [...open.peek(), { id: ++count, component, props, resolve, opener: document.activeElement }];
  });
}

/**
 * Shows a component of a module that is loaded when somebody wants it.
 * @param {() => Promise<object>} loader imports the module
 * @param {string} name of the component among its exports
 * @param {object} [props]
 * @returns {Promise<any>} the answer; undefined when the dialog was dismissed, or could not be loaded
 */
export async function openModule(loader, name, props = {}) {
  let module;
  try {
    module = await loader();
  } catch (error) {
    reportError(error);
    toast("error", t("errors.page"), { action: { label: t("common.tryAgain"), run: () => location.reload() } });
    return undefined;
  }
  return openDialog(module[name], props);
}

/** The open dialogs. */
export function Dialogs() {
  return open.value.map((one) => html`<${OpenDialog} key=${one.id} dialog=${one} />`);
}

function OpenDialog({ dialog }) {
  const element = useRef(null);
  const titleId = useId();
  const finish = (answer) => {
    open.value = open.peek().filter((one) => one !== dialog);
    element.current?.close();
    if (dialog.opener?.isConnected) dialog.opener.focus();
    else document.querySelector("main")?.focus();
    dialog.resolve(answer);
  };
  // Before the next key press, which would go to the page behind.
  useLayoutEffect(() => element.current.showModal(), []);
  const onCancel = (event) => {
    event.preventDefault();
    finish(undefined);
  };
  const onMouseDown = (event) => event.target === element.current && finish(undefined);
  const { component: Content, props } = dialog;
  return html`<dialog ref=${element} class=${props.wide ? "wide" : ""} aria-labelledby=${titleId}
    onCancel=${onCancel} onMouseDown=${onMouseDown}>
    <div class="dialog-body"><${Content} ...${props} titleId=${titleId} close=${finish} /></div>
  </dialog>`;
}

/**
 * Asks whether to go on.
 * @param {{title: string, text: string, verb: string, danger?: boolean}} question
 * @returns {Promise<boolean>}
 */
export async function confirmDialog(question) {
  return (await openDialog(Confirmation, question)) === true;
}

function Confirmation({ title, text, verb, danger, titleId, close }) {
  return html`<form method="dialog" onSubmit=${(event) => {
    event.preventDefault();
    close(true);
  }}>
    <h2 id=${titleId} dir="auto">${title}</h2>
    <p class="dialog-text" dir="auto">${text}</p>
    <div class="dialog-buttons">
      <button type="button" class="button" onClick=${() => close(false)}>${t("common.cancel")}</button>
      <button class="button ${danger ? "danger" : "primary"}" autofocus>${verb}</button>
    </div>
  </form>`;
}

/**
 * Asks for a text.
 * @param {{title: string, text?: string, placeholder?: string, value?: string, masked?: boolean, verb?: string}} question
 * @returns {Promise<string | null>} null when dismissed
 */
export async function promptDialog(question) {
  return (await openDialog(Prompt, question)) ?? null;
}

function Prompt({ title, text, placeholder, value = "", masked, verb, titleId, close }) {
  const [typed, setTyped] = useState(value);
  return html`<form method="dialog" onKeyDown=${(event) => {
    if (event.key === "Enter" && isComposing(event)) event.preventDefault();
  }} onSubmit=${(event) => {
    event.preventDefault();
    close(typed);
  }}>
    <h2 id=${titleId} dir="auto">${title}</h2>
    ${text && html`<p class="dialog-text" dir="auto">${text}</p>`}
    <input class="input" type=${masked ? "password" : "text"} aria-labelledby=${titleId} dir="auto" autofocus
      autocomplete=${masked ? "off" : undefined} placeholder=${placeholder} value=${typed}
      onInput=${(event) => setTyped(event.target.value)} />
    <div class="dialog-buttons">
      <button type="button" class="button" onClick=${() => close(null)}>${t("common.cancel")}</button>
      <button class="button primary">${verb ?? t("common.ok")}</button>
    </div>
  </form>`;
}
