/**
 * Files that a reader chose or dropped, with the directories that they are in.
 */

/** Number of files that are taken at once. */
export const MAX_FILES = 20_000;
/** What systems leave in folders and nobody wants to search. */
const LEFTOVERS = new Set([".DS_Store", "Thumbs.db", "desktop.ini"]);

/** There are more files than one may send at once. */
export class TooManyFilesError extends Error {}

const isWanted = (name) => !LEFTOVERS.has(name);

function bounded(items) {
  if (items.length > MAX_FILES) throw new TooManyFilesError(`more than ${MAX_FILES} files`);
  return items;
}

/**
 * Returns chosen files as {file, path}; the path is that of their directory, "" for none.
 * @param {Iterable<File>} files of a field, which may choose a whole folder
 */
export function fromField(files) {
  const wanted = [...files].filter((file) => isWanted(file.name));
  return bounded(wanted.map((file) => ({ file, path: file.webkitRelativePath.split("/").slice(0, -1).join("/") })));
}

/**
 * Returns dropped files and those of dropped folders. Call it within the event: what was dropped is gone afterwards.
 * @param {DataTransfer} dropped
 * @returns {Promise<{file: File, path: string}[]>}
 */
export async function fromDrop(dropped) {
  const things = [...dropped.items].filter((item) => item.kind === "file");
  const entries = things.map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  // What a program dropped is in no file system.
  if (entries.length === 0) return fromField(things.map((item) => item.getAsFile()).filter(Boolean));
  const found = [];
  for (const entry of entries) await readEntry(entry, "", found);
  return found;
}

async function readEntry(entry, path, found) {
  if (!isWanted(entry.name)) return;
  if (entry.isFile) {
    found.push({ file: await new Promise((resolve, reject) => entry.file(resolve, reject)), path });
    bounded(found);
    return;
  }
  const inside = path ? `${path}/${entry.name}` : entry.name;
  const reader = entry.createReader();
  for (;;) {
    // A directory comes in parts; an empty one is the end.
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return;
    for (const one of some) await readEntry(one, inside, found);
  }
}

/** Returns whether files are dragged. @param {DragEvent} event */
export const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
