/**
 * The views `/admin/groups` and `/admin/groups/{id}`.
 */
import { AdminFrame } from "#app/account/frames";
import { Form, fieldProblem, otherProblem, useAction } from "#app/ui/forms";
import { useResource } from "#app/ui/resource";
import { GroupDetail } from "#app/account/group_detail";
import { post } from "#app/core/api";
import { openDialog } from "#app/core/dialogs";
import { html, useState } from "#app/core/html";
import { formatNumber, t } from "#app/core/messages";
import { Link, navigate } from "#app/core/router";
import { Button, EmptyState, ErrorNote, SearchField, Skeleton, Table, TextArea, TextField } from "#app/ui/index";

/** The view. @param {{params: {id?: string}}} props */
export default function GroupsView({ params }) {
  return params.id ? html`<${GroupDetail} key=${params.id} id=${params.id} />` : html`<${GroupList} />`;
}

async function create() {
  const group = await openDialog(NewGroup);
  if (group) navigate(`/admin/groups/${encodeURIComponent(group.id)}`);
}

function GroupList() {
  const { value, error, reload } = useResource("/api/v1/groups/");
  const [query, setQuery] = useState("");
  const wanted = query.trim().toLowerCase();
  const rows = (value ?? []).filter((group) => `${group.name} ${group.description}`.toLowerCase().includes(wanted));
  const button = html`<${Button} kind="primary" icon="plus" onClick=${create}>${t("account.groups.create")}<//>`;
  const columns = [
    { key: "name", label: t("account.groups.name"), sort: (group) => group.name, cell: groupLink },
    { key: "description", label: t("account.groups.description"), cell: (group) => html`<span dir="auto">${group.description}</span>` },
    { key: "members", label: t("account.groups.members"), numeric: true, sort: (group) => group.member_count,
      cell: (group) => formatNumber(group.member_count) },
    { key: "permissions", label: t("account.groups.adds"), numeric: true, sort: countGranted, cell: (group) => formatNumber(countGranted(group)) },
  ];
  const isEmpty = value?.length === 0;
  return html`<${AdminFrame} title=${t("account.groups.title")} actions=${!isEmpty && button}>
    <${ErrorNote} error=${error} retry=${reload} />
    ${!value && !error && html`<${Skeleton} />`}
    ${isEmpty && html`<${EmptyState} icon="users" title=${t("account.groups.empty")} text=${t("account.groups.emptyText")}>${button}<//>`}
    ${value?.length > 0 && html`<${SearchField} label=${t("account.groups.search")} value=${query} onInput=${setQuery} />
      <${Table} label=${t("account.groups.title")} rows=${rows} columns=${columns} rowName=${(group) => group.name} />`}
  <//>`;
}

function groupLink(group) {
  return html`<${Link} href="/admin/groups/${encodeURIComponent(group.id)}"><bdi>${group.name}</bdi><//>`;
}

function countGranted(group) {
  return Object.values(group.permissions ?? {}).flatMap(Object.values).filter(Boolean).length;
}

function NewGroup({ titleId, close }) {
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const { run, busy, error } = useAction(async () => close(await post("/api/v1/groups/create", { name, description })));
  return html`<h2 id=${titleId}>${t("account.groups.create")}</h2>
    <${Form} onSubmit=${run}>
      <${TextField} label=${t("account.groups.name")} value=${name} onInput=${setName} autofocus error=${fieldProblem(error, "name")} />
      <${TextArea} label=${t("account.groups.description")} rows=${2} value=${description} onInput=${setDescription}
        error=${fieldProblem(error, "description")} />
      <${ErrorNote} error=${otherProblem(error, "name", "description")} />
      <div class="dialog-buttons"><${Button} onClick=${() => close()}>${t("common.cancel")}<//>
        <${Button} type="submit" kind="primary" busy=${busy} disabled=${!name.trim()}>${t("account.groups.create")}<//></div>
    <//>`;
}
