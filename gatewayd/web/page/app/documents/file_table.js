/**
 * Directories and files as a table: their state, and what can be done with each.
 */
import { post } from "#app/core/api";
import { confirmDialog, openDialog, promptDialog } from "#app/core/dialogs";
import { html, useState } from "#app/core/html";
import { formatBytes, formatRelative, formatTime, t } from "#app/core/messages";
import { Link } from "#app/core/router";
import { me } from "#app/core/session";
import { collectionPath, contentAddress, filePath, send } from "#app/documents/addresses";
import { DirectoryPicker, DirectoryRemoval } from "#app/documents/directory_dialogs";
import { openFile } from "#app/documents/file_dialog";
import { FileSelection } from "#app/documents/file_selection";
import { attempt } from "#app/ui/attempt";
import { Button, Icon } from "#app/ui/controls";
import { Menu } from "#app/ui/menu";
import { Chip } from "#app/ui/states";
import { Table } from "#app/ui/table";

/** A page of a collection. @param {{collection: object, list: object, page: number, query: string, onChange: () => void}} props */
export function FileTable({ collection, list, page, query, onChange }) {
  const directories = page === 1 && !query ? list.directories : [];
  const rows = [
    ...directories.map((directory) => ({ id: `d ${directory.id}`, directory })),
    ...list.items.map((file) => ({ id: file.id, file })),
  ];
  const columns = [
    { key: "name", label: t("documents.name"), cell: (row) => html`<${Name} row=${row} collection=${collection} />` },
    { key: "status", label: t("documents.status"), cell: (row) => row.file && html`<${Status} file=${row.file} collection=${collection} onChange=${onChange} />` },
    { key: "size", label: t("documents.size"), numeric: true, cell: (row) => row.file && formatBytes(row.file.meta.size ?? 0) },
    { key: "time", label: t("documents.added"), cell: (row) => html`<${Added} of=${row.file ?? row.directory} />` },
    { key: "menu", label: t("documents.actions"), hideLabel: true, cell: (row) => html`<${RowMenu} row=${row} collection=${collection} onChange=${onChange} />` },
  ];
  const [selected, setSelected] = useState(new Set());
  const chosen = list.items.filter((file) => selected.has(file.id));
  const selection = collection.write_access && { selected, onSelect: setSelected };
  return html`<${FileSelection} collection=${collection} files=${chosen} clear=${() => setSelected(new Set())} onChange=${onChange} />
    <${Table} label=${t("documents.filesTab")} rows=${rows} columns=${columns} ...${selection}
      isSelectable=${(row) => Boolean(row.file)} rowName=${(row) => (row.file ?? row.directory).filename} />`;
}

function Added({ of }) {
  return html`<time title=${formatTime(of.created_at)}>${formatRelative(of.created_at)}</time>`;
}

function Name({ row, collection }) {
  if (row.directory) {
    return html`<span class="file-name"><${Icon} name="folder" />
      <${Link} href="/documents/${collection.id}?dir=${row.directory.id}" current=${false} dir="auto">${row.directory.name}<//></span>`;
  }
  return html`<span class="file-name"><${Icon} name="file-text" />
    <button type="button" class="link" aria-haspopup="dialog" dir="auto" onClick=${() => openFile(row.file)}>${row.file.filename}</button></span>`;
}

function Status({ file, collection, onChange }) {
  const { status, error } = file.data;
  if (status === "pending") return html`<${Chip} kind="accent" icon="loader-circle">${t("documents.isProcessed")}<//>`;
  if (status !== "failed") {
    const blank = file.meta.blank_pages;
    return html`<span class="row"><${Chip} kind="success" icon="check">${t("documents.isReady")}<//>
      ${blank > 0 && html`<span class="help">${t("documents.blankPages", { count: blank, pages: file.meta.pages })}</span>`}</span>`;
  }
  const retry = async () => {
    if (await attempt(() => post(`${filePath(file.id)}/process`))) onChange();
  };
  return html`<span class="file-failure"><${Chip} kind="danger" icon="circle-alert">${t("documents.hasFailed")}<//>
    <span class="help" dir="auto">${error}</span>
    ${collection.write_access && html`<${Button} kind="plain" onClick=${retry}
      aria-label=${t("documents.retryFile", { name: file.filename })}>${t("common.tryAgain")}<//>`}</span>`;
}

function RowMenu({ row, collection, onChange }) {
  const { name, items } = row.directory ? directoryMenu(row.directory, collection, onChange) : fileMenu(row.file, collection, onChange);
  const kept = items.filter((item) => item !== false);
  return kept.length > 0 && html`<${Menu} label=${t("documents.menuOf", { name })} items=${kept} />`;
}

function fileMenu(file, collection, onChange) {
  const path = collectionPath(collection.id);
  const done = (work) => async () => (await attempt(work)) && onChange();
  const rename = async () => {
    const filename = await promptDialog({ title: t("documents.renameFile"), value: file.filename, verb: t("documents.rename") });
    if (filename?.trim()) await done(() => post(`${filePath(file.id)}/rename`, { filename: filename.trim() }))();
  };
  const move = async () => {
    const directoryId = await openDialog(DirectoryPicker, { title: t("documents.moveTitle", { name: file.filename }), collection });
    const body = { file_id: file.id, directory_id: directoryId };
    if (directoryId !== undefined) await done(() => post(`${path}/file/move`, body))();
  };
  const remove = async () => {
    const text = t("documents.removeFileText", { name: file.filename });
    const agreed = await confirmDialog({ title: t("documents.removeFile"), text, verb: t("documents.removeFile"), danger: true });
    if (agreed) await done(() => send("POST", `${path}/file/remove`, { file_id: file.id }))();
  };
  const open = () => window.open(contentAddress(file.id), "_blank", "noopener");
  const isOwn = file.user_id === me.value.id || me.value.role === "admin";
  return {
    name: file.filename,
    items: [
      { label: t("documents.showText"), icon: "file-text", run: () => openFile(file) },
      { label: t("documents.openFile"), icon: "external-link", run: open },
      collection.write_access && isOwn && { label: t("documents.rename"), icon: "pencil", run: rename },
      collection.write_access && { label: t("documents.move"), icon: "folder-input", run: move },
      collection.write_access && { label: t("documents.removeFile"), icon: "trash-2", danger: true, run: remove },
    ],
  };
}

function directoryMenu(directory, collection, onChange) {
  if (!collection.write_access) return { name: directory.name, items: [] };
  const path = `${collectionPath(collection.id)}/dirs/${encodeURIComponent(directory.id)}`;
  const done = (work) => async () => (await attempt(work)) && onChange();
  const rename = async () => {
    const name = await promptDialog({ title: t("documents.renameDirectory"), value: directory.name, verb: t("documents.rename") });
    if (name?.trim()) await done(() => post(`${path}/update`, { name: name.trim() }))();
  };
  const move = async () => {
    const title = t("documents.moveTitle", { name: directory.name });
    const parentId = await openDialog(DirectoryPicker, { title, collection, without: directory.id });
    if (parentId !== undefined) await done(() => post(`${path}/update`, { parent_id: parentId }))();
  };
  const remove = async () => {
    const answer = await openDialog(DirectoryRemoval, { directory });
    if (answer) await done(() => send("DELETE", `${path}/delete?move_files=${!answer.removeFiles}`))();
  };
  return {
    name: directory.name,
    items: [
      { label: t("documents.rename"), icon: "pencil", run: rename },
      { label: t("documents.move"), icon: "folder-input", run: move },
      { label: t("documents.removeDirectory"), icon: "trash-2", danger: true, run: remove },
    ],
  };
}
