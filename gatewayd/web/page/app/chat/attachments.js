/**
 * Files on their way into a question: upload, processing, and the references that a request names.
 */
import { api, upload } from "#app/core/api";
import { signal } from "#app/core/html";
import { readFrames } from "#app/core/sse";

/** Maximum number of files of one question. */
export const MAX_FILES = 100;

let count = 0;

/**
 * A file or collection of the composer: `state` is uploading, processing, ready or failed.
 * @typedef {{key: number, name: string, size: number, type: string, state: string, share: number, id: string,
 *   error: string, abort: AbortController}} Attachment
 */

/** The attachments of one composer. */
export class Attachments {
  constructor() {
    this.items = signal([]);
  }

  /** Uploads files. @param {Iterable<File>} files */
  add(files) {
    for (const file of [...files].slice(0, MAX_FILES - this.items.peek().length)) {
      const type = file.type.startsWith("image/") ? "image" : "file";
      const item = { key: ++count, name: file.name, size: file.size, contentType: file.type, type };
      const started = { ...item, state: "uploading", share: 0, id: "", error: "", abort: new AbortController() };
      this.items.value = [...this.items.peek(), started];
      this._send(started, file);
    }
  }

  /** Adds a collection, or removes it. @param {{id: string, name: string}} collection */
  toggleCollection(collection) {
    const known = this.items.peek().find((item) => item.type === "collection" && item.id === collection.id);
    if (known) return this.remove(known.key);
    const item = { key: ++count, name: collection.name, size: 0, type: "collection", id: collection.id };
    this.items.value = [...this.items.peek(), { ...item, state: "ready", share: 1, error: "" }];
  }

  /** Removes an attachment and stops its upload. @param {number} key */
  remove(key) {
    this.items.peek().find((item) => item.key === key)?.abort?.abort();
    this.items.value = this.items.peek().filter((item) => item.key !== key);
  }

  /** Takes all attachments away and returns the references to those that are ready. */
  take() {
    const taken = this.references();
    this.items.value = this.items.peek().filter((item) => item.state === "failed");
    return taken;
  }

  /** Puts references back, as after a question that could not be sent. @param {object[]} files */
  restore(files) {
    const again = files.map((file) => ({ ...file, key: ++count, state: "ready", share: 1, error: "" }));
    this.items.value = [...this.items.peek(), ...again];
  }

  /** Returns the references to the attachments that are ready. */
  references() {
    return this.items.peek().filter((item) => item.state === "ready").map(reference);
  }

  /** Whether some file is not ready yet. */
  isBusy() {
    return this.items.value.some((item) => ["uploading", "processing"].includes(item.state));
  }

  _set(key, members) {
    this.items.value = this.items.peek().map((item) => (item.key === key ? { ...item, ...members } : item));
  }

  async _send(item, file) {
    const { signal: stopped } = item.abort;
    const form = new FormData();
    form.append("file", file, file.name);
    try {
      const query = item.type === "image" ? "?process=false" : "";
      const onProgress = (share) => this._set(item.key, { share });
      const record = await upload(`/api/v1/files/${query}`, form, { onProgress, signal: stopped });
      this._set(item.key, { id: record.id, share: 1, state: item.type === "image" ? "ready" : "processing" });
      if (item.type !== "image") await this._watch(item.key, record.id, stopped);
    } catch (error) {
      if (error.name !== "AbortError") this._set(item.key, { state: "failed", error: error.message });
    }
  }

  async _watch(key, id, stopped) {
    const path = `/api/v1/files/${encodeURIComponent(id)}/process/status?stream=true`;
    const headers = { Accept: "text/event-stream" };
    const reply = await api("GET", path, undefined, { raw: true, signal: stopped, headers });
    for await (const frame of readFrames(reply.body)) {
      if (frame.comment) continue;
      const { status, error } = JSON.parse(frame.data);
      if (status === "completed") this._set(key, { state: "ready" });
      else if (status === "failed") this._set(key, { state: "failed", error: error ?? "" });
    }
  }
}

function reference({ type, id, name, size, contentType }) {
  if (type === "collection") return { type, id, name };
  const url = `/api/v1/files/${encodeURIComponent(id)}/content`;
  return { type, id, name, size, url, ...(contentType ? { content_type: contentType } : {}) };
}
