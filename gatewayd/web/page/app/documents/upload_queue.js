/**
 * The files that are being sent, and those that the gateway processes. The queue goes on while the reader is elsewhere
 * in the page.
 */
import { get, post, upload } from "#app/core/api";
import { effect, signal } from "#app/core/html";
import { me } from "#app/core/session";
import { filePath } from "#app/documents/addresses";
import { planUpload } from "#app/documents/upload_plan";
import { explain } from "#app/ui/states";

/** Uploads at once; an HTTP/1.1 browser has six connections, of which the event stream takes one. */
const MAX_SENDING = 3;
/** Files whose processing is asked for at once; the gateway takes the oldest first. */
const MAX_ASKED = 4;
const ASK_MS = 700;
const SHOW_MS = 200;
const MAX_TRIES = 5;
const MAX_FAILURES_SHOWN = 50;

/** What there is to show of a collection, by its id: {total, done, processing, waiting, unchanged, share, sending, failed}. */
export const uploads = signal({});

const entries = [];
let sending = 0;
let isAsking = false;
let showTimer = 0;
let count = 0;

addEventListener("beforeunload", (event) => {
  if (entries.some((entry) => entry.state === "waiting" || entry.state === "sending")) event.preventDefault();
});

let account = me.peek()?.id;
effect(() => {
  if (me.value?.id === account) return;
  // What one account chose is not sent as another one.
  account = me.value?.id;
  entries.length = 0;
  uploads.value = {};
});

/** Shows the state soon; thousands of files change it often. */
function changed() {
  showTimer ||= setTimeout(() => {
    showTimer = 0;
    uploads.value = summarise();
  }, SHOW_MS);
}

function summarise() {
  const found = {};
  for (const entry of entries) {
    const one = (found[entry.collectionId] ??= {
      total: 0, done: 0, processing: 0, waiting: 0, unchanged: 0, bytes: 0, sent: 0, sending: [], failed: [], failures: 0,
    });
    if (entry.state === "unchanged") {
      one.unchanged += entry.count;
      continue;
    }
    one.total += 1;
    one.bytes += entry.file.size;
    one.sent += entry.file.size * (entry.state === "waiting" ? 0 : entry.share);
    if (entry.state === "sending") one.sending.push({ id: entry.id, name: entry.file.name, share: entry.share });
    else if (entry.state !== "failed") one[entry.state] += 1;
    else if (++one.failures <= MAX_FAILURES_SHOWN) one.failed.push({ id: entry.id, name: entry.file.name, reason: entry.reason });
  }
  for (const one of Object.values(found)) one.share = one.bytes > 0 ? one.sent / one.bytes : 1;
  return found;
}

/**
 * Sends files into a directory of a collection; those that it has unchanged are left out.
 * @param {string} collectionId
 * @param {string} basePath
 * @param {{file: File, path: string}[]} items
 */
export async function sendFiles(collectionId, basePath, items) {
  if (items.length === 0) return;
  const plan = await planUpload(collectionId, basePath, items);
  for (const one of plan.entries) {
    entries.push({ id: ++count, collectionId, state: "waiting", share: 0, reason: "", fileId: null, tries: 0, ...one });
  }
  if (plan.unchanged > 0) entries.push({ id: ++count, collectionId, state: "unchanged", count: plan.unchanged });
  changed();
  fill();
}

function fill() {
  while (sending < MAX_SENDING) {
    const next = entries.find((entry) => entry.state === "waiting");
    if (!next) return;
    sending += 1;
    next.state = "sending";
    sendOne(next).finally(() => {
      sending -= 1;
      changed();
      fill();
    });
  }
}

async function sendOne(entry) {
  const form = new FormData();
  const place = entry.directoryId ? { directory_id: entry.directoryId } : {};
  form.append("metadata", JSON.stringify({ knowledge_id: entry.collectionId, file_hash: entry.checksum, ...place }));
  form.append("file", entry.file, entry.file.name);
  const onProgress = (share) => {
    entry.share = share;
    changed();
  };
  try {
    const made = await upload("/api/v1/files/", form, { onProgress });
    Object.assign(entry, { state: "processing", share: 1, fileId: made.id });
    askSoon();
  } catch (error) {
    entry.tries += 1;
    if (error.status === 429 && entry.tries < MAX_TRIES) {
      await new Promise((resolve) => setTimeout(resolve, (error.retryAfter ?? entry.tries) * 1000));
      entry.state = "waiting";
    } else fail(entry, error);
  }
}

function fail(entry, error) {
  const { what, detail } = explain(error);
  Object.assign(entry, { state: "failed", reason: detail || what });
}

function askSoon() {
  if (isAsking) return;
  isAsking = true;
  setTimeout(ask, ASK_MS);
}

/** Asks for the oldest files, and goes on until all are processed. */
async function ask() {
  for (;;) {
    const oldest = entries.filter((entry) => entry.state === "processing").slice(0, MAX_ASKED);
    if (oldest.length === 0) break;
    const before = oldest.length;
    await Promise.all(oldest.map(askOne));
    changed();
    // Who finds all of them done looks at the next ones at once.
    if (oldest.filter((entry) => entry.state === "processing").length === before) {
      await new Promise((resolve) => setTimeout(resolve, ASK_MS));
    }
  }
  isAsking = false;
}

async function askOne(entry) {
  try {
    const { status, error } = await get(`${filePath(entry.fileId)}/process/status`);
    if (status === "completed") entry.state = "done";
    else if (status === "failed") Object.assign(entry, { state: "failed", reason: error ?? "" });
  } catch (error) {
    if (error.status === 404) entry.state = "done";
    else if (error.status >= 400 && error.status < 500 && error.status !== 429) fail(entry, error);
  }
}

/** Tries a failed file again: its processing, or its upload when it did not arrive. @param {number} id */
export async function retryUpload(id) {
  const entry = entries.find((one) => one.id === id && one.state === "failed");
  if (!entry) return;
  if (entry.fileId === null) Object.assign(entry, { state: "waiting", share: 0, tries: 0 });
  else {
    try {
      await post(`${filePath(entry.fileId)}/process`);
      entry.state = "processing";
      askSoon();
    } catch (error) {
      fail(entry, error);
    }
  }
  changed();
  fill();
}

/** Tries all failed files of a collection again. @param {string} collectionId */
export async function retryAll(collectionId) {
  const failed = entries.filter((entry) => entry.collectionId === collectionId && entry.state === "failed");
  for (const entry of failed) await retryUpload(entry.id);
}

/** Forgets what is over, and what waits. @param {string} collectionId */
export function clearUploads(collectionId) {
  const isKept = (entry) => entry.collectionId !== collectionId || ["sending", "processing"].includes(entry.state);
  entries.splice(0, entries.length, ...entries.filter(isKept));
  changed();
}
