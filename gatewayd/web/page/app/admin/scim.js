/**
 * The view of provisioning: its state and its last requests. It has nothing to set.
 */
import { get } from "#app/core/api";
import { html } from "#app/core/html";
import { formatList, formatNumber, formatRelative, formatTime, t } from "#app/core/messages";
import { Facts } from "#app/admin/facts";
import { AdminFrame, Waiting } from "#app/admin/frame";
import { useResource } from "#app/ui/resource";
import { Button, Chip, EmptyState, Table } from "#app/ui/index";

/** @returns {unknown} the view */
export default function Scim() {
  const state = useResource(() => get("/api/v1/configs/scim"));
  const again = html`<${Button} icon="refresh-cw" busy=${state.isLoading} onClick=${state.reload}>${t("admin.status.refresh")}<//>`;
  return html`<${AdminFrame} title=${t("account.nav.scim")} help=${t("admin.scim.help")} actions=${again}>
    ${state.value === undefined ? html`<${Waiting} of=${state} />` : html`<${State} of=${state.value} />`}
  <//>`;
}

function State({ of: data }) {
  const requests = data.requests.map((one, place) => ({ ...one, key: `${place} ${one.request_id}` }));
  return html`<${Facts} label=${t("account.nav.scim")} facts=${factsOf(data)} />
    <h2>${t("admin.scim.requests")}</h2>
    <${Table} label=${t("admin.scim.requests")} rows=${requests} rowKey=${(row) => row.key} columns=${columns()}
      empty=${html`<${EmptyState} icon="workflow" title=${t("admin.scim.none")} text=${t("admin.scim.noneHelp")} />`} />`;
}

function factsOf(data) {
  const count = (part, all) => t("admin.scim.counted", { part: formatNumber(part), all: formatNumber(all) });
  const on = html`<${Chip} kind=${data.enabled ? "success" : ""}>${t(`admin.scim.${data.enabled ? "on" : "off"}`)}<//>`;
  return [
    [t("admin.scim.state"), on],
    [t("admin.scim.provider"), data.provider || t("admin.scim.noProvider")],
    [t("admin.scim.tokens"), data.token_fingerprints.length > 0
      ? html`<code dir="ltr">${formatList(data.token_fingerprints)}</code>`
      : t("admin.scim.noToken")],
    [t("admin.scim.tokenOrigin"), data.token_origin],
    [t("admin.scim.tokenWritten"), data.token_written_at && formatTime(data.token_written_at)],
    [t("admin.scim.tokenStale"), data.token_stale ? t("admin.scim.stale") : null],
    [t("admin.scim.users"), count(data.provisioned_users, data.users)],
    [t("admin.scim.groups"), count(data.provisioned_groups, data.groups)],
    [t("admin.scim.lastRequest"), data.last_request && formatRelative(data.last_request.at)],
  ];
}

function columns() {
  return [
    { key: "at", label: t("admin.scim.at"), cell: (row) => html`<time title=${formatTime(row.at)}>${formatRelative(row.at)}</time>` },
    { key: "request", label: t("admin.scim.request"), cell: (row) => html`<code dir="ltr">${row.method} ${row.path}</code>` },
    { key: "status", label: t("admin.scim.answer"), cell: (row) => html`<${Chip} kind=${row.status < 400 ? "success" : "danger"}>${row.status}<//>` },
    { key: "address", label: t("admin.scim.address"), cell: (row) => html`<span dir="ltr">${row.address}</span>` },
    { key: "detail", label: t("admin.scim.detail"), cell: (row) => html`<span dir="auto">${row.detail}</span>` },
  ];
}
