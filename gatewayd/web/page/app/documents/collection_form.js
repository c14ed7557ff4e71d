/**
 * The name and description of a collection.
 */
import { html, useState } from "#app/core/html";
import { t } from "#app/core/messages";
import { Button } from "#app/ui/controls";
import { TextArea, TextField } from "#app/ui/fields";
import { ErrorNote } from "#app/ui/states";

/**
 * A form whose answer is what `save` returned.
 * @param {{title: string, verb: string, name?: string, description?: string,
 *   save: (form: {name: string, description: string}) => Promise<object>}} props
 */
export function CollectionForm({ title, verb, name = "", description = "", save, titleId, close }) {
  const [form, setForm] = useState({ name, description });
  const [error, setError] = useState(null);
  const [isBusy, setBusy] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    if (!form.name.trim()) return setError(null);
    setBusy(true);
    try {
      close(await save({ name: form.name.trim(), description: form.description.trim() }));
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return html`<form onSubmit=${submit}>
    <h2 id=${titleId}>${title}</h2>
    <${ErrorNote} error=${error} />
    <${TextField} label=${t("documents.name")} value=${form.name} required maxlength="255" autofocus
      onInput=${(value) => setForm({ ...form, name: value })} />
    <${TextArea} label=${t("documents.description")} value=${form.description} rows=${3}
      onInput=${(value) => setForm({ ...form, description: value })} />
    <div class="dialog-buttons">
      <${Button} onClick=${() => close()}>${t("common.cancel")}<//>
      <${Button} kind="primary" type="submit" busy=${isBusy}>${verb}<//>
    </div>
  </form>`;
}
