/**
 * Who may read and write something: the list of access grants, and its editor.
 */
import { get } from "#app/core/api";
import { html, useEffect, useState } from "#app/core/html";
import { t } from "#app/core/messages";
import { can } from "#app/core/session";
import { Button, Icon, IconButton } from "#app/ui/controls";
import { SearchField, Select } from "#app/ui/fields";
import { ErrorNote } from "#app/ui/states";

const EVERYBODY = "*";
const PAUSE_MS = 200;
const MAX_FOUND = 8;
/** Principals whose names are looked up; a list may be long. */
const MAX_NAMED = 50;

/** Returns whether everybody may read. @param {{principal_id: string}[]} grants */
export const isPublic = (grants) => grants.some((grant) => grant.principal_id === EVERYBODY);

/** Returns one row for each principal: {type, id, permission}, "write" if it has both. */
export function grantRows(grants) {
  const rows = new Map();
  for (const { principal_type: type, principal_id: id, permission } of grants) {
    const key = `${type} ${id}`;
    if (permission === "write" || !rows.has(key)) rows.set(key, { key, type, id, permission });
  }
  return [...rows.values()];
}

const grantsOf = (rows) => rows.map(({ type, id, permission }) => ({ principal_type: type, principal_id: id, permission }));

/**
 * The editor of an access list.
 * @param {{grants: object[], onSave: (grants: object[]) => Promise<unknown>, publicPermission: string, title: string}} props
 *   `publicPermission` is the permission to let everybody read, as in the tree
 */
export function GrantsDialog({ grants, onSave, publicPermission, title, titleId, close }) {
  const [rows, setRows] = useState(() => grantRows(grants));
  const [names, setNames] = useState({});
  const [error, setError] = useState(null);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => void findNames(rows).then(setNames, setError), []);
  const add = (found) => {
    setNames({ ...names, [found.key]: found.name });
    if (!rows.some((row) => row.key === found.key)) setRows([...rows, { ...found, permission: "read" }]);
  };
  const change = (key, permission) => setRows(rows.map((row) => (row.key === key ? { ...row, permission } : row)));
  const remove = (key) => setRows(rows.filter((row) => row.key !== key));
  const save = async (event) => {
    event.preventDefault();
    setBusy(true);
    try {
      close(await onSave(grantsOf(rows)));
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  const shared = rows.filter((row) => row.id !== EVERYBODY);
  return html`<form onSubmit=${save}>
    <h2 id=${titleId} dir="auto">${title}</h2>
    <${ErrorNote} error=${error} />
    <${PublicChoice} rows=${rows} setRows=${setRows} permission=${publicPermission} />
    <${PrincipalSearch} onChoose=${add} />
    <ul class="grants" aria-label=${t("documents.sharedWith")}>
      ${shared.map((row) => html`<${GrantRow} key=${row.key} row=${row} name=${names[row.key] ?? row.id} onChange=${change} onRemove=${remove} />`)}
    </ul>
    ${shared.length === 0 && html`<p class="help">${t("documents.sharedWithNobody")}</p>`}
    <div class="dialog-buttons">
      <${Button} onClick=${() => close()}>${t("common.cancel")}<//>
      <${Button} kind="primary" type="submit" busy=${isBusy}>${t("documents.saveSharing")}<//>
    </div>
  </form>`;
}

function PublicChoice({ rows, setRows, permission }) {
  const isOn = rows.some((row) => row.id === EVERYBODY);
  if (!isOn && !can(permission)) return html`<p class="help">${t("documents.noPublicPermission")}</p>`;
  const change = (value) => {
    const others = rows.filter((row) => row.id !== EVERYBODY);
    const everybody = { key: `user ${EVERYBODY}`, type: "user", id: EVERYBODY, permission: "read" };
    setRows(value === "public" ? [everybody, ...others] : others);
  };
  const options = [
    { value: "private", label: t("documents.privateChoice") },
    { value: "public", label: t("documents.publicChoice") },
  ];
  return html`<${Select} label=${t("documents.generalAccess")} value=${isOn ? "public" : "private"} options=${options} onChange=${change} />`;
}

function GrantRow({ row, name, onChange, onRemove }) {
  const options = [
    { value: "read", label: t("documents.mayRead") },
    { value: "write", label: t("documents.mayWrite") },
  ];
  return html`<li class="grant">
    <${Icon} name=${row.type === "group" ? "users" : "user"} />
    <span class="grant-name" dir="auto">${name}</span>
    <select class="input" aria-label=${t("documents.accessOf", { name })} value=${row.permission}
      onChange=${(event) => onChange(row.key, event.target.value)}>
      ${options.map((one) => html`<option key=${one.value} value=${one.value} selected=${one.value === row.permission}>${one.label}</option>`)}
    </select>
    <${IconButton} icon="x" label=${t("documents.removeAccess", { name })} onClick=${() => onRemove(row.key)} />
  </li>`;
}

/** Finds groups and users by a part of their name. */
function PrincipalSearch({ onChoose }) {
  const [query, setQuery] = useState("");
  const [found, setFound] = useState([]);
  const [error, setError] = useState(null);
  useEffect(() => {
    let isCurrent = true;
    const look = async () => {
      try {
        const all = query.trim() ? await findPrincipals(query.trim()) : [];
        if (isCurrent) setFound(all);
      } catch (failure) {
        if (isCurrent) setError(failure);
      }
    };
    const timer = setTimeout(look, PAUSE_MS);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [query]);
  const choose = (one) => {
    onChoose(one);
    setQuery("");
  };
  const onKeyDown = (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    if (found.length > 0) choose(found[0]);
  };
  return html`<div class="principal-search">
    <${SearchField} label=${t("documents.findPrincipal")} value=${query} onInput=${setQuery} onKeyDown=${onKeyDown} maxlength="200" />
    <${ErrorNote} error=${error} />
    ${found.length > 0 && html`<ul class="principals" aria-label=${t("documents.foundPrincipals")}>
      ${found.map((one) => html`<li key=${one.key}><button type="button" class="picker-row" onClick=${() => choose(one)}>
        <${Icon} name=${one.type === "group" ? "users" : "user"} /><span dir="auto">${one.name}</span>
        <span class="help" dir="auto">${one.detail}</span></button></li>`)}
    </ul>`}
  </div>`;
}

async function findPrincipals(query) {
  const wanted = query.toLowerCase();
  const groups = can("access_grants.allow_groups") ? await get("/api/v1/groups/") : [];
  const path = `/api/v1/users/search?query=${encodeURIComponent(query)}`;
  const users = can("access_grants.allow_users") ? (await get(path)).users : [];
  return [
    ...groups
      .filter((group) => group.name.toLowerCase().includes(wanted))
      .map((group) => ({ key: `group ${group.id}`, type: "group", id: group.id, name: group.name, detail: t("documents.group") })),
    ...users.map((user) => ({ key: `user ${user.id}`, type: "user", id: user.id, name: user.name, detail: user.email })),
  ].slice(0, MAX_FOUND);
}

async function findNames(rows) {
  const groups = rows.some((row) => row.type === "group") ? await get("/api/v1/groups/") : [];
  const names = Object.fromEntries(groups.map((group) => [`group ${group.id}`, group.name]));
  const users = rows.filter((row) => row.type === "user" && row.id !== EVERYBODY).slice(0, MAX_NAMED);
  const infos = await Promise.allSettled(users.map((row) => get(`/api/v1/users/${encodeURIComponent(row.id)}/info`)));
  infos.forEach((info, place) => {
    if (info.status === "fulfilled") names[users[place].key] = info.value.name;
  });
  return names;
}
