/**
 * The sidebar: ways to all places, folders, and the chats in the order of their last change.
 */
import { openModule } from "#app/core/dialogs";
import { html, useEffect, useRef } from "#app/core/html";
import { t } from "#app/core/messages";
import { Link, navigate } from "#app/core/router";
import { me } from "#app/core/session";
import { shortcut } from "#app/core/shortcuts";
import { moveFolder, placeChat } from "#app/sidebar/changes";
import { ChatRows } from "#app/sidebar/chat_rows";
import { CHAT_TYPE, FOLDER_TYPE, useDropPlace } from "#app/sidebar/dragging";
import { FolderSection } from "#app/sidebar/folder_section";
import {
  chosenTag,
  filterByTag,
  folderOf,
  folders,
  followChats,
  listOf,
  loadMore,
  LOOSE,
  PINNED,
  refreshNow,
  TAGGED,
} from "#app/sidebar/state";
import { groupByTime } from "#app/sidebar/time_groups";
import { UserMenu } from "#app/sidebar/user_menu";
import { Button, Icon, IconButton } from "#app/ui/controls";
import { ErrorNote, Skeleton } from "#app/ui/states";

/** Distance to the end of the list, in pixels, at which more is read. */
const AHEAD = 600;

let isSearching = false;

/** Opens the search, once. */
async function openSearch() {
  if (isSearching) return;
  isSearching = true;
  await openModule(() => import("#app/sidebar/search_dialog"), "SearchDialog", { wide: true });
  isSearching = false;
}

/** The sidebar of an account. */
export default function Sidebar() {
  const isPending = me.value.role === "pending";
  useEffect(() => (isPending ? undefined : followChats()), [me.value.id, isPending]);
  useEffect(() => {
    const removers = [
      shortcut("mod+k", openSearch, "sidebar.searchChats"),
      shortcut("mod+shift+o", () => navigate("/"), "common.newChat"),
    ];
    return () => removers.forEach((remove) => remove());
  }, []);
  if (isPending) return html`<div class="sidebar"><div class="sidebar-foot"><${UserMenu} /></div></div>`;
  return html`<div class="sidebar">
    <${Places} />
    <${Lists} />
    <div class="sidebar-foot"><${UserMenu} /></div>
  </div>`;
}

function Places() {
  return html`<nav class="sidebar-places" aria-label=${t("sidebar.places")}><ul>
    <li><${Link} class="sidebar-new" href="/"><${Icon} name="square-pen" />${t("common.newChat")}<//></li>
    <li><button type="button" onClick=${openSearch} aria-haspopup="dialog"><${Icon} name="search" />${t("sidebar.searchChats")}</button></li>
    <li><${Link} href="/overview"><${Icon} name="heart" />${t("sidebar.favourites")}<//></li>
    <li><${Link} href="/documents"><${Icon} name="library" />${t("common.documents")}<//></li>
  </ul></nav>`;
}

/** Moves the focus between the rows of all lists. */
function moveInLists(event) {
  if (!["ArrowDown", "ArrowUp"].includes(event.key) || !event.target.matches(".chat-row > a, .folder-toggle")) return;
  const rows = [...event.currentTarget.querySelectorAll(".chat-row > a, .folder-toggle")];
  const next = rows[rows.indexOf(event.target) + (event.key === "ArrowDown" ? 1 : -1)];
  if (!next) return;
  event.preventDefault();
  next.focus();
}

function Lists() {
  const scroller = useRef(null);
  const drop = (type, id) => {
    if (type === CHAT_TYPE && folderOf(id)) void placeChat(id, null);
    else if (type === FOLDER_TYPE && folders.peek().find((one) => one.id === id)?.parent_id) void moveFolder(id, null);
  };
  const { isOver, handlers } = useDropPlace(drop);
  return html`<nav class="sidebar-lists ${isOver ? "drop-over" : ""}" aria-label=${t("sidebar.chatList")} ref=${scroller}
    onKeyDown=${moveInLists} ...${handlers}>
    ${chosenTag.value
      ? html`<${TaggedChats} tag=${chosenTag.value} />`
      : html`<${PinnedChats} /><${FolderSection} /><${LooseChats} scroller=${scroller} />`}
  </nav>`;
}

const chooseTag = () => openModule(() => import("#app/sidebar/tag_filter"), "TagFilterDialog");

/** The chats with one tag, wherever they are. */
function TaggedChats({ tag }) {
  const list = listOf(TAGGED);
  const isEmpty = list.isDone && list.items.length === 0;
  const title = t("sidebar.chatsWithTag", { name: tag.name });
  return html`<section class="sidebar-section" aria-labelledby="sidebar-tagged">
    <div class="sidebar-heading">
      <h2 id="sidebar-tagged"><bdi>${title}</bdi></h2>
      <${IconButton} icon="tag" label=${t("sidebar.filterByTag")} pressed=${true} onClick=${chooseTag} />
      <${IconButton} icon="x" label=${t("sidebar.allChats")} onClick=${() => filterByTag(null)} />
    </div>
    <${ChatRows} chats=${list.items} label=${title} />
    ${isEmpty && html`<p class="help sidebar-empty">${t("sidebar.nothingFound")}</p>`}
    <${ErrorNote} error=${list.error} retry=${() => loadMore(TAGGED)} />
    ${!list.isDone && html`<${Button} kind="plain" busy=${list.isLoading} onClick=${() => loadMore(TAGGED)}>${t("sidebar.showMore")}<//>`}
  </section>`;
}

function PinnedChats() {
  const list = listOf(PINNED);
  if (list.items.length === 0) return null;
  return html`<section class="sidebar-section" aria-labelledby="sidebar-pinned">
    <div class="sidebar-heading"><h2 id="sidebar-pinned">${t("sidebar.pinned")}</h2></div>
    <${ChatRows} chats=${list.items} isPinned label=${t("sidebar.pinned")} />
    ${!list.isDone && html`<${Button} kind="plain" busy=${list.isLoading} onClick=${() => loadMore(PINNED)}>${t("sidebar.showMore")}<//>`}
  </section>`;
}

function LooseChats({ scroller }) {
  const list = listOf(LOOSE);
  const isEmpty = list.isDone && list.items.length === 0 && listOf(PINNED).items.length === 0;
  const retry = list.items.length > 0 ? () => loadMore(LOOSE) : refreshNow;
  return html`<section class="sidebar-section" aria-labelledby="sidebar-chats">
    <div class="sidebar-heading"><h2 id="sidebar-chats">${t("sidebar.chatList")}</h2>
      <${IconButton} icon="tag" label=${t("sidebar.filterByTag")} onClick=${chooseTag} /></div>
    ${groupByTime(list.items).map(({ key, label, chats }) => html`<div key=${key} class="time-group">
      <h3>${label}</h3><${ChatRows} chats=${chats} label=${label} />
    </div>`)}
    ${isEmpty && html`<p class="help sidebar-empty">${t("sidebar.noChats")}</p>`}
    <${ErrorNote} error=${list.error} retry=${retry} />
    ${list.isLoading && list.items.length === 0 && html`<${Skeleton} lines=${5} />`}
    ${!list.isDone && !list.error && list.items.length > 0 && html`<${Sentinel} scroller=${scroller} count=${list.items.length} />`}
  </section>`;
}

/** What reads more before the reader has reached the end of the list. */
function Sentinel({ scroller, count }) {
  const element = useRef(null);
  useEffect(() => {
    const onSight = ([entry]) => entry.isIntersecting && void loadMore(LOOSE);
    const observer = new IntersectionObserver(onSight, { root: scroller.current, rootMargin: `0px 0px ${AHEAD}px 0px` });
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [count]);
  return html`<div ref=${element} class="sidebar-more">
    <${Button} kind="plain" onClick=${() => loadMore(LOOSE)}>${t("sidebar.showMore")}<//>
  </div>`;
}
