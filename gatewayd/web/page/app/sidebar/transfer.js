/**
 * Chats as files: export of one or of all, and import.
 */
import { api, upload } from "#app/core/api";
import { plural, t } from "#app/core/messages";
import { toast } from "#app/core/toasts";
import { attempt } from "#app/sidebar/changes";

/** Characters of a file name that some file systems refuse. */
const FORBIDDEN = /[\\/:*?"<>|\p{C}]+/gu;
const MAX_NAME = 80;
const KEEP_MS = 60000;

/** Gives the reader a file. @param {Blob} blob @param {string} name */
function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEEP_MS);
}

const fileName = (title) => `${title.replace(FORBIDDEN, " ").trim().slice(0, MAX_NAME) || t("sidebar.chat")}.json`;

async function exportFrom(path, name) {
  await attempt(async () => {
    const reply = await api("GET", path, undefined, { raw: true });
    save(await reply.blob(), name);
  });
}

/** Saves one chat, in the form that import takes. */
export const exportChat = (chat) => exportFrom(`/api/v1/chats/${encodeURIComponent(chat.id)}/export`, fileName(chat.title));

/** Saves the chats of a folder. */
export const exportFolder = (folder) =>
  exportFrom(`/api/v1/chats/folder/${encodeURIComponent(folder.id)}`, fileName(folder.name));

/** Saves all chats of the account. */
export const exportAll = () => exportFrom("/api/v1/chats/all", `${t("sidebar.chatsFile")}.json`);

/** Lets the reader choose files with chats, and imports them. */
export function importChats() {
  const field = document.createElement("input");
  field.type = "file";
  field.accept = ".json,application/json";
  field.multiple = true;
  field.onchange = () => void importFiles([...field.files]);
  field.click();
}

/** Imports files one after the other. A file may be large: it is sent as it is, not parsed here. @param {File[]} files */
export async function importFiles(files) {
  for (const file of files) {
    let count = 0;
    const isDone = await attempt(async () => {
      const made = await upload("/api/v1/chats/import", await importBody(file));
      count = made.length;
    });
    if (isDone) toast("success", plural("sidebar.imported", count, { name: file.name }));
  }
}

/** Returns the body of an import: a file has one chat or a list of them. */
async function importBody(file) {
  const start = (await file.slice(0, 1024).text()).trimStart();
  const [before, after] = start.startsWith("[") ? ['{"chats":', "}"] : ['{"chats":[', "]}"];
  return new Blob([before, file, after], { type: "application/json" });
}
