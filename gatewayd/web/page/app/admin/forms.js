/**
 * What the forms for administrators have in common.
 */
import { html, useRef, useState } from "#app/core/html";
import { t } from "#app/core/messages";
import { Button, ErrorNote, TextField } from "#app/ui/index";

/** Stands for a stored secret in what the gateway sends; sent back, it keeps the secret. */
export const MASK = "********";

/**
 * The state of a form: its values, the faults of its fields, and the failure of saving it.
 * @param {object} start the values at first
 * @param {Record<string, (value: any, values: object) => string>} [checks] return the fault of a field, or ""
 */
export function useForm(start, checks = {}) {
  const [values, setValues] = useState(start);
  const [faults, setFaults] = useState({});
  const [failure, setFailure] = useState(null);
  const [isBusy, setBusy] = useState(false);
  const check = (name) => setFaults((now) => ({ ...now, [name]: checks[name]?.(values[name], values) ?? "" }));
  const field = (name) => ({
    value: values[name],
    error: faults[name],
    onInput: (value) => {
      setValues((now) => ({ ...now, [name]: value }));
      if (faults[name]) setFaults((now) => ({ ...now, [name]: "" }));
    },
    onBlur: () => check(name),
  });
  /** Calls `act` with the values unless a field is wrong; a refusal that names a field stands there. */
  const submit = async (act, fields = {}) => {
    const found = Object.fromEntries(Object.keys(checks).map((name) => [name, checks[name](values[name], values)]));
    setFaults(found);
    if (Object.values(found).some(Boolean)) return undefined;
    setBusy(true);
    setFailure(null);
    try {
      return await act(values);
    } catch (error) {
      const name = fields[error.param];
      if (name) setFaults((now) => ({ ...now, [name]: error.message }));
      else setFailure(error);
      return undefined;
    } finally {
      setBusy(false);
    }
  };
  const set = (name, value) => setValues((now) => ({ ...now, [name]: value }));
  return { values, field, set, submit, failure, setFailure, isBusy };
}

/** The failure and the buttons at the end of a form. @param {{form: object, verb: string, cancel: () => void}} props */
export function FormEnd({ form, verb, cancel, children }) {
  return html`<${ErrorNote} error=${form.failure} />
    <div class="dialog-buttons">
      ${children}
      <${Button} onClick=${cancel}>${t("common.cancel")}<//>
      <${Button} kind="primary" type="submit" busy=${form.isBusy}>${verb}<//>
    </div>`;
}

/**
 * A secret that is never shown: empty keeps what is stored.
 * @param {{label: string, isStored: boolean, value: string, onInput: (value: string) => void, help?: string}} props
 */
export function SecretField({ isStored, help, ...rest }) {
  const said = isStored ? t("admin.forms.secretStored") : help;
  return html`<${TextField} type="password" autocomplete="off" spellcheck=${false} help=${said}
    placeholder=${isStored ? "••••••••" : ""} ...${rest} />`;
}

/**
 * A switch in a row of a table; it turns when the gateway has done the change.
 * @param {{label: string, checked: boolean, change: () => Promise<void>}} props
 */
export function RowSwitch({ label, checked, change }) {
  const isBusy = useRef(false);
  const turn = async (event) => {
    event.target.checked = checked;
    if (isBusy.current) return;
    isBusy.current = true;
    await change().finally(() => (isBusy.current = false));
  };
  return html`<input type="checkbox" role="switch" class="switch" aria-label=${label} checked=${checked} onChange=${turn} />`;
}

/** Returns the fault of an address, or "". @param {string} text */
export function faultOfAddress(text) {
  let url;
  try {
    url = new URL(text.trim());
  } catch {
    return t("admin.forms.address");
  }
  if (!["http:", "https:"].includes(url.protocol)) return t("admin.forms.address");
  return url.username || url.password ? t("admin.forms.addressCredentials") : "";
}

/** Returns the lines of a text that are not empty. @param {string} text */
export function linesOf(text) {
  return text.split("\n").map((line) => line.trim()).filter(Boolean);
}

/** Offers a text as a file. @param {string} name @param {string} text @param {string} [type] */
export function download(name, text, type = "application/json") {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
