/**
 * The text that the gateway read from a file. It is shown as text, whatever the file is.
 */
import { get } from "#app/core/api";
import { openDialog } from "#app/core/dialogs";
import { html, useEffect, useState } from "#app/core/html";
import { formatBytes, formatNumber, t } from "#app/core/messages";
import { contentAddress, filePath } from "#app/documents/addresses";
import { Button, Icon } from "#app/ui/controls";
import { ErrorNote, Skeleton } from "#app/ui/states";

/** Characters that are shown at first, and more each time. */
const STEP = 50_000;

/** Shows a file. @param {{id: string, filename: string, meta?: object, data?: object}} file */
export const openFile = (file) => openDialog(FileDialog, { file, wide: true });

function FileDialog({ file, titleId, close }) {
  const [text, setText] = useState(null);
  const [error, setError] = useState(null);
  const [length, setLength] = useState(STEP);
  const load = () => get(`${filePath(file.id)}/data/content`).then(({ content }) => {
    setText(content);
    setError(null);
  }, setError);
  useEffect(() => void load(), [file.id]);
  const facts = [file.meta?.content_type, file.meta?.size !== undefined && formatBytes(file.meta.size),
    text && t("documents.characters", { count: formatNumber(text.length) })];
  return html`<h2 id=${titleId} dir="auto">${file.filename}</h2>
    <p class="help">${facts.filter(Boolean).join(" · ")}</p>
    ${file.data?.status === "failed" && html`<p class="field-error" dir="auto">${file.data.error}</p>`}
    <${ErrorNote} error=${error} retry=${load} />
    ${text === null && !error && html`<${Skeleton} />`}
    ${text === "" && html`<p class="help">${t("documents.noText")}</p>`}
    ${text && html`<pre class="file-text" dir="auto" tabindex="0" role="region" aria-label=${t("documents.textOf", { name: file.filename })}>${text.slice(0, length)}</pre>`}
    ${text && text.length > length && html`<${Button} onClick=${() => setLength(length + STEP)}>${t("documents.showMore")}<//>`}
    <div class="dialog-buttons">
      <a class="button" href=${contentAddress(file.id)} target="_blank" rel="noopener noreferrer">
        <${Icon} name="external-link" />${t("documents.openFile")}</a>
      <${Button} kind="primary" onClick=${() => close()}>${t("common.close")}<//>
    </div>`;
}
