/**
 * Dialogs about folders: the choice of one, which moves by keyboard what can also be dragged, and their deletion.
 */
import { html, useState } from "#app/core/html";
import { plural, t } from "#app/core/messages";
import { can } from "#app/core/session";
import { folderRows } from "#app/sidebar/folder_tree";
import { folders, PAGE_SIZE } from "#app/sidebar/state";
import { Button, Icon } from "#app/ui/controls";
import { Checkbox } from "#app/ui/fields";

/**
 * A list of all folders; its answer is the id of the chosen one, null for none.
 * @param {{title: string, moved?: string}} props with `moved`, a folder that cannot be inside itself
 */
export function FolderPicker({ title, moved, titleId, close }) {
  const rows = folderRows(folders.value, { without: moved });
  const move = (event) => {
    const buttons = [...event.currentTarget.querySelectorAll("button")];
    const at = buttons.indexOf(document.activeElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (next === undefined || !buttons[next]) return;
    event.preventDefault();
    buttons[next].focus();
  };
  return html`<h2 id=${titleId} dir="auto">${title}</h2>
    <ul class="folder-picker" onKeyDown=${move}>
      <li><button type="button" class="picker-row" autofocus onClick=${() => close(null)}>
        <${Icon} name="house" />${t(moved ? "sidebar.topFolder" : "sidebar.noFolder")}</button></li>
      ${rows.map(({ folder, depth }) => html`<li key=${folder.id} data-depth=${Math.min(depth, 8)}>
        <button type="button" class="picker-row" onClick=${() => close(folder.id)}>
          <${Icon} name="folder" /><span dir="auto">${folder.name}</span></button></li>`)}
    </ul>
    <div class="dialog-buttons"><${Button} onClick=${() => close()}>${t("common.cancel")}<//></div>`;
}

/** Asks whether the chats of a folder go with it; its answer is {deleteChats}. */
export function FolderRemoval({ folder, count, titleId, close }) {
  const [isWhole, setWhole] = useState(false);
  const submit = (event) => {
    event.preventDefault();
    close({ deleteChats: isWhole });
  };
  const amount = count === PAGE_SIZE ? t("sidebar.manyChats", { count }) : plural("sidebar.chats", count);
  return html`<form method="dialog" onSubmit=${submit}>
    <h2 id=${titleId}>${t("sidebar.deleteFolder")}</h2>
    <p class="dialog-text" dir="auto">${t("sidebar.deleteFolderText", { name: folder.name, chats: amount })}</p>
    ${can("chat.delete") && html`<${Checkbox} label=${t("sidebar.deleteChatsToo")} help=${t("sidebar.deleteChatsHelp")}
      checked=${isWhole} onChange=${setWhole} />`}
    <div class="dialog-buttons">
      <${Button} onClick=${() => close()}>${t("common.cancel")}<//>
      <${Button} kind="danger" type="submit">${t(isWhole ? "sidebar.deleteFolderAndChats" : "sidebar.deleteFolder")}<//>
    </div>
  </form>`;
}
