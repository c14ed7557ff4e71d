/**
 * The view of `/documents`: all collections, or one of them.
 */
import { html } from "#app/core/html";
import { CollectionView } from "#app/documents/collection";
import { CollectionList } from "#app/documents/collections";

/** The list, or the collection that the address names. @param {{params: {id?: string}}} props */
export default function Documents({ params }) {
  return params.id ? html`<${CollectionView} key=${params.id} id=${params.id} />` : html`<${CollectionList} />`;
}
