/**
 * Tables that sort and select; at phone width each row becomes a card.
 */
import { html, useState } from "#app/core/html";
import { Icon } from "#app/ui/controls";
import { language, t } from "#app/core/messages";

/**
 * A table.
 * @param {{label: string, rows: object[], rowKey?: (row: object) => string, rowName?: (row: object) => string,
 *   columns: {key: string, label: string, cell?: (row: object) => unknown, sort?: (row: object) => string | number,
 *     numeric?: boolean, hideLabel?: boolean}[],
 *   selected?: Set<string>, onSelect?: (keys: Set<string>) => void, empty?: unknown,
 *   isSelectable?: (row: object) => boolean, order?: {key: string, direction: 1 | -1} | null, onOrder?: (order: {key: string, direction: 1 | -1}) => void}} props
 *   a column with `sort` sorts by what it returns; `rowName` names a row for screen readers; with `selected` rows have
 *   boxes to check, those that `isSelectable` refuses have none; with `onOrder` the rows come in the order `order` already
 */
export function Table({ label, rows, columns, rowKey = (row) => row.id, rowName = rowKey, selected, onSelect, isSelectable, empty,
  order: given, onOrder }) {
  const [own, setOwn] = useState(null);
  const [order, setOrder] = onOrder ? [given, onOrder] : [own, setOwn];
  const shown = onOrder ? rows : sorted(rows, columns, order);
  if (rows.length === 0 && empty) return empty;
  const select = (key, isOn) => {
    const keys = new Set(selected);
    if (isOn) keys.add(key);
    else keys.delete(key);
    onSelect(keys);
  };
  return html`<div class="table-frame" tabindex="0" role="region" aria-label=${label}>
    <table class="table">
      <caption class="hidden">${label}</caption>
      <thead><tr>
        ${selected && html`<th class="select"><${SelectAll} rows=${isSelectable ? rows.filter(isSelectable) : rows} rowKey=${rowKey} selected=${selected} onSelect=${onSelect} /></th>`}
        ${columns.map((column) => html`<${Head} key=${column.key} column=${column} order=${order} setOrder=${setOrder} />`)}
      </tr></thead>
      <tbody>${shown.map((row) => html`<tr key=${rowKey(row)} class=${selected?.has(rowKey(row)) ? "selected" : ""}>
        ${selected && html`<td class="select">${(isSelectable?.(row) ?? true) && html`<input type="checkbox" class="checkbox"
          checked=${selected.has(rowKey(row))} aria-label=${t("common.selectRow", { name: rowName(row) })}
          onChange=${(event) => select(rowKey(row), event.target.checked)} />`}</td>`}
        ${columns.map((column) => html`<td key=${column.key} class=${classOf(column)}
          data-label=${column.hideLabel ? undefined : column.label}>${column.cell ? column.cell(row) : row[column.key]}</td>`)}
      </tr>`)}</tbody>
    </table>
  </div>`;
}

function classOf(column) {
  return [column.numeric && "numeric", column.hideLabel && "actions"].filter(Boolean).join(" ");
}

function Head({ column, order, setOrder }) {
  const direction = order?.key === column.key ? order.direction : 0;
  const name = column.hideLabel ? html`<span class="hidden">${column.label}</span>` : column.label;
  if (!column.sort) return html`<th scope="col" class=${classOf(column)}>${name}</th>`;
  const turn = () => setOrder({ key: column.key, direction: direction === 1 ? -1 : 1 });
  const said = { 1: "ascending", "-1": "descending", 0: "none" }[direction];
  return html`<th scope="col" aria-sort=${said} class=${classOf(column)}>
    <button type="button" class="sort" onClick=${turn}>${name}
      <${Icon} name=${direction < 0 ? "arrow-down" : "arrow-up"} size=${14} class=${direction ? "" : "faint"} /></button>
  </th>`;
}

function SelectAll({ rows, rowKey, selected, onSelect }) {
  const isAll = rows.length > 0 && rows.every((row) => selected.has(rowKey(row)));
  const change = (event) => onSelect(new Set(event.target.checked ? rows.map(rowKey) : []));
  return html`<input type="checkbox" class="checkbox" aria-label=${t("common.selectAll")} checked=${isAll}
    indeterminate=${!isAll && selected.size > 0} onChange=${change} />`;
}

function sorted(rows, columns, order) {
  if (!order) return rows;
  const by = columns.find((column) => column.key === order.key).sort;
  const { compare } = new Intl.Collator(language.value, { numeric: true, sensitivity: "base" });
  const ordered = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : compare(String(a ?? ""), String(b ?? "")));
  return [...rows].sort((a, b) => order.direction * ordered(by(a), by(b)));
}
