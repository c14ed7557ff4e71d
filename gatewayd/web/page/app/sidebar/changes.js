/**
 * Changes of chats and folders. Each returns when the gateway has made it; the lists follow by its event, and here at
 * once. A failure is told in a notice.
 */
import { api, del, get, post } from "#app/core/api";
import { confirmDialog, openModule, promptDialog } from "#app/core/dialogs";
import { t } from "#app/core/messages";
import { location, navigate } from "#app/core/router";
import { toast } from "#app/core/toasts";
import { refreshNow } from "#app/sidebar/state";
import { attempt as tried } from "#app/ui/attempt";

/** Does something, tells of its failure, and reads the lists anew. @returns {Promise<boolean>} whether it is done */
export async function attempt(work) {
  const isDone = await tried(work);
  if (isDone) await refreshNow();
  return isDone;
}

const folderDialogs = () => import("#app/sidebar/folder_dialogs");
const chatPath = (chatId) => `/api/v1/chats/${encodeURIComponent(chatId)}`;
const folderPath = (folderId) => `/api/v1/folders/${encodeURIComponent(folderId)}`;

/** Sends a request whose answer, a whole chat, nobody needs. */
async function send(path, body) {
  const reply = await api("POST", path, body, { raw: true });
  await reply.body?.cancel();
}

/** Asks for another title of a chat. */
export async function renameChat(chat) {
  const title = await promptDialog({ title: t("sidebar.renameChat"), value: chat.title, verb: t("sidebar.rename") });
  if (title?.trim()) await attempt(() => post(`${chatPath(chat.id)}/branch`, { chat: { title: title.trim() } }));
}

/** Pins or unpins a chat. */
export const togglePinned = (chat) => attempt(() => send(`${chatPath(chat.id)}/pin`));

/** Archives or restores a chat, and offers to undo it. */
export async function toggleArchived(chat, { isArchived = false } = {}) {
  if (!(await attempt(() => send(`${chatPath(chat.id)}/archive`)))) return;
  if (isArchived) return;
  leave(chat.id);
  const action = { label: t("sidebar.undo"), run: () => attempt(() => send(`${chatPath(chat.id)}/archive`)) };
  toast("success", t("sidebar.archivedChat", { title: chat.title }), { action });
}

/** Copies a chat and opens the copy. */
export async function cloneChat(chat) {
  await attempt(async () => {
    const copy = await post(`${chatPath(chat.id)}/clone`, {});
    navigate(`/c/${copy.id}`);
  });
}

/** Deletes a chat when the reader agrees. @returns {Promise<boolean>} whether it is gone */
export async function removeChat(chat) {
  const text = t("sidebar.deleteChatText", { title: chat.title });
  const agreed = await confirmDialog({ title: t("sidebar.deleteChat"), text, verb: t("sidebar.deleteChat"), danger: true });
  if (!agreed || !(await attempt(() => del(chatPath(chat.id))))) return false;
  leave(chat.id);
  return true;
}

/** Goes to a new chat when this one is shown. */
function leave(chatId) {
  if (location.peek().path === `/c/${chatId}`) navigate("/", { replace: true });
}

/** Moves a chat into a folder, or out of all for null. */
export const placeChat = (chatId, folderId) =>
  attempt(() => send(`${chatPath(chatId)}/folder`, { folder_id: folderId }));

/** Asks for the folder of a chat. */
export async function chooseFolder(chat) {
  const chosen = await openModule(folderDialogs, "FolderPicker", { title: t("sidebar.moveChat", { title: chat.title }) });
  if (chosen !== undefined) await placeChat(chat.id, chosen);
}

/** Shows the link to a chat, or makes one. */
export const shareChat = (chat) => openModule(() => import("#app/sidebar/share_dialog"), "ShareDialog", { chat });

/** Shows the tags of a chat. */
export const tagChat = (chat) => openModule(() => import("#app/sidebar/tags_dialog"), "TagsDialog", { chat });

/** Asks for a name and makes a folder. @param {string | null} parentId */
export async function createFolder(parentId = null) {
  const name = await promptDialog({ title: t("sidebar.newFolder"), placeholder: t("sidebar.folderName"), verb: t("sidebar.create") });
  if (name?.trim()) await attempt(() => post("/api/v1/folders/", { name: name.trim(), parent_id: parentId }));
}

/** Asks for another name of a folder. */
export async function renameFolder(folder) {
  const name = await promptDialog({ title: t("sidebar.renameFolder"), value: folder.name, verb: t("sidebar.rename") });
  if (name?.trim()) await attempt(() => post(`${folderPath(folder.id)}/update`, { name: name.trim() }));
}

/** Moves a folder below another one, or to the top for null. */
export const moveFolder = (folderId, parentId) =>
  attempt(() => post(`${folderPath(folderId)}/update/parent`, { parent_id: parentId }));

/** Asks for the place of a folder. */
export async function chooseParent(folder) {
  const title = t("sidebar.moveFolder", { name: folder.name });
  const chosen = await openModule(folderDialogs, "FolderPicker", { title, moved: folder.id });
  if (chosen !== undefined) await moveFolder(folder.id, chosen);
}

/** Remembers whether a folder is open. */
export const expandFolder = (folder, isExpanded) =>
  attempt(() => post(`${folderPath(folder.id)}/update/expanded`, { is_expanded: isExpanded }));

/** Deletes a folder when the reader agrees, with its chats or without. */
export async function removeFolder(folder) {
  const chats = await get(`/api/v1/chats/folder/${encodeURIComponent(folder.id)}/list?page=1`).catch(() => []);
  const answer = await openModule(folderDialogs, "FolderRemoval", { folder, count: chats.length });
  if (answer) await attempt(() => del(`${folderPath(folder.id)}?delete_contents=${answer.deleteChats}`));
}
