/**
 * What can be done with several files of a collection at once.
 */
import { post } from "#app/core/api";
import { confirmDialog } from "#app/core/dialogs";
import { html, useState } from "#app/core/html";
import { plural, t } from "#app/core/messages";
import { collectionPath, filePath, send } from "#app/documents/addresses";
import { attempt } from "#app/ui/attempt";
import { Button } from "#app/ui/controls";

/**
 * The number of chosen files, and the verbs for them.
 * @param {{collection: object, files: object[], clear: () => void, onChange: () => void}} props `files` are chosen
 */
export function FileSelection({ collection, files, clear, onChange }) {
  const [isBusy, setBusy] = useState(false);
  if (files.length === 0) return null;
  const failed = files.filter((file) => file.data.status === "failed");
  /** Does something with each file; the first failure ends it, and those that are left stay chosen. */
  const each = async (chosen, act) => {
    setBusy(true);
    const isDone = await attempt(async () => {
      for (const file of chosen) await act(file);
    });
    setBusy(false);
    if (isDone) clear();
    onChange();
  };
  const remove = async () => {
    const text = t("documents.removeFilesText", { files: plural("documents.files", files.length) });
    const title = t("documents.removeFiles");
    if (!(await confirmDialog({ title, text, verb: title, danger: true }))) return;
    await each(files, (file) => send("POST", `${collectionPath(collection.id)}/file/remove`, { file_id: file.id }));
  };
  const retry = () => each(failed, (file) => post(`${filePath(file.id)}/process`));
  return html`<div class="row selection" role="region" aria-label=${t("documents.selection")}>
    <p role="status">${plural("documents.selected", files.length)}</p>
    ${failed.length > 0 && html`<${Button} icon="refresh-cw" busy=${isBusy} onClick=${retry}>${t("documents.retryFiles")}<//>`}
    <${Button} kind="danger" icon="trash-2" busy=${isBusy} onClick=${remove}>${t("documents.removeFiles")}<//>
    <${Button} kind="plain" onClick=${clear}>${t("documents.selectNone")}<//>
  </div>`;
}
