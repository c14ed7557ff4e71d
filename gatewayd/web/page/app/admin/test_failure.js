/**
 * What a test of a connection says when it fails.
 */
import { html } from "#app/core/html";
import { t } from "#app/core/messages";
import { ErrorNote, Icon } from "#app/ui/index";

/** Statuses by which the gateway tells that the other side failed. */
const KINDS = { 502: "refused", 503: "unreachable", 504: "late" };

/** @param {{error: unknown}} props */
export function TestFailure({ error }) {
  const kind = KINDS[error?.status];
  if (!kind) return html`<${ErrorNote} error=${error} />`;
  return html`<div class="error-note" role="alert"><${Icon} name="circle-alert" />
    <div><p>${t(`admin.connections.failures.${kind}`)}</p><p class="help" dir="auto">${error.message}</p></div>
  </div>`;
}
