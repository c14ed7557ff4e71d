/**
 * How far the uploads into a collection are, and why some failed.
 */
import { html } from "#app/core/html";
import { formatNumber, plural, t } from "#app/core/messages";
import { clearUploads, retryAll, retryUpload, uploads } from "#app/documents/upload_queue";
import { Button, Icon } from "#app/ui/controls";
import { Progress } from "#app/ui/states";

/** The state of the uploads; nothing without any. @param {{collectionId: string}} props */
export function UploadsPanel({ collectionId }) {
  const state = uploads.value[collectionId];
  if (!state || (state.total === 0 && state.unchanged === 0)) return null;
  const isBusy = state.waiting + state.sending.length + state.processing > 0;
  return html`<section class="card uploads" aria-labelledby="uploads-title">
    <div class="row uploads-head">
      <h2 id="uploads-title">${t(isBusy ? "documents.uploading" : "documents.uploaded")}</h2>
      ${!isBusy && html`<${Button} kind="plain" onClick=${() => clearUploads(collectionId)}>${t("documents.hideUploads")}<//>`}
      ${state.waiting > 0 && html`<${Button} kind="plain" onClick=${() => clearUploads(collectionId)}>${t("documents.stopUploads")}<//>`}
    </div>
    ${state.share < 1 && html`<${Progress} label=${t("documents.sent")} value=${state.share} />`}
    <p class="help" role="status">${summary(state)}</p>
    <ul class="upload-list">
      ${state.sending.map(({ id, name, share }) => html`<li key=${id} class="upload-row">
        <${Icon} name="file-up" /><span class="upload-name" dir="auto">${name}</span>
        <${Progress} label=${t("documents.sentOf", { name })} value=${share} /></li>`)}
    </ul>
    ${state.failures > 0 && html`<${Failures} state=${state} collectionId=${collectionId} />`}
  </section>`;
}

function summary({ total, done, processing, waiting, unchanged, failures }) {
  const parts = [
    total > 0 && t("documents.ready", { count: formatNumber(done), total: formatNumber(total) }),
    waiting > 0 && plural("documents.waiting", waiting),
    processing > 0 && plural("documents.processing", processing),
    failures > 0 && plural("documents.failures", failures),
    unchanged > 0 && plural("documents.unchanged", unchanged),
  ];
  return parts.filter(Boolean).join(" · ");
}

function Failures({ state, collectionId }) {
  return html`<div class="stack upload-failures">
    <ul class="upload-list" aria-label=${t("documents.failed")}>
      ${state.failed.map(({ id, name, reason }) => html`<li key=${id} class="upload-row failed">
        <${Icon} name="circle-alert" /><span class="upload-name" dir="auto">${name}</span>
        <span class="upload-reason" dir="auto">${reason}</span>
        <${Button} onClick=${() => retryUpload(id)} aria-label=${t("documents.retryFile", { name })}>${t("common.tryAgain")}<//>
      </li>`)}
    </ul>
    ${state.failures > state.failed.length && html`<p class="help">${plural("documents.moreFailures", state.failures - state.failed.length)}</p>`}
    ${state.failures > 1 && html`<div><${Button} icon="rotate-cw" onClick=${() => retryAll(collectionId)}>${t("documents.retryAll")}<//></div>`}
  </div>`;
}
