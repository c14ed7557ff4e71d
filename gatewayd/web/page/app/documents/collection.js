/**
 * One collection: its files and directories, and the search in it.
 */
import { get, post } from "#app/core/api";
import { confirmDialog, openDialog } from "#app/core/dialogs";
import { html, useEffect, useState } from "#app/core/html";
import { plural, t } from "#app/core/messages";
import { Link, navigate } from "#app/core/router";
import { useTitle } from "#app/core/title";
import { collectionPath, send } from "#app/documents/addresses";
import { CollectionForm } from "#app/documents/collection_form";
import { Files } from "#app/documents/files";
import { GrantsDialog } from "#app/documents/grants";
import { PassageSearch } from "#app/documents/search";
import { attempt } from "#app/ui/attempt";
import { Button } from "#app/ui/controls";
import { Menu } from "#app/ui/menu";
import { ErrorNote, Skeleton } from "#app/ui/states";
import { Tabs } from "#app/ui/tabs";

/** The view of a collection. @param {{id: string}} props */
export function CollectionView({ id }) {
  const [collection, setCollection] = useState(null);
  const [error, setError] = useState(null);
  const [tab, setTab] = useState("files");
  const load = () => get(`${collectionPath(id)}?files=false`).then((found) => {
    setCollection(found);
    setError(null);
  }, setError);
  useEffect(() => void load(), [id]);
  useTitle(collection?.name ?? t("common.documents"));
  const tabs = [
    { id: "files", label: t("documents.filesTab"), content: () => html`<${Files} collection=${collection} onChange=${load} />` },
    { id: "search", label: t("documents.searchTab"), content: () => html`<${PassageSearch} collection=${collection} />` },
  ];
  return html`<div class="view">
    <p><${Link} href="/documents">${t("documents.allCollections")}<//></p>
    <${ErrorNote} error=${error} retry=${load} />
    ${!collection && !error && html`<h1 class="hidden">${t("common.documents")}</h1><${Skeleton} />`}
    ${!collection && error && html`<h1 class="hidden">${t("common.documents")}</h1>`}
    ${collection && html`<${Head} collection=${collection} onChange=${load} />
      <${Tabs} label=${t("documents.parts")} tabs=${tabs} value=${tab} onChange=${setTab} />`}
  </div>`;
}

function Head({ collection, onChange }) {
  const { id, name, description, file_count: count, write_access: mayWrite } = collection;
  const path = collectionPath(id);
  const edit = () => openDialog(CollectionForm, {
    title: t("documents.editCollection"),
    verb: t("documents.save"),
    name,
    description,
    save: (form) => post(`${path}/update`, form),
  }).then((changed) => changed && onChange());
  const share = () => openDialog(GrantsDialog, {
    title: t("documents.shareTitle", { name }),
    grants: collection.access_grants,
    publicPermission: "sharing.public_knowledge",
    onSave: (grants) => post(`${path}/access/update`, { access_grants: grants }),
  }).then((changed) => changed && onChange());
  const remove = async () => {
    const text = t("documents.deleteCollectionText", { name, files: plural("documents.files", count) });
    const title = t("documents.deleteCollection");
    if (!(await confirmDialog({ title, text, verb: title, danger: true }))) return;
    if (await attempt(() => send("DELETE", `${path}/delete`))) navigate("/documents", { replace: true });
  };
  const items = [
    { label: t("documents.editCollection"), icon: "pencil", run: edit },
    null,
    { label: t("documents.deleteCollection"), icon: "trash-2", danger: true, run: remove },
  ];
  return html`<div class="view-head">
      <h1 dir="auto">${name}</h1>
      ${mayWrite && html`<${Button} icon="share-2" onClick=${share}>${t("documents.share")}<//>
        <${Menu} label=${t("documents.collectionMenu")} items=${items} />`}
    </div>
    ${description && html`<p class="collection-description" dir="auto">${description}</p>`}`;
}
