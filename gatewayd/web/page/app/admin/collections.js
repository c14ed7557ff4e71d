/**
 * The view of all collections.
 */
import { del, get } from "#app/core/api";
import { confirmDialog } from "#app/core/dialogs";
import { html, useState } from "#app/core/html";
import { formatNumber, formatRelative, formatTime, t } from "#app/core/messages";
import { Link } from "#app/core/router";
import { describeAccess } from "#app/admin/access";
import { AdminFrame, Waiting } from "#app/admin/frame";
import { useResource } from "#app/ui/resource";
import { Button, EmptyState, ErrorNote, IconButton, SearchField, Table } from "#app/ui/index";

const PATH = "/api/v1/knowledge";

/** @returns {unknown} the view */
export default function Collections() {
  const [text, setText] = useState("");
  const [pages, setPages] = useState(1);
  const [failure, setFailure] = useState(null);
  const list = useResource(() => readPages(text, pages), [text, pages]);
  const remove = async (row) => {
    const asked = { title: t("admin.collections.removeTitle", { name: row.name }), text: t("admin.collections.removeText") };
    if (!(await confirmDialog({ ...asked, verb: t("admin.collections.removeVerb"), danger: true }))) return;
    setFailure(null);
    await del(`${PATH}/${encodeURIComponent(row.id)}/delete`).catch(setFailure);
    await list.reload();
  };
  const search = (next) => {
    setText(next);
    setPages(1);
  };
  const left = (list.value?.total ?? 0) - (list.value?.items.length ?? 0);
  return html`<${AdminFrame} title=${t("account.nav.collections")} help=${t("admin.collections.help")}>
    <${SearchField} label=${t("admin.collections.search")} value=${text} onInput=${search} />
    <${ErrorNote} error=${failure} />
    ${list.value === undefined
      ? html`<${Waiting} of=${list} />`
      : html`<${Table} label=${t("account.nav.collections")} rows=${list.value.items} rowName=${(row) => row.name} columns=${columnsOf(remove)}
          empty=${html`<${EmptyState} icon="library" title=${t("admin.collections.none")} text=${t("admin.collections.noneHelp")}>
            <${Link} class="button" href="/documents">${t("common.documents")}<//><//>`} />`}
    ${left > 0 && html`<${Button} busy=${list.isLoading} onClick=${() => setPages(pages + 1)}>
      ${t("admin.forms.showMore", { count: formatNumber(left) })}<//>`}
  <//>`;
}

async function readPages(text, pages) {
  const query = encodeURIComponent(text.trim());
  const found = await Promise.all(Array.from({ length: pages }, (_, place) => get(`${PATH}/?page=${place + 1}&query=${query}`)));
  return { items: found.flatMap((page) => page.items), total: found[0].total };
}

function columnsOf(remove) {
  return [
    { key: "name", label: t("admin.collections.name"), sort: (row) => row.name, cell: (row) => html`<div class="admin-name">
      <${Link} href="/documents/${row.id}"><span dir="auto">${row.name}</span><//>
      ${row.description && html`<span class="help" dir="auto">${row.description}</span>`}</div>` },
    { key: "owner", label: t("admin.collections.owner"), sort: ownerOf, cell: (row) => html`<span dir="auto">${ownerOf(row)}</span>` },
    { key: "files", label: t("admin.collections.files"), numeric: true, sort: (row) => row.file_count, cell: (row) => formatNumber(row.file_count) },
    { key: "access", label: t("admin.access.label"), cell: (row) => describeAccess(row.access_grants) },
    { key: "changed", label: t("admin.collections.changed"), sort: (row) => row.updated_at,
      cell: (row) => html`<time title=${formatTime(row.updated_at)}>${formatRelative(row.updated_at)}</time>` },
    { key: "act", label: t("admin.forms.actions"), hideLabel: true, cell: (row) => html`<${IconButton} icon="trash-2"
      label=${t("admin.collections.removeOf", { name: row.name })} onClick=${() => remove(row)} />` },
  ];
}

const ownerOf = (row) => row.user?.name ?? "";
