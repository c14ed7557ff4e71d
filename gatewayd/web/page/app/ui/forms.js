/**
 * What all forms share: their values, sending once at a time, secrets, and where an error is shown.
 */
import { ApiError } from "#app/core/api";
import { isComposing } from "#app/core/composing";
import { html, useEffect, useRef, useState } from "#app/core/html";
import { hasText, t } from "#app/core/messages";
import { Button, ErrorNote, IconButton, TextField } from "#app/ui/index";

/** A form that Enter sends, unless the key belongs to a composed text. @param {{onSubmit: () => void}} props */
export function Form({ onSubmit, class: more = "stack", children, ...rest }) {
  const onKeyDown = (event) => {
    if (event.key === "Enter" && isComposing(event)) event.preventDefault();
  };
  const submit = (event) => {
    event.preventDefault();
    onSubmit();
  };
  return html`<form class=${more} novalidate onKeyDown=${onKeyDown} onSubmit=${submit} ...${rest}>${children}</form>`;
}

/** A password with a button that shows it; its props are those of TextField. */
export function PasswordField(props) {
  const [isShown, setShown] = useState(false);
  return html`<div class="password-field">
    <${TextField} ...${props} type=${isShown ? "text" : "password"} dir="ltr" spellcheck=${false} autocapitalize="off" />
    <${IconButton} icon=${isShown ? "eye-off" : "eye"} label=${t(isShown ? "signin.hidePassword" : "signin.showPassword")}
      onClick=${() => setShown(!isShown)} />
  </div>`;
}

/**
 * Returns a function that does something once at a time, whether it is under way, and why it failed.
 * @param {(...given: any[]) => Promise<any>} action
 * @returns {{run: (...given: any[]) => Promise<any>, busy: boolean, error: unknown, setError: (error: unknown) => void}}
 *   `run` resolves to the result of the action, or to undefined when it failed
 */
export function useAction(action) {
  const [state, setState] = useState({ busy: false, error: null });
  const underWay = useRef(false);
  const run = async (...given) => {
    if (underWay.current) return undefined;
    underWay.current = true;
    setState({ busy: true, error: null });
    let error = null;
    try {
      return await action(...given);
    } catch (caught) {
      error = caught;
      return undefined;
    } finally {
      underWay.current = false;
      setState({ busy: false, error });
    }
  };
  return { run, ...state, setError: (error) => setState({ busy: false, error }) };
}

/** Returns the sentence of an error that is about one of these fields; undefined for any other error. */
export function fieldProblem(error, ...names) {
  if (!(error instanceof ApiError) || !names.includes(error.param)) return undefined;
  const key = `account.codes.${error.code}`;
  return hasText(key) ? `${t(key)} ${error.message}` : error.message;
}

/** Returns an error unless it is about one of these fields, beside which it is shown already. */
export function otherProblem(error, ...names) {
  return fieldProblem(error, ...names) === undefined ? error : null;
}

/** Returns a value some time after it stopped to change. */
export function useSettled(value, milliseconds) {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

/**
 * The state of a form: its values, the faults of its fields, and the failure of saving it.
 * @param {object} start the values at first
 * @param {Record<string, (value: any, values: object) => string>} [checks] return the fault of a field, or ""
 */
export function useForm(start, checks = {}) {
  const [values, setValues] = useState(start);
  const [faults, setFaults] = useState({});
  const sending = useAction((work) => work());
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
    return sending.run(async () => {
      try {
        return await act(values);
      } catch (error) {
        const name = fields[error.param];
        if (!name) throw error;
        setFaults((now) => ({ ...now, [name]: error.message }));
        return undefined;
      }
    });
  };
  const set = (name, value) => setValues((now) => ({ ...now, [name]: value }));
  return { values, field, set, submit, failure: sending.error, isBusy: sending.busy };
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
