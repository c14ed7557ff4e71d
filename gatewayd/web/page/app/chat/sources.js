/** Sources of an answer: numbered chips, and the panel with the passages of one. */
import { html, useEffect, useRef } from "#app/core/html";
import { formatNumber, t } from "#app/core/messages";
import { Dialog, Progress } from "#app/ui/index";

/**
 * The chips under an answer.
 * @param {{sources: import("#app/chat/sources_model").Numbered[], onOpen: (number: number) => void}} props
 */
export function SourceChips({ sources, onOpen }) {
  if (sources.length === 0) return null;
  return html`<ol class="source-chips" aria-label=${t("chat.sources")}>
    ${sources.map((source) => html`<li key=${source.number}>
      <button type="button" class="source-chip" onClick=${() => onOpen(source.number)}>
        <span class="source-number">${formatNumber(source.number)}</span>
        <span class="source-name" dir="auto">${source.name}</span></button></li>`)}
  </ol>`;
}

/**
 * The passages of a source.
 * @param {{source: import("#app/chat/sources_model").Numbered, onClose: () => void}} props
 */
export function PassagePanel({ source, onClose }) {
  const body = useRef(null);
  useEffect(() => body.current?.focus(), [source.number]);
  return html`<${Dialog} wide title=${t("chat.sourceTitle", { number: source.number, name: source.name })} onClose=${onClose}>
    <div class="passages" tabindex="0" role="region" aria-label=${t("chat.passages")} ref=${body}>
      ${source.passages.length === 0 && html`<p class="help">${t("chat.noPassages")}</p>`}
      ${source.passages.map((passage, place) => html`<${Passage} key=${place} passage=${passage} />`)}
    </div>
    <div class="dialog-buttons">
      ${source.fileId && html`<a class="button" href="/api/v1/files/${encodeURIComponent(source.fileId)}/content" target="_blank"
        rel="noopener noreferrer">${t("chat.openFile")}</a>`}
      ${source.url && html`<a class="button" href=${source.url} target="_blank" rel="noopener noreferrer">${t("chat.openPage")}</a>`}
      <button type="button" class="button primary" onClick=${onClose}>${t("common.close")}</button>
    </div>
  <//>`;
}

function Passage({ passage }) {
  const place = [passage.page && t("chat.page", { page: passage.page }), passage.heading].filter(Boolean).join(" · ");
  const closeness = passage.distance === null ? null : Math.max(0, Math.min(1, passage.distance));
  return html`<section class="passage">
    ${place && html`<h3 dir="auto">${place}</h3>`}
    ${closeness !== null && html`<${Progress} label=${t("chat.closeness")} value=${closeness} />`}
    <blockquote dir="auto">${passage.text}</blockquote>
  </section>`;
}
