/**
 * Dialogs about the directories of a collection: the choice of one, level by level, and their removal.
 */
import { get } from "#app/core/api";
import { html, useEffect, useRef, useState } from "#app/core/html";
import { t } from "#app/core/messages";
import { filesAddress } from "#app/documents/addresses";
import { Button, Icon } from "#app/ui/controls";
import { Checkbox } from "#app/ui/fields";
import { ErrorNote, Skeleton } from "#app/ui/states";

/**
 * Lets the reader go to a directory; its answer is the id of the chosen one, null for the top.
 * @param {{title: string, collection: object, without?: string}} props `without` is a directory that is moved itself
 */
export function DirectoryPicker({ title, collection, without, titleId, close }) {
  const [at, setAt] = useState(null);
  const [level, setLevel] = useState(null);
  const [error, setError] = useState(null);
  const list = useRef(null);
  const load = () => get(filesAddress(collection.id, { directoryId: at, query: "", page: 1 })).then((found) => {
    setLevel(found);
    setError(null);
  }, setError);
  useEffect(() => {
    setLevel(null);
    void load();
  }, [at]);
  useEffect(() => level && list.current?.querySelector("button")?.focus(), [level]);
  const above = level?.breadcrumbs.at(-2)?.id ?? null;
  const directories = level?.directories.filter((one) => one.id !== without) ?? [];
  return html`<h2 id=${titleId} dir="auto">${title}</h2>
    <p class="help" dir="auto">${[collection.name, ...(level?.breadcrumbs ?? []).map((one) => one.name)].join(" / ")}</p>
    <${ErrorNote} error=${error} retry=${load} />
    ${level === null && !error && html`<${Skeleton} />`}
    <ul class="folder-picker" ref=${list}>
      ${at !== null && html`<li><button type="button" class="picker-row" onClick=${() => setAt(above)}>
        <${Icon} name="arrow-up" />${t("documents.above")}</button></li>`}
      ${directories.map((one) => html`<li key=${one.id}><button type="button" class="picker-row" onClick=${() => setAt(one.id)}>
        <${Icon} name="folder" /><span dir="auto">${one.name}</span></button></li>`)}
    </ul>
    ${level && directories.length === 0 && html`<p class="help">${t("documents.noDirectories")}</p>`}
    <div class="dialog-buttons">
      <${Button} onClick=${() => close()}>${t("common.cancel")}<//>
      <${Button} kind="primary" disabled=${level === null} onClick=${() => close(at)}>${t("documents.moveHere")}<//>
    </div>`;
}

/** Asks whether the files of a directory go with it; its answer is {removeFiles}. */
export function DirectoryRemoval({ directory, titleId, close }) {
  const [isWhole, setWhole] = useState(false);
  const submit = (event) => {
    event.preventDefault();
    close({ removeFiles: isWhole });
  };
  return html`<form method="dialog" onSubmit=${submit}>
    <h2 id=${titleId}>${t("documents.removeDirectory")}</h2>
    <p class="dialog-text" dir="auto">${t("documents.removeDirectoryText", { name: directory.name })}</p>
    <${Checkbox} label=${t("documents.removeFilesToo")} checked=${isWhole} onChange=${setWhole} />
    <div class="dialog-buttons">
      <${Button} onClick=${() => close()}>${t("common.cancel")}<//>
      <${Button} kind="danger" type="submit">${t("documents.removeDirectory")}<//>
    </div>
  </form>`;
}
