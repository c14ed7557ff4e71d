/**
 * What the forms of sign-in, settings and administration share: sending, loading, and where an error is shown.
 */
import { ApiError, get } from "#app/core/api";
import { isComposing } from "#app/core/composing";
import { html, useCallback, useEffect, useRef, useState } from "#app/core/html";
import { hasText, t } from "#app/core/messages";
import { IconButton, TextField } from "#app/ui/index";

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

/**
 * Loads something from the gateway, anew when its address changes.
 * @param {string | null} path null loads nothing
 * @returns {{value: any, error: unknown, reload: () => Promise<void>, setValue: (value: any) => void}}
 *   `value` is undefined until it is there; an older one stays while the next is loaded
 */
export function useResource(path) {
  const [state, setState] = useState({ value: undefined, error: null });
  const wanted = useRef(path);
  wanted.current = path;
  const reload = useCallback(async () => {
    if (path === null) return;
    try {
      const value = await get(path);
      if (wanted.current === path) setState({ value, error: null });
    } catch (error) {
      if (wanted.current === path) setState((before) => ({ ...before, error }));
    }
  }, [path]);
  useEffect(() => {
    reload();
  }, [reload]);
  return { ...state, reload, setValue: (value) => setState({ value, error: null }) };
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
