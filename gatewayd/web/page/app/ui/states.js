/**
 * What a view shows before, instead of and beside its content.
 */
import { ApiError } from "#app/core/api";
import { html } from "#app/core/html";
import { formatNumber, hasText, t } from "#app/core/messages";
import { Button, CopyButton, Icon } from "#app/ui/controls";

/** Returns what a failure means and what to do, in the language of the reader. @param {unknown} error */
export function explain(error) {
  if (!(error instanceof ApiError)) return { what: t("errors.page"), detail: String(error?.message ?? error) };
  const byStatus = error.status >= 500 ? "server" : { 0: "unreachable", 401: "signedOut", 403: "forbidden" }[error.status];
  const keys = [`errors.${error.code}`, `errors.${byStatus ?? { 404: "notFound", 413: "tooLarge", 429: "tooMany" }[error.status]}`];
  const key = keys.find((one) => hasText(one));
  return { what: t(key ?? "errors.refused"), detail: error.status === 0 ? "" : error.message };
}

/** What failed, why, and what to do. @param {{error: unknown, retry?: () => void}} props */
export function ErrorNote({ error, retry, class: more = "" }) {
  if (!error) return null;
  const { what, detail } = explain(error);
  return html`<div class="error-note ${more}" role="alert">
    <${Icon} name="circle-alert" />
    <div>
      <p>${what}</p>
      ${detail && html`<p class="help" dir="auto">${detail}</p>`}
      ${error.requestId && html`<p class="help request-id">${t("errors.requestId", { id: error.requestId })}
        <${CopyButton} text=${error.requestId} label=${t("errors.copyRequestId")} /></p>`}
    </div>
    ${retry && html`<${Button} onClick=${retry}>${t("common.tryAgain")}<//>`}
  </div>`;
}

/** What an empty view is for, and the first step. @param {{icon?: string, title: string, text?: string}} props */
export function EmptyState({ icon, title, text, children }) {
  return html`<div class="empty-state">
    ${icon && html`<${Icon} name=${icon} size=${32} />`}
    <h2>${title}</h2>
    ${text && html`<p>${text}</p>`}
    ${children}
  </div>`;
}

/** Grey lines in place of what is loading. @param {{lines?: number}} props */
export function Skeleton({ lines = 3 }) {
  return html`<div class="skeleton" role="status"><span class="hidden">${t("common.loading")}</span>
    ${Array.from({ length: lines }, (_, place) => html`<div class="skeleton-line" key=${place}></div>`)}
  </div>`;
}

/** How much is done; without a value, that something is going on. @param {{label: string, value?: number}} props 0 to 1 */
export function Progress({ label, value }) {
  const shown = value === undefined ? undefined : formatNumber(value, { style: "percent" });
  return html`<progress class="progress" aria-label=${label} title=${shown} max="1" value=${value}></progress>`;
}

/** A small label. @param {{icon?: string, kind?: string, onRemove?: () => void, removeLabel?: string}} props */
export function Chip({ icon, kind = "", onRemove, removeLabel, children, ...rest }) {
  return html`<span class="chip ${kind}" ...${rest}>
    ${icon && html`<${Icon} name=${icon} size=${14} />`}<span class="chip-text" dir="auto">${children}</span>
    ${onRemove && html`<button type="button" class="chip-remove" aria-label=${removeLabel ?? t("common.remove")}
      onClick=${onRemove}><${Icon} name="x" size=${14} /></button>`}
  </span>`;
}

/** The picture of an account, or its initials. @param {{name: string, src?: string, size?: number}} props */
export function Avatar({ name, src, size = 32 }) {
  const initials = [...(name ?? "")].filter((_, place, all) => place === 0 || all[place - 1] === " ").slice(0, 2).join("");
  const isOwn = typeof src === "string" && (/^\/(?!\/)/.test(src) || /^data:image\/(png|jpeg|webp|gif);/.test(src));
  return isOwn && src !== "/user.png"
    ? html`<img class="avatar" src=${src} width=${size} height=${size} alt="" />`
    : html`<span class="avatar ${size > 40 ? "large" : ""}" aria-hidden="true">${initials.toUpperCase()}</span>`;
}
