/**
 * The list and the form of tool servers.
 */
import { get, post } from "#app/core/api";
import { confirmDialog, openDialog } from "#app/core/dialogs";
import { html, useState } from "#app/core/html";
import { plural, t } from "#app/core/messages";
import { AccessFields, describeAccess } from "#app/admin/access";
import { MASK, faultOfAddress } from "#app/admin/forms";
import { FormEnd, SecretField, useForm } from "#app/ui/forms";
import { Waiting } from "#app/admin/frame";
import { useResource } from "#app/ui/resource";
import { TestFailure } from "#app/admin/test_failure";
import { Button, Chip, EmptyState, ErrorNote, Icon, Menu, Select, Switch, Table, TextArea, TextField } from "#app/ui/index";

const PATH = "/api/v1/configs/tool_servers";
const FIELDS = { url: "url", path: "path", key: "key", "info.id": "id", "info.name": "name" };

/** The list of tool servers. */
export function ToolServers() {
  const list = useResource(() => get(PATH));
  const [failure, setFailure] = useState(null);
  if (list.value === undefined) return html`<${Waiting} of=${list} />`;
  const servers = list.value.TOOL_SERVER_CONNECTIONS;
  const write = async (entries) => list.setValue(await post(PATH, { TOOL_SERVER_CONNECTIONS: entries }));
  const attempt = (entries) => write(entries).then(() => setFailure(null), setFailure);
  const replaced = (row, entry) => servers.map((one) => (one === row ? entry : one));
  const edit = (row) =>
    openDialog(ServerForm, { entry: row ?? {}, save: (entry) => write(row ? replaced(row, entry) : [...servers, entry]) });
  const toggle = (row) => attempt(replaced(row, { ...row, config: { ...row.config, enable: !row.config.enable } }));
  const remove = async (row) => {
    const title = t("admin.servers.removeTitle", { name: row.info.name });
    const asked = { title, text: t("admin.servers.removeText"), verb: t("admin.servers.removeVerb"), danger: true };
    if (await confirmDialog(asked)) await attempt(servers.filter((one) => one !== row));
  };
  return html`<div class="stack">
    <div class="row admin-list-head"><p class="help">${t("admin.servers.help")}</p>
      <${Button} kind="primary" icon="plus" onClick=${() => edit()}>${t("admin.servers.add")}<//></div>
    <${ErrorNote} error=${failure} />
    ${list.value.problems.map((problem) => html`<p class="field-error" key=${problem}>${problem}</p>`)}
    <${Table} label=${t("admin.connections.tabs.servers")} rows=${servers} rowKey=${(row) => row.info.id}
      columns=${columnsOf({ edit, toggle, remove })}
      empty=${html`<${EmptyState} icon="wrench" title=${t("admin.servers.none")} text=${t("admin.servers.noneHelp")} />`} />
  </div>`;
}

function columnsOf(actions) {
  return [
    { key: "name", label: t("admin.connections.name"), sort: (row) => row.info.name, cell: nameCell },
    { key: "type", label: t("admin.servers.type"), cell: (row) => t(`admin.servers.types.${row.type}`) },
    { key: "access", label: t("admin.access.label"), cell: (row) => describeAccess(row.config.access_grants) },
    { key: "state", label: t("admin.connections.state"), cell: (row) => html`<${Chip} kind=${row.config.enable ? "success" : ""}>
      ${t(`admin.connections.states.${row.config.enable ? "used" : "off"}`)}<//>` },
    { key: "act", label: t("admin.forms.actions"), hideLabel: true, cell: (row) => rowMenu(row, actions) },
  ];
}

function nameCell(row) {
  return html`<div class="admin-name"><strong dir="auto">${row.info.name}</strong><span class="help" dir="ltr">${row.url}</span>
    ${row.origin === "settings" && html`<span class="help origin"><${Icon} name="lock" size=${14} />
      ${t("admin.forms.lockedBy", { origin: "tool_server_connections" })}</span>`}</div>`;
}

function rowMenu(row, actions) {
  if (row.origin === "settings") return null;
  const items = [
    { label: t("admin.forms.edit"), icon: "pencil", run: () => actions.edit(row) },
    { label: t(`admin.forms.${row.config.enable ? "switchOff" : "switchOn"}`), icon: "power", run: () => actions.toggle(row) },
    null,
    { label: t("admin.servers.removeVerb"), icon: "trash-2", danger: true, run: () => actions.remove(row) },
  ];
  return html`<${Menu} label=${t("admin.forms.actionsOf", { name: row.info.name })} items=${items} />`;
}

function ServerForm({ entry, save, close, titleId }) {
  const isNew = !entry.info;
  const start = {
    type: entry.type ?? "openapi",
    id: entry.info?.id ?? "",
    name: entry.info?.name ?? "",
    description: entry.info?.description ?? "",
    url: entry.url ?? "",
    path: entry.path ?? "openapi.json",
    key: "",
    grants: entry.config?.access_grants ?? [],
  };
  const faultOfId = (id) => (/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/.test(id) ? "" : t("admin.servers.idFault"));
  const form = useForm(start, { url: faultOfAddress, id: faultOfId });
  const made = ({ type, id, name, description, url, path, key, grants }) => {
    const kept = key || (entry.key === MASK ? MASK : "");
    return {
      ...entry,
      type,
      url: url.trim(),
      path,
      key: kept,
      auth_type: kept ? "bearer" : "none",
      info: { id, name: name.trim() || id, description },
      config: { enable: true, ...entry.config, access_grants: grants },
    };
  };
  const onSubmit = async (event) => {
    event.preventDefault();
    const isSaved = await form.submit(async (values) => (await save(made(values)), true), FIELDS);
    if (isSaved) close(true);
  };
  return html`<form onSubmit=${onSubmit} novalidate>
    <h2 id=${titleId}>${t(isNew ? "admin.servers.add" : "admin.servers.edit")}</h2>
    <${Select} label=${t("admin.servers.type")} value=${form.values.type} onChange=${(type) => form.set("type", type)}
      options=${["openapi", "mcp"].map((value) => ({ value, label: t(`admin.servers.types.${value}`) }))} />
    <${TextField} label=${t("admin.servers.id")} help=${t("admin.servers.idHelp")} readonly=${!isNew} autocomplete="off"
      ...${form.field("id")} />
    <${TextField} label=${t("admin.connections.address")} inputmode="url" autocomplete="off" ...${form.field("url")} />
    ${form.values.type === "openapi" && html`<${TextField} label=${t("admin.servers.path")} help=${t("admin.servers.pathHelp")}
      autocomplete="off" ...${form.field("path")} />`}
    <${SecretField} label=${t("admin.connections.key")} isStored=${entry.key === MASK} help=${t("admin.servers.keyHelp")}
      ...${form.field("key")} />
    <${TextField} label=${t("admin.connections.name")} autocomplete="off" ...${form.field("name")} />
    <${TextArea} label=${t("admin.forms.description")} rows=${2} ...${form.field("description")} />
    <${AccessFields} value=${form.values.grants} onChange=${(grants) => form.set("grants", grants)} />
    <${ServerTest} entry=${() => made(form.values)} />
    <${FormEnd} form=${form} verb=${t("admin.forms.save")} cancel=${() => close()} />
  </form>`;
}

function ServerTest({ entry }) {
  const [state, setState] = useState(null);
  const run = async () => {
    setState({ isBusy: true });
    try {
      setState({ offer: await post(`${PATH}/verify`, entry()) });
    } catch (error) {
      setState({ error });
    }
  };
  return html`<div class="admin-test">
    <${Button} icon="plug-zap" busy=${state?.isBusy} onClick=${run}>${t("admin.connections.test")}<//>
    <div role="status">${state?.offer && html`<p class="admin-good"><${Icon} name="circle-check" />
      ${state.offer.info.title} ${state.offer.info.version} · ${plural("admin.servers.tested", state.offer.specs.length)}</p>
      <ul class="admin-specs">${state.offer.specs.map((one) => html`<li key=${one.name}><code dir="ltr">${one.name}</code>
        <span class="help" dir="auto">${one.description}</span></li>`)}</ul>`}</div>
    <${TestFailure} error=${state?.error} />
  </div>`;
}
