/**
 * The list of functions or tools, and the way to their editor, valves, import and export.
 */
import { del, get, post } from "#app/core/api";
import { confirmDialog, openDialog } from "#app/core/dialogs";
import { html, useRef, useState } from "#app/core/html";
import { formatRelative, t } from "#app/core/messages";
import { location, navigate } from "#app/core/router";
import { toast } from "#app/core/toasts";
import { describeAccess } from "#app/admin/access";
import { RowSwitch, download } from "#app/admin/forms";
import { AdminFrame, Waiting } from "#app/admin/frame";
import { useResource } from "#app/ui/resource";
import { PluginEditor } from "#app/admin/plugin_editor";
import { ValvesForm } from "#app/admin/valves";
import { Button, Chip, EmptyState, ErrorNote, Icon, Menu, SearchField, Table } from "#app/ui/index";

const MAX_IMPORT_BYTES = 64 * 2 ** 20;

/** @param {{family: "functions" | "tools", starter: string}} props `starter` is the source of a new one */
export function Plugins({ family, starter }) {
  const { query } = location.value;
  const [source, setSource] = useState("");
  const show = (search) => navigate(`/admin/${family}${search}`);
  if (query.edit !== undefined || query.new !== undefined) {
    const id = query.edit ?? "";
    const close = (isSaved) => {
      if (isSaved) toast("success", t("admin.plugins.saved"));
      setSource("");
      show("");
    };
    return html`<${AdminFrame} title=${id ? t("admin.forms.editOf", { name: id }) : t(`admin.plugins.add.${family}`)}>
      <${PluginEditor} key=${id} family=${family} id=${id} start=${source || starter} close=${close} />
    <//>`;
  }
  const create = (content) => {
    setSource(content);
    show("?new=1");
  };
  return html`<${List} family=${family} show=${show} create=${create} />`;
}

function List({ family, show, create }) {
  const list = useResource(() => get(`/api/v1/${family}/list`), [family]);
  const [text, setText] = useState("");
  const [failure, setFailure] = useState(null);
  const attempt = async (act) => {
    setFailure(null);
    try {
      await act();
    } catch (error) {
      setFailure(error);
    }
    await list.reload();
  };
  const actions = makeActions(family, show, attempt, list.reload);
  const found = (list.value ?? []).filter((one) => `${one.id} ${one.name}`.toLowerCase().includes(text.trim().toLowerCase()));
  const buttons = html`<${ImportButton} family=${family} attempt=${attempt} create=${create} />
    <${Button} icon="download" onClick=${() => attempt(() => exportAll(family))}>${t("admin.plugins.export")}<//>
    <${Button} kind="primary" icon="plus" onClick=${() => create("")}>${t(`admin.plugins.add.${family}`)}<//>`;
  return html`<${AdminFrame} title=${t(`account.nav.${family}`)} help=${t(`admin.plugins.help.${family}`)} actions=${buttons}>
    <${SearchField} label=${t(`admin.plugins.search.${family}`)} value=${text} onInput=${setText} />
    <${ErrorNote} error=${failure} />
    ${list.value === undefined
      ? html`<${Waiting} of=${list} />`
      : html`<${Table} label=${t(`account.nav.${family}`)} rows=${found} columns=${columnsOf(family, actions)} rowName=${(row) => row.name}
          empty=${html`<${EmptyState} icon="puzzle" title=${t(`admin.plugins.none.${family}`)} text=${t(`admin.plugins.noneHelp.${family}`)} />`} />`}
  <//>`;
}

function makeActions(family, show, attempt, reload) {
  const path = (row) => `/api/v1/${family}/id/${encodeURIComponent(row.id)}`;
  return {
    edit: (row) => show(`?edit=${encodeURIComponent(row.id)}`),
    valves: (row) => openDialog(ValvesForm, { family, plugin: row }).then((isSaved) => isSaved && reload()),
    toggle: (row) => attempt(() => post(`${path(row)}/toggle`)),
    toggleGlobal: (row) => attempt(() => post(`${path(row)}/toggle/global`)),
    save: (row) => attempt(async () => download(`${row.id}.py`, (await get(path(row))).content, "text/x-python")),
    remove: async (row) => {
      const asked = { title: t("admin.plugins.removeTitle", { name: row.name }), text: t("admin.plugins.removeText") };
      if (await confirmDialog({ ...asked, verb: t("admin.plugins.removeVerb"), danger: true })) await attempt(() => del(`${path(row)}/delete`));
    },
  };
}

function columnsOf(family, actions) {
  const own = family === "functions" ? functionColumns(actions) : [
    { key: "access", label: t("admin.access.label"), cell: (row) => describeAccess(row.access_grants) },
  ];
  return [
    { key: "name", label: t("admin.plugins.name"), sort: (row) => row.name, cell: nameCell },
    ...own,
    { key: "problem", label: t("admin.plugins.problem"), cell: problemCell },
    { key: "act", label: t("admin.forms.actions"), hideLabel: true, cell: (row) => html`<${Menu}
      label=${t("admin.forms.actionsOf", { name: row.name })} items=${menuOf(row, actions)} />` },
  ];
}

function functionColumns(actions) {
  const toggle = (key, act) => ({
    key,
    label: t(`admin.plugins.${key}`),
    cell: (row) => html`<${RowSwitch} label=${t(`admin.plugins.${key}Of`, { name: row.name })} checked=${row[key]} change=${() => act(row)} />`,
  });
  const kind = (row) => t(`admin.plugins.kinds.${row.type}`);
  return [
    { key: "type", label: t("admin.plugins.kind"), sort: kind, cell: (row) => html`<${Chip}>${kind(row)}<//>` },
    toggle("is_active", actions.toggle),
    { ...toggle("is_global", actions.toggleGlobal), cell: (row) => (row.type === "pipe" ? null : toggle("is_global", actions.toggleGlobal).cell(row)) },
  ];
}

function nameCell(row) {
  return html`<div class="admin-name"><strong dir="auto">${row.name}</strong>
    <span class="help" dir="ltr">${row.id}</span>
    ${row.meta?.description && html`<span class="help" dir="auto">${row.meta.description}</span>`}
    ${row.origin !== "database" && html`<span class="help origin"><${Icon} name="lock" size=${14} />
      ${row.path ? t("admin.forms.lockedBy", { origin: row.path }) : t("admin.plugins.builtin")}</span>`}</div>`;
}

function problemCell(row) {
  if (!row.error) return html`<span class="help">${t("admin.plugins.noProblem")}</span>`;
  const said = row.error.at ? `${row.error.message} (${formatRelative(row.error.at)})` : row.error.message;
  return html`<div class="admin-problem"><${Icon} name="triangle-alert" size=${16} /><span class="help" dir="auto">${said}</span></div>`;
}

function menuOf(row, actions) {
  const isOwn = row.origin === "database";
  return [
    { label: t(isOwn ? "admin.forms.edit" : "admin.plugins.view"), icon: isOwn ? "pencil" : "eye", run: () => actions.edit(row) },
    { label: t("admin.plugins.valves"), icon: "sliders-horizontal", run: () => actions.valves(row) },
    { label: t("admin.plugins.download"), icon: "download", run: () => actions.save(row) },
    ...(isOwn ? [null, { label: t("admin.plugins.removeVerb"), icon: "trash-2", danger: true, run: () => actions.remove(row) }] : []),
  ];
}

async function exportAll(family) {
  download(`${family}.json`, JSON.stringify(await get(`/api/v1/${family}/export`), null, 2));
}

/** A .py file opens in the editor; each plugin of a .json file, as the export writes it, is installed. */
function ImportButton({ family, attempt, create }) {
  const field = useRef(null);
  const read = async (file) => {
    if (file.size > MAX_IMPORT_BYTES) throw new Error(t("errors.tooLarge"));
    const text = await file.text();
    if (!file.name.endsWith(".json")) return create(text);
    let plugins;
    try {
      plugins = [JSON.parse(text)].flat();
    } catch {
      throw new Error(t("admin.plugins.importFault"));
    }
    for (const { id, name, content, meta } of plugins) {
      await post(`/api/v1/${family}/create`, { id, name, content, meta: { description: meta?.description } });
    }
    return toast("success", t("admin.plugins.imported"));
  };
  const onChange = (event) => {
    const [file] = event.target.files;
    event.target.value = "";
    if (file) attempt(() => read(file));
  };
  return html`<input type="file" hidden ref=${field} accept=".py,.json" onChange=${onChange} aria-label=${t("admin.plugins.importFile")} />
    <${Button} icon="upload" onClick=${() => field.current.click()}>${t("admin.plugins.importFile")}<//>`;
}
