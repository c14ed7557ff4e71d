/**
 * The list of the collections that the account may read.
 */
import { get, post } from "#app/core/api";
import { openDialog } from "#app/core/dialogs";
import { html, useEffect, useState } from "#app/core/html";
import { formatRelative, formatTime, plural, t } from "#app/core/messages";
import { Link, navigate } from "#app/core/router";
import { can, me } from "#app/core/session";
import { useTitle } from "#app/core/title";
import { COLLECTIONS } from "#app/documents/addresses";
import { CollectionForm } from "#app/documents/collection_form";
import { isPublic } from "#app/documents/grants";
import { Pager } from "#app/documents/pager";
import { Button, Icon } from "#app/ui/controls";
import { SearchField } from "#app/ui/fields";
import { Chip, EmptyState, ErrorNote, Skeleton } from "#app/ui/states";

const PAGE_SIZE = 30;
const PAUSE_MS = 200;

/** All collections, with a search by name. */
export function CollectionList() {
  const [query, setQuery] = useState("");
  const [page, setPage] = useState(1);
  const [list, setList] = useState({ items: null, total: 0, error: null });
  const load = async (isCurrent = () => true) => {
    try {
      const found = await get(`${COLLECTIONS}/search?page=${page}&query=${encodeURIComponent(query)}`);
      if (isCurrent()) setList({ ...found, error: null });
    } catch (error) {
      if (isCurrent()) setList({ items: null, total: 0, error });
    }
  };
  useEffect(() => {
    let isWanted = true;
    const timer = setTimeout(() => load(() => isWanted), query ? PAUSE_MS : 0);
    return () => {
      isWanted = false;
      clearTimeout(timer);
    };
  }, [query, page]);
  const search = (text) => {
    setQuery(text);
    setPage(1);
  };
  useTitle(t("common.documents"));
  const isEmpty = list.items?.length === 0;
  return html`<div class="view">
    <div class="view-head">
      <h1>${t("common.documents")}</h1>
      ${can("workspace.knowledge") && html`<${Button} kind="primary" icon="plus" onClick=${create}>${t("documents.newCollection")}<//>`}
    </div>
    <${SearchField} label=${t("documents.searchCollections")} value=${query} onInput=${search} maxlength="200" />
    <${ErrorNote} error=${list.error} retry=${() => load()} />
    ${list.items === null && !list.error && html`<${Skeleton} />`}
    ${isEmpty && html`<${EmptyState} icon="library" title=${t(query ? "documents.nothingFound" : "documents.noCollections")}
      text=${query ? undefined : t("documents.collectionsHelp")} />`}
    <ul class="collection-cards">${list.items?.map((one) => html`<${CollectionCard} key=${one.id} collection=${one} />`)}</ul>
    <${Pager} page=${page} size=${PAGE_SIZE} total=${list.total} onPage=${setPage} />
  </div>`;
}

async function create() {
  const made = await openDialog(CollectionForm, {
    title: t("documents.newCollection"),
    verb: t("documents.create"),
    save: (form) => post(`${COLLECTIONS}/create`, form),
  });
  if (made) navigate(`/documents/${made.id}`);
}

function CollectionCard({ collection }) {
  const { id, name, description, file_count: count, user, access_grants: grants } = collection;
  const isOwn = user?.id === me.value.id;
  return html`<li class="card collection-card">
    <div class="collection-name"><${Icon} name="library" />
      <${Link} href="/documents/${id}" dir="auto">${name}<//></div>
    ${description && html`<p class="collection-description" dir="auto">${description}</p>`}
    <p class="row help">
      <span>${plural("documents.files", count)}</span>
      ${!isOwn && html`<span dir="auto">${t("documents.ownedBy", { name: user?.name ?? t("documents.nobody") })}</span>`}
      <time title=${formatTime(collection.updated_at)}>${formatRelative(collection.updated_at)}</time>
      ${isPublic(grants) ? html`<${Chip} icon="globe">${t("documents.public")}<//>`
        : grants.length > 0 && html`<${Chip} icon="users">${t("documents.shared")}<//>`}
      ${!collection.write_access && html`<${Chip} icon="eye">${t("documents.readOnly")}<//>`}
    </p>
  </li>`;
}
