/**
 * The view `/admin/users`: the accounts, and the invitations.
 */
import { AdminFrame, Section } from "#app/account/frames";
import { useSettled } from "#app/ui/forms";
import { useResource } from "#app/ui/resource";
import { Invitations, inviteSomebody } from "#app/account/invitations";
import { moment } from "#app/account/keys";
import { Person } from "#app/account/members";
import { KeysDialog, NewUser, PasswordDialog, SessionsDialog, UserDialog } from "#app/account/user_dialogs";
import { UserSelection } from "#app/account/user_selection";
import { del, post } from "#app/core/api";
import { confirmDialog, openDialog } from "#app/core/dialogs";
import { html, useState } from "#app/core/html";
import { formatNumber, plural, t } from "#app/core/messages";
import { me } from "#app/core/session";
import { toast } from "#app/core/toasts";
import { Button, Chip, ErrorNote, IconButton, Menu, SearchField, Skeleton, Table } from "#app/ui/index";

const PATH = "/api/v1/users/";
const PAGE_SIZE = 30;
const SEARCH_MS = 200;
/** Members to sort by, by the key of their column. */
const ORDERS = { name: "name", role: "role", seen: "last_active_at", created: "created_at" };

/** The view. */
export default function UsersView() {
  const [query, setQuery] = useState("");
  const [order, setOrder] = useState({ key: "created", direction: -1 });
  const [page, setPage] = useState(1);
  const settled = useSettled(query.trim(), SEARCH_MS);
  const users = useResource(`${PATH}?${new URLSearchParams({ query: settled, order_by: ORDERS[order.key],
    direction: order.direction > 0 ? "asc" : "desc", page })}`);
  const groups = useResource("/api/v1/groups/");
  const invitations = useResource("/api/v1/auths/invitations");
  const [problem, setProblem] = useState(null);
  const [selected, setSelected] = useState(new Set());
  const search = (text) => {
    setQuery(text);
    setPage(1);
  };
  const invite = async () => (await inviteSomebody(groups.value ?? [])) && invitations.reload();
  const create = async () => (await openDialog(NewUser)) && users.reload();
  const actions = html`<${Button} icon="mail" onClick=${invite}>${t("account.users.invite")}<//>
    <${Button} kind="primary" icon="user-plus" onClick=${create}>${t("account.users.create")}<//>`;
  const verbs = (user) => html`<${UserMenu} user=${user} groups=${groups.value ?? []} reload=${users.reload} fail=${setProblem} />`;
  return html`<${AdminFrame} title=${t("account.users.title")} actions=${actions}>
    <${SearchField} label=${t("account.users.search")} value=${query} onInput=${search} />
    <${ErrorNote} error=${problem ?? users.error} retry=${problem ? undefined : users.reload} />
    <${UserSelection} users=${(users.value?.users ?? []).filter((user) => selected.has(user.id))} groups=${groups.value ?? []}
      clear=${() => setSelected(new Set())} reload=${users.reload} fail=${setProblem} />
    ${!users.value && !users.error && html`<${Skeleton} lines=${6} />`}
    ${users.value && html`<${Table} label=${t("account.users.title")} rows=${users.value.users} rowName=${(user) => user.name}
        columns=${columns(groups.value ?? [], verbs)} selected=${selected} onSelect=${setSelected} order=${order} onOrder=${setOrder}
        empty=${html`<p class="help" role="status">${t("account.users.none")}</p>`} />
      <${Pages} page=${page} total=${users.value.total} setPage=${setPage} />`}
    ${invitations.value?.length > 0 && html`<${Section} title=${t("account.invitations.title")} text=${t("account.invitations.text")}>
      <${Invitations} rows=${invitations.value} groups=${groups.value ?? []} reload=${invitations.reload} /><//>`}
  <//>`;
}

function columns(groups, verbs) {
  const names = new Map(groups.map((group) => [group.id, group.name]));
  return [
    { key: "name", label: t("account.users.name"), sort: true, cell: Person },
    { key: "role", label: t("account.users.role"), sort: true, cell: roleCell },
    { key: "groups", label: t("account.users.groups"), cell: (user) => html`<span class="row">
      ${user.group_ids.map((id) => html`<${Chip} key=${id}>${names.get(id) ?? id}<//>`)}</span>` },
    { key: "seen", label: t("account.users.seen"), sort: true, cell: (user) => moment(user.last_active_at) },
    { key: "created", label: t("account.users.created"), sort: true, cell: (user) => moment(user.created_at) },
    { key: "verbs", label: t("account.actions"), hideLabel: true, cell: verbs },
  ];
}

function roleCell(user) {
  if (!user.active) return html`<${Chip} kind="danger" icon="user-x">${t("account.users.deactivated")}<//>`;
  const kind = { admin: "accent", pending: "warning", user: "" }[user.role];
  return html`<${Chip} kind=${kind}>${t(`account.roles.${user.role}`)}<//>`;
}

function UserMenu({ user, groups, reload, fail }) {
  const path = `${PATH}${encodeURIComponent(user.id)}`;
  const attempt = (action) => async () => {
    fail(null);
    try {
      await action();
    } catch (error) {
      fail(error);
    }
  };
  const dialog = (component, wide = false) => async () => (await openDialog(component, { user, groups, wide })) && reload();
  const turn = async () => {
    if (user.active && !(await confirmDialog(question("deactivate", user)))) return;
    await post(`${path}/update`, { active: !user.active });
    await reload();
  };
  const remove = async () => {
    if (!(await confirmDialog(question("remove", user)))) return;
    await del(path);
    toast("success", t("account.users.removed", { name: user.name }));
    await reload();
  };
  const isMe = user.id === me.value.id;
  const items = [
    { label: t("account.users.edit"), icon: "pencil", run: dialog(UserDialog) },
    { label: t("account.users.sessions"), icon: "monitor", run: dialog(SessionsDialog) },
    { label: t("account.keys.title"), icon: "key", run: dialog(KeysDialog, true) },
    { label: t("account.users.setPassword"), icon: "key-round", run: dialog(PasswordDialog), disabled: isMe },
    null,
    { label: t(user.active ? "account.users.deactivate" : "account.users.activate"), icon: user.active ? "user-x" : "user-check",
      run: attempt(turn), disabled: isMe },
    { label: t("account.users.remove"), icon: "trash-2", run: attempt(remove), danger: true, disabled: isMe },
  ];
  return html`<${Menu} label=${t("account.users.actionsOf", { name: user.name })} items=${items} />`;
}

/** The question before something that destroys; it names what goes with it. */
function question(verb, user) {
  const slots = { name: user.name, email: user.email };
  return { title: t(`account.users.${verb}Title`, slots), text: t(`account.users.${verb}Text`, slots),
    verb: t(`account.users.${verb}`), danger: true };
}

function Pages({ page, total, setPage }) {
  const last = Math.max(1, Math.ceil(total / PAGE_SIZE));
  const shown = { page: formatNumber(page), last: formatNumber(last) };
  return html`<div class="row pages">
    <p class="help" role="status">${plural("account.users.count", total)}</p>
    ${last > 1 && html`<${IconButton} icon="chevron-left" class="mirrored" label=${t("account.previousPage")} disabled=${page <= 1}
        onClick=${() => setPage(page - 1)} />
      <span class="help">${t("account.pageOf", shown)}</span>
      <${IconButton} icon="chevron-right" class="mirrored" label=${t("account.nextPage")} disabled=${page >= last}
        onClick=${() => setPage(page + 1)} />`}
  </div>`;
}
