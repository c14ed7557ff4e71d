/**
 * A passage in the text of its file: the file, the page, the heading, and the passage marked among what stands around
 * it. Files are never shown inside the page; the link opens them in a tab of their own.
 */
import { get } from "#app/core/api";
import { openDialog } from "#app/core/dialogs";
import { html, useEffect, useRef, useState } from "#app/core/html";
import { t } from "#app/core/messages";
import { contentAddress, filePath } from "#app/documents/addresses";
import { Button, Icon } from "#app/ui/controls";
import { ErrorNote, Skeleton } from "#app/ui/states";

/** Characters shown before and after a passage. */
const AROUND = 3000;

/**
 * A passage of a file.
 * @typedef {{fileId: string, name: string, text: string, page?: number | string | null, heading?: string | null,
 *   start?: number}} FilePassage `page` counts from 1; `start` is the place in the text, in characters
 */

/** Shows a passage in a dialog. @param {FilePassage} passage */
export const openPassage = (passage) => openDialog(PassageDialog, { passage, wide: true });

function PassageDialog({ passage, titleId, close }) {
  const isFile = Boolean(passage.fileId);
  return html`<h2 id=${titleId} dir="auto">${passage.name}</h2>
    <${PassagePanel} passage=${passage} />
    <div class="dialog-buttons">
      ${isFile && html`<a class="button" href=${contentAddress(passage.fileId, passage.page)} target="_blank" rel="noopener noreferrer">
        <${Icon} name="external-link" />${passage.page ? t("documents.openPage", { page: passage.page }) : t("documents.openFile")}</a>`}
      <${Button} kind="primary" onClick=${() => close()}>${t("common.close")}<//>
    </div>`;
}

/** A passage among what stands around it. @param {{passage: FilePassage}} props */
export function PassagePanel({ passage }) {
  const [context, setContext] = useState(null);
  const [error, setError] = useState(null);
  const mark = useRef(null);
  const { fileId, text, start } = passage;
  const load = () => {
    setError(null);
    if (!fileId) return setContext(alone(text));
    return get(`${filePath(fileId)}/data/content`).then(({ content }) => setContext(findPassage(content, text, start)), (failure) => {
      setContext(alone(text));
      // A passage may be cited to somebody who may not read the file.
      if (failure.status !== 404 && failure.status !== 403) setError(failure);
    });
  };
  useEffect(() => void load(), [fileId, text, start]);
  useEffect(() => mark.current?.scrollIntoView({ block: "center" }), [context]);
  const place = [passage.page && t("documents.page", { page: passage.page }), passage.heading].filter(Boolean);
  return html`<div class="stack passage-panel">
    ${place.length > 0 && html`<p class="help" dir="auto">${place.join(" · ")}</p>`}
    <${ErrorNote} error=${error} retry=${load} />
    ${context === null ? html`<${Skeleton} />` : html`<div class="passage-context" tabindex="0" role="region" dir="auto"
      aria-label=${t("documents.passageIn", { name: passage.name })}>
      ${context.isCut && html`<span aria-hidden="true">… </span>`}${context.before}<mark ref=${mark}>${context.passage}</mark>${context.after}
    </div>`}
    ${context?.isMissing && html`<p class="help">${t("documents.passageGone")}</p>`}
  </div>`;
}

const alone = (text) => ({ before: "", passage: text, after: "", isCut: false, isMissing: false });

/**
 * Returns a passage with the text around it. The gateway counts characters, and JavaScript halves of some of them.
 * @param {string} content the text of the file
 * @param {string} text the passage
 * @param {number} [start] its place
 */
export function findPassage(content, text, start = 0) {
  const wanted = unitsOf(content, start);
  let at = content.startsWith(text, wanted) ? wanted : -1;
  for (let next = content.indexOf(text); at === -1 && next !== -1; next = content.indexOf(text, next + 1)) {
    const after = content.indexOf(text, next + 1);
    if (after === -1 || Math.abs(after - wanted) > Math.abs(next - wanted)) at = next;
  }
  if (at === -1 || text === "") return { ...alone(text), isMissing: content !== "" };
  const end = at + text.length;
  return {
    before: content.slice(Math.max(0, at - AROUND), at),
    passage: text,
    after: content.slice(end, end + AROUND),
    isCut: at > AROUND,
    isMissing: false,
  };
}

/** Returns the place of a character in the units that JavaScript counts. */
function unitsOf(content, characters) {
  let units = 0;
  for (let count = 0; count < characters && units < content.length; count += 1) {
    units += content.codePointAt(units) > 0xffff ? 2 : 1;
  }
  return units;
}
