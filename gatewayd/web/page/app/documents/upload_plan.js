/**
 * What of a tree of files has to be sent: the gateway compares it with the collection, and makes the directories.
 */
import { post } from "#app/core/api";
import { collectionPath } from "#app/documents/addresses";

/**
 * Makes the missing directories, and returns the files that the collection does not have yet.
 * @param {string} collectionId
 * @param {string} basePath path of the directory that the files go into, "" for the top
 * @param {{file: File, path: string}[]} items
 * @returns {Promise<{entries: {file: File, checksum: string, directoryId: string | null}[], unchanged: number}>}
 */
export async function planUpload(collectionId, basePath, items) {
  const wanted = new Map();
  for (const { file, path } of items) {
    const place = [basePath, path].filter(Boolean).join("/");
    wanted.set(`${place}\n${file.name}`, { file, path: place, checksum: `${file.size}-${file.lastModified}` });
  }
  const manifest = [...wanted.values()].map(({ file, path, checksum }) => ({ filename: file.name, path, checksum, size: file.size }));
  const root = collectionPath(collectionId);
  const diff = await post(`${root}/sync/diff`, { manifest });
  const directories = { ...diff.directory_map };
  for (const path of diff.mkdir) directories[path] = await makeDirectory(root, path, directories);
  const entries = [...diff.added, ...diff.modified].map(({ filename, path }) => {
    const { file, checksum } = wanted.get(`${path}\n${filename}`);
    return { file, checksum, directoryId: path ? directories[path] : null };
  });
  return { entries, unchanged: diff.unmodified_count };
}

async function makeDirectory(root, path, directories) {
  const parts = path.split("/");
  const name = parts.pop();
  const parent = parts.length > 0 ? directories[parts.join("/")] : null;
  return (await post(`${root}/dirs/create`, { name, parent_id: parent })).id;
}
