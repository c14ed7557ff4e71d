/**
 * The members of a group: who added each of them, adding and removing.
 */
import { useAction, useSettled } from "#app/ui/forms";
import { useResource } from "#app/ui/resource";
import { post } from "#app/core/api";
import { confirmDialog } from "#app/core/dialogs";
import { html, useState } from "#app/core/html";
import { formatNumber, plural, t } from "#app/core/messages";
import { Avatar, Button, Chip, ErrorNote, Icon, SearchField, Skeleton, Table } from "#app/ui/index";

const PROVIDED = ["scim", "oauth"];
const SEARCH_MS = 200;
/** Rows that are shown of a large group; a search finds the others. */
const MAX_SHOWN = 200;

/** The members. @param {{path: string}} props address of the group */
export function Members({ path }) {
  const { value, error, reload } = useResource(`${path}/members`);
  const [query, setQuery] = useState("");
  const [selected, setSelected] = useState(new Set());
  const [isAdding, setAdding] = useState(false);
  const remove = useAction(async () => {
    const chosen = value.members.filter((member) => selected.has(member.id));
    const isProvided = chosen.some((member) => member.sources.some((source) => PROVIDED.includes(source)));
    const text = t(isProvided ? "account.groups.removeProvided" : "account.groups.removeManual");
    const question = { title: plural("account.groups.removeMembers", chosen.length), text, danger: true };
    if (!(await confirmDialog({ ...question, verb: t("common.remove") }))) return;
    await post(`${path}/users/remove`, { user_ids: [...selected] });
    setSelected(new Set());
    await reload();
  });
  const add = useAction(async (user) => {
    await post(`${path}/users/add`, { user_ids: [user.id] });
    await reload();
  });
  if (!value) return error ? html`<${ErrorNote} error=${error} retry=${reload} />` : html`<${Skeleton} />`;
  const wanted = query.trim().toLowerCase();
  const found = value.members.filter((member) => `${member.name} ${member.email}`.toLowerCase().includes(wanted));
  return html`<div class="stack">
    <${Provenance} value=${value} />
    <${ErrorNote} error=${add.error ?? remove.error ?? error} />
    <div class="row">
      ${value.members.length > 0 && html`<${SearchField} class="grow" label=${t("account.groups.searchMembers")} value=${query} onInput=${setQuery} />`}
      <${Button} icon="user-plus" aria-expanded=${String(isAdding)} onClick=${() => setAdding(!isAdding)}>${t("account.groups.addMembers")}<//>
      ${selected.size > 0 && html`<${Button} icon="user-minus" busy=${remove.busy} onClick=${remove.run}>
        ${plural("account.groups.removeMembers", selected.size)}<//>`}
    </div>
    ${isAdding && html`<${AddMember} members=${value.members} add=${add.run} />`}
    <${Table} label=${t("account.groups.members")} rows=${found.slice(0, MAX_SHOWN)} columns=${columns()} selected=${selected}
      onSelect=${setSelected} rowName=${(member) => member.name} empty=${html`<p class="help">${t("account.groups.noMembers")}</p>`} />
    ${found.length > MAX_SHOWN && html`<p class="help">${plural("account.groups.more", found.length - MAX_SHOWN)}</p>`}
  </div>`;
}

/** How many members each source added, and the ids of the group at the providers. */
function Provenance({ value }) {
  const sources = Object.entries(value.sources);
  const ids = Object.entries(value.external_ids);
  return html`<div class="row">
    <${Chip} icon="users">${plural("account.groups.memberCount", value.total)}<//>
    ${sources.map(([source, count]) => html`<${Chip} key=${source}>${t(`account.sources.${source}`)}: ${formatNumber(count)}<//>`)}
    ${ids.map(([provider, id]) => html`<${Chip} key=${provider} icon="link" kind="accent">
      ${t("account.externalId", { provider, id })}<//>`)}
  </div>`;
}

function columns() {
  return [
    { key: "name", label: t("account.users.name"), sort: (member) => member.name, cell: Person },
    { key: "role", label: t("account.users.role"), sort: (member) => member.role, cell: (member) => t(`account.roles.${member.role}`) },
    { key: "sources", label: t("account.groups.addedBy"), cell: (member) => html`<span class="row">
      ${member.sources.map((source) => html`<${Chip} key=${source}>${t(`account.sources.${source}`)}<//>`)}</span>` },
  ];
}

/** Picture, name and e-mail address of an account. */
export function Person(user) {
  return html`<span class="person"><${Avatar} name=${user.name} src=${user.profile_image_url} />
    <span><bdi class="person-name">${user.name}</bdi><bdi class="help">${user.email}</bdi></span></span>`;
}

function AddMember({ members, add }) {
  const [query, setQuery] = useState("");
  const settled = useSettled(query.trim(), SEARCH_MS);
  const { value, error } = useResource(settled ? `/api/v1/users/search?query=${encodeURIComponent(settled)}` : null);
  const known = new Set(members.map((member) => member.id));
  const found = settled ? (value?.users ?? []).filter((user) => !known.has(user.id)) : [];
  return html`<div class="card">
    <${SearchField} label=${t("account.groups.addMember")} autofocus value=${query} onInput=${setQuery} />
    <${ErrorNote} error=${error} />
    ${settled && value && html`<ul class="item-list" aria-label=${t("account.groups.found")}>
      ${found.slice(0, 8).map((user) => html`<li key=${user.id}>${Person(user)}
        <${Button} icon="user-plus" class="end" aria-label=${t("account.groups.addNamed", { name: user.name })}
          onClick=${() => add(user)}>${t("account.groups.add")}<//></li>`)}
      ${found.length === 0 && html`<li class="help"><${Icon} name="search" /> ${t("account.groups.nobody")}</li>`}
    </ul>`}
  </div>`;
}
