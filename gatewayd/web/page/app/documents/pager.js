/**
 * The way through the pages of a list.
 */
import { html } from "#app/core/html";
import { formatNumber, t } from "#app/core/messages";
import { IconButton } from "#app/ui/controls";

/**
 * Shows which part of a list is shown, with the ways to the others; nothing when there is one page.
 * @param {{page: number, size: number, total: number, onPage: (page: number) => void}} props pages count from 1
 */
export function Pager({ page, size, total, onPage }) {
  if (total <= size) return null;
  const last = Math.ceil(total / size);
  const slots = {
    from: formatNumber((page - 1) * size + 1),
    to: formatNumber(Math.min(page * size, total)),
    total: formatNumber(total),
  };
  return html`<nav class="pager" aria-label=${t("documents.pages")}>
    <${IconButton} icon="chevron-left" class="mirrored" label=${t("documents.previousPage")} disabled=${page <= 1}
      onClick=${() => onPage(page - 1)} />
    <span role="status">${t("documents.range", slots)}</span>
    <${IconButton} icon="chevron-right" class="mirrored" label=${t("documents.nextPage")} disabled=${page >= last}
      onClick=${() => onPage(page + 1)} />
  </nav>`;
}
