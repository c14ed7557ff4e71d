/**
 * Fields of forms: each has its label, its help and its error, which screen readers read with it.
 */
import { html, useId } from "#app/core/html";
import { Icon } from "#app/ui/controls";
import { t } from "#app/core/messages";

/** The label, help and error around a control, which gets the attributes that join them. */
function Field({ label, help, error, origin, class: more = "", control }) {
  const id = useId();
  const described = [help && `${id}-help`, error && `${id}-error`].filter(Boolean).join(" ");
  const attributes = { id, "aria-describedby": described || undefined, "aria-invalid": error ? "true" : undefined };
  return html`<div class="field ${more}">
    <label for=${id}>${label}</label>
    ${control(attributes)}
    ${help && html`<p class="help" id="${id}-help">${help}</p>`}
    ${origin && html`<p class="help origin"><${Icon} name="lock" size=${14} /> ${origin}</p>`}
    ${error && html`<p class="field-error" id="${id}-error">${error}</p>`}
  </div>`;
}

/**
 * A line of text.
 * @param {{label: string, value: string, onInput: (value: string) => void, help?: string, error?: string,
 *   origin?: string}} props and those of `input`; `origin` says where a locked value comes from
 */
export function TextField({ label, help, error, origin, class: more, value, onInput, type = "text", ...rest }) {
  const control = (joined) => html`<input class="input" type=${type} dir=${type === "password" ? undefined : "auto"}
    value=${value} onInput=${(event) => onInput?.(event.target.value)} readonly=${Boolean(origin)} ...${rest} ...${joined} />`;
  return html`<${Field} ...${{ label, help, error, origin, class: more, control }} />`;
}

/** Several lines of text; its props are those of TextField, and `rows`. */
export function TextArea({ label, help, error, origin, class: more, value, onInput, rows = 4, ...rest }) {
  const control = (joined) => html`<textarea class="input" rows=${rows} dir="auto" value=${value}
    onInput=${(event) => onInput?.(event.target.value)} readonly=${Boolean(origin)} ...${rest} ...${joined}></textarea>`;
  return html`<${Field} ...${{ label, help, error, origin, class: more, control }} />`;
}

/**
 * A choice of one.
 * @param {{label: string, value: string, options: {value: string, label: string, disabled?: boolean}[],
 *   onChange: (value: string) => void, help?: string, error?: string, origin?: string}} props
 */
export function Select({ label, help, error, origin, class: more, value, options, onChange, disabled, ...rest }) {
  const control = (joined) => html`<select class="input" value=${value} disabled=${disabled || Boolean(origin)}
    onChange=${(event) => onChange?.(event.target.value)} ...${rest} ...${joined}>
    ${options.map((one) => html`<option key=${one.value} value=${one.value} disabled=${one.disabled}
      selected=${one.value === value}>${one.label}</option>`)}
  </select>`;
  return html`<${Field} ...${{ label, help, error, origin, class: more, control }} />`;
}

/**
 * A switch that acts at once.
 * @param {{label: string, checked: boolean, onChange: (checked: boolean) => void, help?: string, origin?: string}} props
 */
export function Switch(props) {
  return html`<${Toggle} ...${props} kind="switch" />`;
}

/** A box to check; its props are those of Switch. */
export function Checkbox(props) {
  return html`<${Toggle} ...${props} kind="checkbox" />`;
}

function Toggle({ kind, label, help, error, origin, checked, onChange, disabled, class: more = "", ...rest }) {
  const id = useId();
  const described = [help && `${id}-help`, error && `${id}-error`].filter(Boolean).join(" ");
  return html`<div class="toggle ${more}">
    <input type="checkbox" class=${kind} role=${kind === "switch" ? "switch" : undefined} id=${id} checked=${checked}
      disabled=${disabled || Boolean(origin)} aria-describedby=${described || undefined}
      onChange=${(event) => onChange?.(event.target.checked)} ...${rest} />
    <div>
      <label for=${id}>${label}</label>
      ${help && html`<p class="help" id="${id}-help">${help}</p>`}
      ${origin && html`<p class="help origin"><${Icon} name="lock" size=${14} /> ${origin}</p>`}
      ${error && html`<p class="field-error" id="${id}-error">${error}</p>`}
    </div>
  </div>`;
}

/**
 * A field to search in; its label is for screen readers, and stands in the empty field.
 * @param {{label?: string, value: string, onInput: (value: string) => void}} props and those of `input`
 */
export function SearchField({ label, value, onInput, class: more = "", ...rest }) {
  const said = label ?? t("common.search");
  return html`<div class="search-field ${more}">
    <${Icon} name="search" />
    <input class="input" type="search" aria-label=${said} placeholder=${said} dir="auto" value=${value}
      onInput=${(event) => onInput?.(event.target.value)} ...${rest} />
  </div>`;
}
