/**
 * The folders with their chats.
 */
import { html, useEffect } from "#app/core/html";
import { t } from "#app/core/messages";
import { navigate } from "#app/core/router";
import { can } from "#app/core/session";
import {
  chooseParent,
  createFolder,
  expandFolder,
  moveFolder,
  placeChat,
  removeFolder,
  renameFolder,
} from "#app/sidebar/changes";
import { ChatRows } from "#app/sidebar/chat_rows";
import { CHAT_TYPE, FOLDER_TYPE, startDrag, useDropPlace } from "#app/sidebar/dragging";
import { folderRows, isInside } from "#app/sidebar/folder_tree";
import { folderOf, folders, forgetList, listOf, loadMore } from "#app/sidebar/state";
import { exportFolder } from "#app/sidebar/transfer";
import { Button, Icon, IconButton } from "#app/ui/controls";
import { Menu } from "#app/ui/menu";
import { ErrorNote } from "#app/ui/states";

const MAX_INDENTED = 8;

/** All folders; nothing for an account that may have none. */
export function FolderSection() {
  if (!can("features.folders")) return null;
  const rows = folderRows(folders.value, { isOpen: (folder) => folder.is_expanded });
  return html`<section class="sidebar-section" aria-labelledby="sidebar-folders">
    <div class="sidebar-heading">
      <h2 id="sidebar-folders">${t("sidebar.folders")}</h2>
      <${IconButton} icon="folder-plus" label=${t("sidebar.newFolder")} onClick=${() => createFolder()} />
    </div>
    ${rows.length > 0 && html`<ul class="folder-rows" aria-labelledby="sidebar-folders">
      ${rows.map((row) => html`<${FolderRow} key=${row.folder.id} ...${row} />`)}
    </ul>`}
  </section>`;
}

/** Puts what was dropped into a folder. */
function dropInto(folder, type, id) {
  if (type === CHAT_TYPE && folderOf(id) !== folder.id) void placeChat(id, folder.id);
  else if (type === FOLDER_TYPE && !isInside(folders.peek(), folder.id, id)) void moveFolder(id, folder.id);
}

function FolderRow({ folder, depth }) {
  const { isOver, handlers } = useDropPlace((type, id) => dropInto(folder, type, id));
  const isOpen = folder.is_expanded;
  useEffect(() => {
    if (!isOpen) return undefined;
    void loadMore(folder.id);
    return () => forgetList(folder.id);
  }, [isOpen, folder.id]);
  const onKeyDown = (event) => {
    if (event.key === "F2") void renameFolder(folder);
    else if (event.key === "Delete") void removeFolder(folder);
    else return;
    event.preventDefault();
  };
  return html`<li class="folder-row ${isOver ? "drop-over" : ""}" data-depth=${Math.min(depth, MAX_INDENTED)}
    draggable="true" onDragStart=${(event) => startDrag(event, FOLDER_TYPE, folder.id)} ...${handlers}>
    <div class="folder-head">
      <button type="button" class="folder-toggle" aria-expanded=${String(isOpen)} onKeyDown=${onKeyDown}
        onClick=${() => expandFolder(folder, !isOpen)}>
        <${Icon} name=${isOpen ? "folder-open" : "folder"} /><span dir="auto">${folder.name}</span>
      </button>
      <${Menu} label=${t("sidebar.folderMenu", { name: folder.name })} aria-label=${t("sidebar.folderMenu", { name: folder.name })}
        items=${menuOf(folder)} />
    </div>
    ${isOpen && html`<${FolderChats} folder=${folder} />`}
  </li>`;
}

function FolderChats({ folder }) {
  const list = listOf(folder.id);
  return html`<div class="folder-chats">
    <${ErrorNote} error=${list.error} retry=${() => loadMore(folder.id)} />
    ${list.isDone && list.items.length === 0 && html`<p class="help">${t("sidebar.emptyFolder")}</p>`}
    ${list.items.length > 0 && html`<${ChatRows} chats=${list.items} label=${t("sidebar.chatsOf", { name: folder.name })} />`}
    ${!list.isDone && list.items.length > 0 && html`<${Button} kind="plain" busy=${list.isLoading}
      onClick=${() => loadMore(folder.id)}>${t("sidebar.showMore")}<//>`}
  </div>`;
}

function menuOf(folder) {
  const items = [
    { label: t("sidebar.newChatIn"), icon: "square-pen", run: () => navigate(`/?folder=${encodeURIComponent(folder.id)}`) },
    { label: t("sidebar.rename"), icon: "pencil", run: () => renameFolder(folder) },
    { label: t("sidebar.newSubfolder"), icon: "folder-plus", run: () => createFolder(folder.id) },
    { label: t("sidebar.moveToFolder"), icon: "folder-input", run: () => chooseParent(folder) },
    can("chat.export") && { label: t("sidebar.exportFolder"), icon: "download", run: () => exportFolder(folder) },
    null,
    { label: t("sidebar.deleteFolder"), icon: "trash-2", danger: true, run: () => removeFolder(folder) },
  ];
  return items.filter((item) => item !== false);
}
