/**
 * The view of the state of the gateway.
 */
import { get } from "#app/core/api";
import { html } from "#app/core/html";
import { formatBytes, formatNumber, formatTime, plural, t } from "#app/core/messages";
import { Facts } from "#app/admin/facts";
import { AdminFrame, Waiting } from "#app/admin/frame";
import { useResource } from "#app/ui/resource";
import { Button, Chip, Table } from "#app/ui/index";

const KINDS = { pass: "success", warn: "warning", fail: "danger" };
const HOUR = 3600;
const DAY = 24 * HOUR;

/** @returns {unknown} the view */
export default function Status() {
  const state = useResource(() => get("/api/v1/configs/status"));
  const again = html`<${Button} icon="refresh-cw" busy=${state.isLoading} onClick=${state.reload}>${t("admin.status.refresh")}<//>`;
  return html`<${AdminFrame} title=${t("account.nav.status")} help=${t("admin.status.help")} actions=${again}>
    ${state.value === undefined ? html`<${Waiting} of=${state} />` : html`<${State} of=${state.value} />`}
  <//>`;
}

function State({ of: data }) {
  return html`<${Facts} label=${t("account.nav.status")} facts=${factsOf(data)} />
    <h2>${t("admin.status.sources")}</h2>
    <${Table} label=${t("admin.status.sources")} rows=${data.sources} rowKey=${(row) => row.name} columns=${columns()}
      empty=${html`<p class="help">${t("admin.status.noSources")}</p>`} />`;
}

function factsOf(data) {
  const cache = data.vector_cache;
  const recall = data.vector_recall;
  return [
    [t("admin.status.state"), html`<${Chip} kind=${KINDS[data.status]}>${t(`admin.status.states.${data.status}`)}<//>`],
    [t("admin.status.version"), data.version],
    [t("admin.status.started"), `${formatTime(data.started_at)} (${uptime(data.uptime_seconds)})`],
    [t("admin.status.database"), data.database ? t("admin.status.works") : data.database_problem],
    [t("admin.status.index"), data.vector_index],
    [t("admin.status.recall"), recall === null ? null : formatNumber(recall, { style: "percent", maximumFractionDigits: 1 })],
    [t("admin.status.cache"), cache && t("admin.status.cacheSize", { size: formatBytes(cache.size_bytes), limit: formatBytes(cache.limit_bytes) })],
    [t("admin.status.cacheProblem"), cache?.problem],
    [t("admin.status.sandbox"), data.extraction_sandbox],
    [t("admin.status.stalls"), data.stalls === 0 ? t("admin.status.noStalls") : t("admin.status.stalled", {
      count: formatNumber(data.stalls),
      longest: formatNumber(data.longest_stall_ms),
    })],
  ];
}

function uptime(seconds) {
  if (seconds >= DAY) return plural("admin.status.days", Math.floor(seconds / DAY));
  return seconds >= HOUR ? plural("admin.status.hours", Math.floor(seconds / HOUR)) : plural("admin.status.minutes", Math.floor(seconds / 60));
}

function columns() {
  return [
    { key: "name", label: t("admin.status.source"), sort: (row) => row.name, cell: (row) => html`<span dir="auto">${row.name}</span>` },
    { key: "models", label: t("admin.connections.modelCount"), numeric: true, sort: (row) => row.models, cell: (row) => formatNumber(row.models) },
    { key: "problem", label: t("admin.plugins.problem"), cell: (row) => (row.problem
      ? html`<span class="field-error" dir="auto">${row.problem}</span>`
      : html`<span class="help">${t("admin.plugins.noProblem")}</span>`) },
  ];
}
