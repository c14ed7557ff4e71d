/**
 * The frame of the views for administrators: their navigation, a heading, and what stands there until a view has loaded.
 */
import { html, useEffect, useRef } from "#app/core/html";
import { t } from "#app/core/messages";
import { Link, location } from "#app/core/router";
import { useTitle } from "#app/core/title";
import { ErrorNote, Icon, Skeleton } from "#app/ui/index";

const SECTIONS = [
  ["/admin/users", "users", "users"],
  ["/admin/groups", "groups", "user-cog"],
  ["/admin/permissions", "permissions", "shield-check"],
  ["/admin/general", "general", "settings-2"],
  ["/admin/connections", "connections", "plug"],
  ["/admin/models", "models", "bot"],
  ["/admin/functions", "functions", "puzzle"],
  ["/admin/tools", "tools", "wrench"],
  ["/admin/collections", "collections", "library"],
  ["/admin/scim", "scim", "workflow"],
  ["/admin/status", "status", "chart-no-axes-column"],
];

/**
 * A view for administrators.
 * @param {{title: string, help?: string, actions?: unknown}} props `actions` stand beside the heading
 */
export function AdminFrame({ title, help, actions, children }) {
  const nav = useRef(null);
  useTitle(title);
  useEffect(() => nav.current.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" }), []);
  return html`<div class="view admin">
    <nav class="admin-nav" ref=${nav} aria-label=${t("common.administration")}>
      <ul>${SECTIONS.map(([href, key, icon]) => html`<li key=${href}>
        <${Link} href=${href} current=${isCurrent(href)}><${Icon} name=${icon} />${t(`account.nav.${key}`)}<//>
      </li>`)}</ul>
    </nav>
    <div class="admin-content">
      <div class="view-head"><h1 dir="auto">${title}</h1>${actions}</div>
      ${help && html`<p class="admin-help">${help}</p>`}
      ${children}
    </div>
  </div>`;
}

function isCurrent(href) {
  const { path } = location.value;
  return path === href || path.startsWith(`${href}/`) || (path === "/admin" && href === "/admin/users");
}

/** What a resource shows before its data: grey lines, or what failed. @param {{of: object}} props */
export function Waiting({ of: resource }) {
  if (resource.error) return html`<${ErrorNote} error=${resource.error} retry=${resource.reload} />`;
  return html`<${Skeleton} lines=${4} />`;
}
