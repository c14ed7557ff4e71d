/**
 * Chats as rows: a link, and beside it the menu of what can be done with the chat.
 */
import { html, useEffect, useRef, useState } from "#app/core/html";
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

/** Rows that come and go together, as they are near what is shown. */
const CHUNK = 50;
/** Distance in pixels at which rows are near. */
const NEAR = "1200px 0px";

/** Rows by their chat: a row whose chat is as before keeps its elements, so that long lists stay quick. */
const known = new WeakMap();

/** The rows of chats; only those near the shown part are in the document. @param {{chats: object[], isPinned?: boolean}} props */
export function ChatRows({ chats, isPinned = false, label }) {
  if (chats.length <= CHUNK) return html`<${Rows} chats=${chats} isPinned=${isPinned} label=${label} />`;
  const starts = Array.from({ length: Math.ceil(chats.length / CHUNK) }, (_, place) => place * CHUNK);
  return starts.map((start) => html`<${Chunk} key=${start} chats=${chats.slice(start, start + CHUNK)} isPinned=${isPinned} label=${label} />`);
}

function Chunk({ chats, isPinned, label }) {
  const element = useRef(null);
  const height = useRef(0);
  const [isNear, setNear] = useState(true);
  useEffect(() => {
    const root = element.current.closest(".sidebar-lists");
    const onChange = ([{ isIntersecting, boundingClientRect }]) => {
      // The focus stays where it is.
      if (!isIntersecting && element.current.contains(document.activeElement)) return;
      if (!isIntersecting) height.current = boundingClientRect.height || height.current;
      setNear(isIntersecting);
    };
    const observer = new IntersectionObserver(onChange, { root, rootMargin: NEAR });
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return html`<div ref=${element} style=${isNear ? {} : { blockSize: `${height.current}px` }}>
    ${isNear && html`<${Rows} chats=${chats} isPinned=${isPinned} label=${label} />`}
  </div>`;
}

function Rows({ chats, isPinned, label }) {
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
