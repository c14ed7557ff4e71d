/**
 * What the sidebar lists: folders, pinned chats, the chats of open folders and all others, page by page. The lists
 * follow the events of the account, so that all tabs and devices show the same.
 */
import { get } from "#app/core/api";
import { onEvent } from "#app/core/events";
import { batch, signal } from "#app/core/html";

/** Number of chats in a page of the gateway. */
export const PAGE_SIZE = 60;
/** Number of pages that a change reads anew; what is further down is read anew when it is scrolled to. */
const MAX_FRESH_PAGES = 5;
const REFRESH_MS = 250;
const EMPTY = { items: [], isDone: false, isLoading: false, error: null };

/** Folders by name: {id, name, parent_id, is_expanded}. */
export const folders = signal([]);
/** Pinned chats: {id, title, updated_at}. */
export const pinned = signal([]);
/** The chats outside folders that are not pinned: {items, isDone, isLoading, error}. */
export const loose = signal(EMPTY);
/** The same for each open folder, by its id. */
export const inFolder = signal({});
/** Ids of the chats that are being answered. */
export const active = signal(new Set());

const changed = new Set();
let timer = 0;
let isRunning = false;

/** Returns the list of a folder, or of the chats outside folders for null. */
export function listOf(folderId) {
  return folderId === null ? loose.value : (inFolder.value[folderId] ?? EMPTY);
}

function setList(folderId, list) {
  if (folderId === null) loose.value = list;
  else inFolder.value = { ...inFolder.peek(), [folderId]: list };
}

function peekList(folderId) {
  return folderId === null ? loose.peek() : (inFolder.peek()[folderId] ?? EMPTY);
}

function pageAddress(folderId, page) {
  const path = folderId === null ? "/api/v1/chats/" : `/api/v1/chats/folder/${encodeURIComponent(folderId)}/list`;
  return `${path}?page=${page}`;
}

/** Reads the next page of a list. @param {string | null} folderId */
export async function loadMore(folderId) {
  const before = peekList(folderId);
  if (before.isDone || before.isLoading) return;
  setList(folderId, { ...before, isLoading: true, error: null });
  try {
    const page = Math.floor(before.items.length / PAGE_SIZE) + 1;
    const found = await get(pageAddress(folderId, page));
    const now = peekList(folderId);
    const known = new Set(now.items.map((chat) => chat.id));
    const items = [...now.items, ...found.filter((chat) => !known.has(chat.id))];
    setList(folderId, { items, isDone: found.length < PAGE_SIZE, isLoading: false, error: null });
  } catch (error) {
    setList(folderId, { ...peekList(folderId), isLoading: false, error });
  }
}

/** Reads everything that is shown anew. */
async function refresh() {
  const ids = new Set(changed);
  changed.clear();
  const open = Object.keys(inFolder.peek());
  const [found, pins] = await Promise.all([readFolders(), get("/api/v1/chats/pinned?page=1")]);
  const there = new Set(found.map((folder) => folder.id));
  const shown = [null, ...open.filter((id) => there.has(id))];
  const lists = await Promise.all(shown.map((id) => freshList(id, ids)));
  batch(() => {
    folders.value = found;
    pinned.value = kept(pinned.peek(), pins);
    loose.value = lists[0];
    inFolder.value = Object.fromEntries(shown.slice(1).map((id, place) => [id, lists[place + 1]]));
  });
}

/** Returns the folders; none for an account that may have none. */
async function readFolders() {
  try {
    return await get("/api/v1/folders/");
  } catch (error) {
    if (error.status === 403) return [];
    throw error;
  }
}

async function freshList(folderId, ids) {
  const before = peekList(folderId);
  const count = Math.min(Math.max(Math.ceil(before.items.length / PAGE_SIZE), 1), MAX_FRESH_PAGES);
  const pages = await Promise.all(Array.from({ length: count }, (_, place) => get(pageAddress(folderId, place + 1))));
  const first = pages.flat();
  const isDone = pages.at(-1).length < PAGE_SIZE;
  const fresh = new Map(first.map((chat) => [chat.id, chat]));
  const tail = isDone ? [] : before.items.slice(count * PAGE_SIZE).filter((chat) => !fresh.has(chat.id) && !ids.has(chat.id));
  const items = kept(before.items, [...fresh.values(), ...tail]);
  return { items, isDone: isDone || (before.isDone && tail.length > 0), isLoading: false, error: null };
}

/** Returns new chats, with the former objects of those that are as before, whose rows need no new elements. */
function kept(before, now) {
  const known = new Map(before.map((chat) => [chat.id, chat]));
  return now.map((chat) => {
    const former = known.get(chat.id);
    return former && former.title === chat.title && former.updated_at === chat.updated_at ? former : chat;
  });
}

/** Reads the lists anew soon, once for several changes. @param {string} [chatId] of a chat that changed */
export function refreshSoon(chatId) {
  if (chatId) changed.add(chatId);
  clearTimeout(timer);
  timer = setTimeout(refreshNow, REFRESH_MS);
}

/** Reads the lists anew, one time after the other; a failure stands below the list. */
export async function refreshNow() {
  clearTimeout(timer);
  if (isRunning) return refreshSoon();
  isRunning = true;
  try {
    await refresh();
  } catch (error) {
    loose.value = { ...loose.peek(), isLoading: false, error };
  } finally {
    isRunning = false;
  }
}

/** Shows another title in all lists. */
function retitle(chatId, title) {
  const renamed = (items) => items.map((chat) => (chat.id === chatId ? { ...chat, title } : chat));
  batch(() => {
    pinned.value = renamed(pinned.peek());
    loose.value = { ...loose.peek(), items: renamed(loose.peek().items) };
    const lists = Object.entries(inFolder.peek());
    inFolder.value = Object.fromEntries(lists.map(([id, list]) => [id, { ...list, items: renamed(list.items) }]));
  });
}

/** Stops listing a folder that is closed. */
export function forgetFolder(folderId) {
  const { [folderId]: _, ...rest } = inFolder.peek();
  inFolder.value = rest;
}

function hear(event) {
  const { type, data, chat_id: chatId } = event;
  if (type === "chat:list") refreshSoon(data?.chat_id ?? chatId);
  else if (type === "chat:title") {
    const title = typeof data === "string" ? data : data?.title;
    if (typeof title === "string") retitle(chatId, title);
  } else if (type === "chat:active") {
    const ids = new Set(active.peek());
    if (data?.active) ids.add(chatId);
    else ids.delete(chatId);
    active.value = ids;
    refreshSoon(chatId);
  } else if (type === "stream:opened" && data?.gap) {
    active.value = new Set();
    refreshSoon();
  }
}

/** Reads the lists, and follows the events. @returns {() => void} stops it */
export function followChats() {
  loose.value = { ...EMPTY, isLoading: true };
  refreshNow();
  return onEvent(hear);
}
