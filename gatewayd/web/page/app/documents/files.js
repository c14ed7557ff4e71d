/**
 * The files and directories of a collection, page by page, and the ways to add some.
 */
import { get, post } from "#app/core/api";
import { promptDialog } from "#app/core/dialogs";
import { html, useEffect, useRef, useState } from "#app/core/html";
import { t } from "#app/core/messages";
import { Link, location } from "#app/core/router";
import { can } from "#app/core/session";
import { toast } from "#app/core/toasts";
import { collectionPath, filesAddress } from "#app/documents/addresses";
import { FileTable } from "#app/documents/file_table";
import { Pager } from "#app/documents/pager";
import { fromDrop, fromField, hasFiles, MAX_FILES, TooManyFilesError } from "#app/documents/tree_reading";
import { sendFiles, uploads } from "#app/documents/upload_queue";
import { UploadsPanel } from "#app/documents/uploads_panel";
import { attempt } from "#app/ui/attempt";
import { Button, Icon } from "#app/ui/controls";
import { SearchField } from "#app/ui/fields";
import { EmptyState, ErrorNote, Skeleton } from "#app/ui/states";

const PAGE_SIZE = 30;
const PAUSE_MS = 200;
const PENDING_MS = 1500;

/** The files of a collection. @param {{collection: object, onChange: () => void}} props */
export function Files({ collection, onChange }) {
  const directoryId = location.value.query.dir || null;
  const [query, setQuery] = useState("");
  const [page, setPage] = useState(1);
  const { list, load } = useFiles(collection.id, { directoryId, query, page });
  useEffect(() => setPage(1), [directoryId]);
  const search = (text) => {
    setQuery(text);
    setPage(1);
  };
  const changed = () => {
    void load();
    onChange();
  };
  const take = (reading) => void takeFiles(collection.id, directoryId, reading);
  const isEmpty = list.items?.length === 0 && list.directories.length === 0;
  return html`<${DropZone} isOn=${collection.write_access && can("chat.file_upload")} onDrop=${take}>
    <div class="row files-head">
      <${SearchField} label=${t("documents.searchFiles")} value=${query} onInput=${search} maxlength="200" />
      ${collection.write_access && html`<${AddButtons} take=${take} collection=${collection} directoryId=${directoryId} onChange=${changed} />`}
    </div>
    <${UploadsPanel} collectionId=${collection.id} />
    <${Breadcrumbs} collection=${collection} crumbs=${list.breadcrumbs ?? []} />
    <${ErrorNote} error=${list.error} retry=${load} />
    ${list.items === null && !list.error && html`<${Skeleton} />`}
    ${isEmpty && html`<${EmptyState} icon="files" title=${t(query ? "documents.nothingFound" : "documents.noFiles")}
      text=${query || !collection.write_access ? undefined : t("documents.filesHelp")} />`}
    ${list.items && !isEmpty && html`<${FileTable} collection=${collection} list=${list} page=${page} query=${query} onChange=${changed} />`}
    <${Pager} page=${page} size=${PAGE_SIZE} total=${list.total} onPage=${setPage} />
  <//>`;
}

/** Reads a page of files, and again as long as files are sent or processed. */
function useFiles(collectionId, place) {
  const [list, setList] = useState({ items: null, directories: [], total: 0, error: null });
  const wanted = useRef("");
  const address = filesAddress(collectionId, place);
  const load = async () => {
    try {
      const found = await get(address);
      if (wanted.current === address) setList({ ...found, error: null });
    } catch (error) {
      if (wanted.current === address) setList((before) => ({ ...before, error }));
    }
  };
  useEffect(() => {
    wanted.current = address;
    const timer = setTimeout(load, place.query ? PAUSE_MS : 0);
    return () => clearTimeout(timer);
  }, [address]);
  const state = uploads.value[collectionId];
  const isBusy = Boolean(state) && state.waiting + state.sending.length + state.processing > 0;
  const isMoving = isBusy || (list.items?.some((file) => file.data.status === "pending") ?? false);
  const wasMoving = useRef(false);
  useEffect(() => {
    const isOver = wasMoving.current && !isMoving;
    wasMoving.current = isMoving;
    if (isOver) void load();
    if (!isMoving) return undefined;
    const timer = setTimeout(load, PENDING_MS);
    return () => clearTimeout(timer);
  }, [isMoving, list]);
  return { list, load };
}

/**
 * Sends what a reader chose or dropped into the directory that the address names; its list may still be on its way.
 * @param {string} collectionId
 * @param {string | null} directoryId
 * @param {() => Promise<object[]>} reading
 */
async function takeFiles(collectionId, directoryId, reading) {
  try {
    const items = await reading();
    if (items.length === 0) toast("info", t("documents.nothingDropped"));
    else await attempt(async () => sendFiles(collectionId, await directoryPath(collectionId, directoryId), items));
  } catch (error) {
    const isTooMany = error instanceof TooManyFilesError;
    toast("error", isTooMany ? t("documents.tooMany", { count: MAX_FILES }) : t("documents.unreadable"));
  }
}

/** Returns the names down to a directory, joined by "/"; "" for the top. */
async function directoryPath(collectionId, directoryId) {
  if (!directoryId) return "";
  const { breadcrumbs } = await get(filesAddress(collectionId, { directoryId, query: "", page: 1 }));
  return breadcrumbs.map((one) => one.name).join("/");
}

function AddButtons({ take, collection, directoryId, onChange }) {
  const files = useRef(null);
  const folder = useRef(null);
  const choose = (event) => {
    const chosen = [...event.target.files];
    event.target.value = "";
    take(async () => fromField(chosen));
  };
  const create = async () => {
    const name = await promptDialog({ title: t("documents.newDirectory"), verb: t("documents.create") });
    const body = { name: name?.trim(), parent_id: directoryId };
    if (body.name && (await attempt(() => post(`${collectionPath(collection.id)}/dirs/create`, body)))) onChange();
  };
  return html`${can("chat.file_upload") && html`
      <${Button} kind="primary" icon="upload" onClick=${() => files.current.click()}>${t("documents.uploadFiles")}<//>
      <${Button} icon="folder-up" onClick=${() => folder.current.click()}>${t("documents.uploadFolder")}<//>
      <input type="file" multiple hidden ref=${files} aria-label=${t("documents.uploadFiles")} onChange=${choose} />
      <input type="file" webkitdirectory hidden ref=${folder} aria-label=${t("documents.uploadFolder")} onChange=${choose} />`}
    <${Button} icon="folder-plus" onClick=${create}>${t("documents.newDirectory")}<//>`;
}

function DropZone({ isOn, onDrop, children }) {
  const [depth, setDepth] = useState(0);
  if (!isOn) return html`<div class="stack">${children}</div>`;
  const handlers = {
    onDragEnter: (event) => hasFiles(event) && setDepth((before) => before + 1),
    onDragLeave: (event) => hasFiles(event) && setDepth((before) => Math.max(before - 1, 0)),
    onDragOver: (event) => hasFiles(event) && event.preventDefault(),
    onDrop: (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setDepth(0);
      const reading = fromDrop(event.dataTransfer);
      onDrop(() => reading);
    },
  };
  return html`<div class="stack drop-zone ${depth > 0 ? "over" : ""}" ...${handlers}>
    ${children}
    ${depth > 0 && html`<p class="drop-hint" role="status"><${Icon} name="upload" />${t("documents.dropHere")}</p>`}
  </div>`;
}

function Breadcrumbs({ collection, crumbs }) {
  if (crumbs.length === 0) return null;
  const root = `/documents/${collection.id}`;
  return html`<nav aria-label=${t("documents.path")}><ol class="breadcrumbs">
    <li><${Link} href=${root} current=${false} dir="auto">${collection.name}<//></li>
    ${crumbs.map((one, place) => html`<li key=${one.id}><${Link} href="${root}?dir=${one.id}" current=${place === crumbs.length - 1} dir="auto">
      ${one.name}<//></li>`)}
  </ol></nav>`;
}
