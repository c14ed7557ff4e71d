/**
 * What the sidebar lists: folders, pinned chats, the chats of open folders and all others, page by page. The lists
 * follow the events of the account, so that all tabs and devices show the same.
 */
import { get, post } from "#app/core/api";
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
/** Name of the list of pinned chats. */
export const PINNED = "pinned";
/** Name of the list of the chats outside folders that are not pinned. */
export const LOOSE = "loose";
/** Name of the list of the chats with the chosen tag. */
export const TAGGED = "tagged";
/** The tag whose chats are listed alone: {id, name}; null for none. */
export const chosenTag = signal(null);
/** The lists by their name, and those of open folders by the folder's id: {items, isDone, isLoading, error}. */
const lists = signal({});
/** Ids of the chats that are being answered. */
export const active = signal(new Set());

const changed = new Set();
let timer = 0;
let isRunning = false;

/** Returns a list of chats: {items: {id, title, updated_at}[], isDone, isLoading, error}. @param {string} name */
export function listOf(name) {
  return lists.value[name] ?? EMPTY;
}

const peekList = (name) => lists.peek()[name] ?? EMPTY;

function setList(name, list) {
  lists.value = { ...lists.peek(), [name]: list };
}

/** Returns the id of the open folder that lists a chat; undefined for a chat in none. */
export function folderOf(chatId) {
  const found = Object.entries(lists.peek()).find(([name, list]) => isFolder(name) && list.items.some((chat) => chat.id === chatId));
  return found?.[0];
}

const isFolder = (name) => ![PINNED, LOOSE, TAGGED].includes(name);

function readPage(name, page) {
  if (name === TAGGED) {
    return post("/api/v1/chats/tags", { name: chosenTag.peek().name, skip: (page - 1) * PAGE_SIZE, limit: PAGE_SIZE });
  }
  const paths = { [LOOSE]: "/api/v1/chats/", [PINNED]: "/api/v1/chats/pinned" };
  return get(`${paths[name] ?? `/api/v1/chats/folder/${encodeURIComponent(name)}/list`}?page=${page}`);
}

/** Lists the chats with one tag alone, or all again. @param {{id: string, name: string} | null} tag */
export function filterByTag(tag) {
  batch(() => {
    forgetList(TAGGED);
    chosenTag.value = tag;
  });
  if (tag) void loadMore(TAGGED);
}

/** Reads the next page of a list. @param {string} name */
export async function loadMore(name) {
  const before = peekList(name);
  if (before.isDone || before.isLoading) return;
  setList(name, { ...before, isLoading: true, error: null });
  try {
    const page = Math.floor(before.items.length / PAGE_SIZE) + 1;
    const tag = chosenTag.peek();
    const found = await readPage(name, page);
    if (name === TAGGED && tag !== chosenTag.peek()) return;
    const now = peekList(name);
    const known = new Set(now.items.map((chat) => chat.id));
    const items = [...now.items, ...found.filter((chat) => !known.has(chat.id))];
    setList(name, { items, isDone: found.length < PAGE_SIZE, isLoading: false, error: null });
  } catch (error) {
    setList(name, { ...peekList(name), isLoading: false, error });
  }
}

/** Reads everything that is shown anew. */
async function refresh() {
  const ids = new Set(changed);
  changed.clear();
  const found = await readFolders();
  const there = new Set(found.map((folder) => folder.id));
  const shown = Object.keys(lists.peek()).filter((name) => !isFolder(name) || there.has(name));
  const tag = chosenTag.peek();
  const fresh = await Promise.all(shown.map((name) => freshList(name, ids)));
  batch(() => {
    folders.value = found;
    // A folder that was opened meanwhile has a list of its own.
    const opened = Object.entries(lists.peek()).filter(([name]) => !shown.includes(name) && (there.has(name) || name === TAGGED));
    const read = shown.map((name, place) => [name, fresh[place]]);
    // Another tag was chosen while this one was read.
    const current = read.filter(([name]) => name !== TAGGED || tag === chosenTag.peek());
    lists.value = Object.fromEntries([...current, ...opened]);
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

async function freshList(name, ids) {
  const before = peekList(name);
  const count = Math.min(Math.max(Math.ceil(before.items.length / PAGE_SIZE), 1), MAX_FRESH_PAGES);
  const pages = await Promise.all(Array.from({ length: count }, (_, place) => readPage(name, place + 1)));
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
    setList(LOOSE, { ...peekList(LOOSE), isLoading: false, error });
  } finally {
    isRunning = false;
  }
}

/** Shows another title in all lists. */
function retitle(chatId, title) {
  const renamed = (items) => items.map((chat) => (chat.id === chatId ? { ...chat, title } : chat));
  const all = Object.entries(lists.peek());
  lists.value = Object.fromEntries(all.map(([name, list]) => [name, { ...list, items: renamed(list.items) }]));
}

/** Stops listing a folder that is closed, for instance. @param {string} name of the list */
export function forgetList(name) {
  const { [name]: _, ...rest } = lists.peek();
  lists.value = rest;
}

function hear(event) {
  const { type, data, chat_id: chatId } = event;
  if (type === "chat:list" || (type === "chat:tags" && chosenTag.peek())) refreshSoon(data?.chat_id ?? chatId);
  else if (type === "chat:title") {
    const title = typeof data === "string" ? data : data?.title;
    if (typeof title === "string") retitle(chatId, title);
  } else if (type === "chat:active" && chatId) {
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
  batch(() => {
    // What another account saw in this tab is not for this one.
    folders.value = [];
    active.value = new Set();
    chosenTag.value = null;
    lists.value = { [PINNED]: EMPTY, [LOOSE]: { ...EMPTY, isLoading: true } };
  });
  void refreshNow();
  return onEvent(hear);
}
