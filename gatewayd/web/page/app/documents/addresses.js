/**
 * Addresses of the gateway for collections and files, and what is done with their answers.
 */
import { api } from "#app/core/api";

/** Address of all collections. */
export const COLLECTIONS = "/api/v1/knowledge";

/** Returns the address of a collection. @param {string} id */
export const collectionPath = (id) => `${COLLECTIONS}/${encodeURIComponent(id)}`;

/**
 * Returns the address of a page of the files of a collection: of those in a directory, of those in none for null, or of
 * all whose name has a text.
 */
export function filesAddress(collectionId, { directoryId, query, page }) {
  const place = directoryId ? `directory_id=${encodeURIComponent(directoryId)}` : `in_root=${!query}`;
  return `${collectionPath(collectionId)}/files?page=${page}&${place}&query=${encodeURIComponent(query)}`;
}

/** Returns the address of a file. @param {string} id */
export const filePath = (id) => `/api/v1/files/${encodeURIComponent(id)}`;

/**
 * Returns the address at which the browser shows a file, at a page if it is a PDF; other kinds are saved.
 * @param {string} id
 * @param {number | string | null} [page] from 1
 */
export const contentAddress = (id, page) => `${filePath(id)}/content${page ? `#page=${encodeURIComponent(page)}` : ""}`;

/** Sends a request whose long answer nobody needs. */
export async function send(method, path, body) {
  const reply = await api(method, path, body, { raw: true });
  await reply.body?.cancel();
}
