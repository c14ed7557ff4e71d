/** Sources of an answer: numbered chips, and the panel with the passages of one. */
import { html, useEffect, useRef } from "#app/core/html";
import { formatNumber, t } from "#app/core/messages";
import { safeLink } from "#app/render/links";
import { Button, Dialog } from "#app/ui/index";

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
  const link = safeLink(source.url);
  useEffect(() => body.current?.focus(), [source.number]);
  return html`<${Dialog} wide title=${t("chat.sourceTitle", { number: source.number, name: source.name })} onClose=${onClose}>
    <div class="passages" tabindex="0" role="region" aria-label=${t("chat.passages")} ref=${body}>
      ${source.passages.length === 0 && html`<p class="help">${t("chat.noPassages")}</p>`}
      ${source.passages.map((passage, place) => html`<${Passage} key=${place} source=${source} passage=${passage} />`)}
    </div>
    <div class="dialog-buttons">
      ${link && html`<a class="button" href=${link.href} target="_blank" rel="noopener noreferrer">${t("chat.openPage")}</a>`}
      <button type="button" class="button primary" onClick=${onClose}>${t("common.close")}</button>
    </div>
  <//>`;
}

function Passage({ source, passage }) {
  const place = [passage.page && t("chat.page", { page: passage.page }), passage.heading].filter(Boolean).join(" · ");
  const show = async () => {
    const { openPassage } = await import("#app/documents/passage");
    const { text, page, heading, metadata } = passage;
    openPassage({ fileId: source.fileId, name: source.name, text, page: page || null, heading, start: metadata.start_index });
  };
  return html`<section class="passage">
    ${place && html`<h3 dir="auto">${place}</h3>`}
    <blockquote dir="auto">${passage.text}</blockquote>
    ${source.fileId && html`<${Button} kind="plain" icon="file-text" onClick=${show}>${t("chat.showInFile")}<//>`}
  </section>`;
}
