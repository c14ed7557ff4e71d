/**
 * A runtime setting as a field that saves itself, and says where its value comes from.
 */
import { fieldProblem, otherProblem, useAction } from "#app/ui/forms";
import { html, useEffect, useState } from "#app/core/html";
import { t } from "#app/core/messages";
import { Button, ErrorNote, Select, Switch, TextArea, TextField } from "#app/ui/index";

/**
 * A setting.
 * @param {{setting: {name: string, value: boolean | string, origin: string, configured: boolean | string,
 *   fixed: boolean}, kind: "switch" | "choice" | "text" | "lines", options?: {value: string, label: string}[],
 *   save: (name: string, value: boolean | string) => Promise<void>, reset: (name: string) => Promise<void>}} props
 *   a text is saved when the field is left or Enter is pressed
 */
export function SettingField({ setting, kind, options, save, reset, ...rest }) {
  const { name, value, fixed, origin } = setting;
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]);
  const { run, busy, error } = useAction(async (wanted) => {
    setTyped(wanted);
    try {
      await save(name, wanted);
    } catch (failure) {
      // What was typed stays, to be mended; a switch goes back.
      if (kind === "switch" || kind === "choice") setTyped(value);
      throw failure;
    }
  });
  const back = useAction(() => reset(name));
  const shared = {
    label: t(`account.settings.${name}.label`),
    help: t(`account.settings.${name}.help`),
    origin: fixed ? t("account.origins.fixed", { origin }) : undefined,
    error: fieldProblem(error, name),
    ...rest,
  };
  const keep = () => typed !== value && run(typed);
  const onKeyDown = (event) => {
    if (event.key !== "Enter" || event.isComposing || kind === "lines") return;
    event.preventDefault();
    keep();
  };
  return html`<div class="setting">
    ${kind === "switch" && html`<${Switch} ...${shared} checked=${typed} disabled=${busy} onChange=${run} />`}
    ${kind === "choice" && html`<${Select} ...${shared} value=${typed} options=${options} disabled=${busy} onChange=${run} />`}
    ${kind === "text" && html`<${TextField} ...${shared} value=${typed} onInput=${setTyped} onBlur=${keep} onKeyDown=${onKeyDown} />`}
    ${kind === "lines" && html`<${TextArea} ...${shared} rows=${3} value=${typed} onInput=${setTyped} onBlur=${keep} />`}
    ${!fixed && html`<${Origin} setting=${setting} reset=${back.run} busy=${back.busy} />`}
    <${ErrorNote} error=${otherProblem(error, name) ?? back.error} />
  </div>`;
}

/** Where the value comes from; a stored one may go back to what the configuration says. */
function Origin({ setting, reset, busy }) {
  const { name, origin, configured } = setting;
  if (origin === "default") return null;
  if (origin !== "stored") return html`<p class="help setting-origin">${t("account.origins.from", { origin })}</p>`;
  const shown = typeof configured === "boolean" ? t(configured ? "account.on" : "account.off") : configured || t("account.empty");
  return html`<p class="help setting-origin">${t("account.origins.stored", { value: shown })}${" "}
    <${Button} kind="plain" busy=${busy} onClick=${reset}
      aria-label=${t("account.origins.resetNamed", { name: t(`account.settings.${name}.label`) })}>${t("account.origins.reset")}<//></p>`;
}
