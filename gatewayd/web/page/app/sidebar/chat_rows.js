/**
 * Chats as rows: a link, and beside it the menu of what can be done with the chat.
 */
import { html } from "#app/core/html";
import { language, t } from "#app/core/messages";
import { Link, location } from "#app/core/router";
import { can } from "#app/core/session";
import {
  chooseFolder,
  cloneChat,
  removeChat,
  renameChat,
  shareChat,
  tagChat,
  toggleArchived,
  togglePinned,
} from "#app/sidebar/changes";
import { CHAT_TYPE, startDrag } from "#app/sidebar/dragging";
import { active } from "#app/sidebar/state";
import { exportChat } from "#app/sidebar/transfer";
import { Icon } from "#app/ui/controls";
import { Menu } from "#app/ui/menu";

/** Rows by their chat: a row whose chat is as before keeps its elements, so that long lists stay quick. */
const known = new WeakMap();

/** The rows of chats. @param {{chats: object[], isPinned?: boolean}} props */
export function ChatRows({ chats, isPinned = false, label }) {
  const { path } = location.value;
  const running = active.value;
  return html`<ul class="chat-rows" aria-label=${label}>
    ${chats.map((chat) => rowOf(chat, { isCurrent: path === `/c/${chat.id}`, isActive: running.has(chat.id), isPinned }))}
  </ul>`;
}

function rowOf(chat, state) {
  const key = `${language.value} ${state.isCurrent} ${state.isActive} ${state.isPinned}`;
  const before = known.get(chat);
  if (before?.key === key) return before.row;
  const row = html`<${ChatRow} key=${chat.id} chat=${chat} ...${state} />`;
  known.set(chat, { key, row });
  return row;
}

function ChatRow({ chat, isCurrent, isActive, isPinned }) {
  const title = chat.title || t("sidebar.untitled");
  const drag = (event) => startDrag(event, CHAT_TYPE, chat.id);
  const onKeyDown = (event) => {
    if (event.key === "F2") void renameChat(chat);
    else if (event.key === "Delete" && can("chat.delete")) void removeAndFocus(chat, event.currentTarget.closest("li"));
    else return;
    event.preventDefault();
  };
  return html`<li class="chat-row" draggable="true" onDragStart=${drag}>
    <${Link} href="/c/${chat.id}" current=${isCurrent} draggable="false" title=${title} onKeyDown=${onKeyDown}>
      <bdi>${title}</bdi>
    <//>
    ${isActive && html`<span class="running"><${Icon} name="loader-circle" size=${14} />
      <span class="hidden">${t("sidebar.answering")}</span></span>`}
    <${Menu} label=${t("sidebar.chatMenu", { title })} items=${menuOf(chat, isPinned)} aria-label=${t("sidebar.chatMenu", { title })} />
  </li>`;
}

function menuOf(chat, isPinned) {
  const items = [
    { label: t("sidebar.rename"), icon: "pencil", run: () => renameChat(chat) },
    { label: t(isPinned ? "sidebar.unpin" : "sidebar.pin"), icon: isPinned ? "pin-off" : "pin", run: () => togglePinned(chat) },
    can("features.folders") && { label: t("sidebar.moveToFolder"), icon: "folder-input", run: () => chooseFolder(chat) },
    { label: t("sidebar.editTags"), icon: "tag", run: () => tagChat(chat) },
    null,
    can("chat.share") && { label: t("sidebar.share"), icon: "share-2", run: () => shareChat(chat) },
    { label: t("sidebar.clone"), icon: "copy", run: () => cloneChat(chat) },
    can("chat.export") && { label: t("sidebar.export"), icon: "download", run: () => exportChat(chat) },
    null,
    { label: t("sidebar.archive"), icon: "archive", run: () => toggleArchived(chat) },
    can("chat.delete") && { label: t("sidebar.delete"), icon: "trash-2", danger: true, run: () => removeAndFocus(chat) },
  ];
  return items.filter((item) => item !== false);
}

/** Deletes a chat, and gives the focus to a row beside it. */
async function removeAndFocus(chat) {
  const links = [...document.querySelectorAll(".sidebar-lists .chat-row > a")];
  const at = links.findIndex((link) => link.getAttribute("href") === `/c/${chat.id}`);
  if (await removeChat(chat)) (links[at + 1] ?? links[at - 1] ?? document.querySelector(".sidebar-new"))?.focus();
}
