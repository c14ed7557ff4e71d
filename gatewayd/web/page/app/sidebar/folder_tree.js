/**
 * The tree of folders as rows from top to bottom.
 */

/** Number of folders above each other that the gateway allows. */
const MAX_DEPTH = 16;

/**
 * Returns {folder, depth, hasChildren} for each folder, children after their parent; those whose parent is unknown are
 * at the top.
 * @param {{id: string, parent_id: string | null}[]} folders
 * @param {{without?: string, isOpen?: (folder: object) => boolean}} [options] `without` leaves out a folder and all
 *   below it; with `isOpen`, what is below a closed folder is left out
 */
export function folderRows(folders, { without, isOpen = () => true } = {}) {
  const known = new Set(folders.map((folder) => folder.id));
  const children = Map.groupBy(folders, (folder) => (known.has(folder.parent_id) ? folder.parent_id : null));
  const rows = [];
  const add = (parentId, depth) => {
    for (const folder of children.get(parentId) ?? []) {
      if (folder.id === without || depth > MAX_DEPTH) continue;
      rows.push({ folder, depth, hasChildren: children.has(folder.id) });
      if (isOpen(folder)) add(folder.id, depth + 1);
    }
  };
  add(null, 0);
  return rows;
}

/** Returns whether a folder is another one or inside it. */
export function isInside(folders, folderId, otherId) {
  const parents = new Map(folders.map((folder) => [folder.id, folder.parent_id]));
  let at = folderId;
  for (let step = 0; at && step <= MAX_DEPTH; step += 1) {
    if (at === otherId) return true;
    at = parents.get(at);
  }
  return false;
}
