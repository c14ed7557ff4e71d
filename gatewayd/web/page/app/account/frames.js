/**
 * The frames of the settings and of the administration: a title, the ways to the other parts, and what a view shows.
 */
import { html } from "#app/core/html";
import { t } from "#app/core/messages";
import { Link, location } from "#app/core/router";
import { useTitle } from "#app/core/title";

const SETTINGS = [
  ["/settings/account", "account.section"],
  ["/settings/interface", "account.interface.title"],
];
const ADMINISTRATION = [
  ["/admin/users", "account.nav.users"],
  ["/admin/groups", "account.nav.groups"],
  ["/admin/permissions", "account.nav.permissions"],
  ["/admin/general", "account.nav.general"],
  ["/admin/connections", "account.nav.connections"],
  ["/admin/models", "account.nav.models"],
  ["/admin/functions", "account.nav.functions"],
  ["/admin/tools", "account.nav.tools"],
  ["/admin/collections", "account.nav.collections"],
  ["/admin/scim", "account.nav.scim"],
  ["/admin/status", "account.nav.status"],
];

/** A view of the settings. @param {{title: string}} props */
export function SettingsFrame({ title, children }) {
  return html`<${Frame} title=${title} label=${t("common.settings")} links=${SETTINGS}>${children}<//>`;
}

/** A view of the administration. @param {{title: string, actions?: unknown}} props `actions` stand beside the title */
export function AdminFrame({ title, actions, children }) {
  return html`<${Frame} title=${title} label=${t("common.administration")} links=${ADMINISTRATION} actions=${actions}>
    ${children}<//>`;
}

function Frame({ title, label, links, actions, children }) {
  useTitle(title);
  return html`<div class="view">
    <nav class="section-nav" aria-label=${label}><ul>
      ${links.map(([href, key]) => html`<li key=${href}><${Link} href=${href} current=${isWithin(href)}>${t(key)}<//></li>`)}
    </ul></nav>
    <header class="view-head"><h1 dir="auto">${title}</h1>${actions}</header>
    ${children}
  </div>`;
}

function isWithin(href) {
  const { path } = location.value;
  return path === href || path.startsWith(`${href}/`) || (path === "/admin" && href === ADMINISTRATION[0][0]);
}

/** A part of a view with a heading. @param {{title: string, text?: string, danger?: boolean}} props */
export function Section({ title, text, children, class: more = "" }) {
  return html`<section class="section ${more}">
    <div class="section-head"><h2>${title}</h2>${text && html`<p class="help">${text}</p>`}</div>
    <div class="stack">${children}</div>
  </section>`;
}
