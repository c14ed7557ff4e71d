/**
 * The frames of the settings and of the administration: a title, the ways to the other parts, and what a view shows.
 */
import { html } from "#app/core/html";
import { t } from "#app/core/messages";
import { Link, location } from "#app/core/router";
import { useTitle } from "#app/core/title";

export { AdminFrame } from "#app/admin/frame";

const SETTINGS = [
  ["/settings/account", "account.section"],
  ["/settings/interface", "account.interface.title"],
];

/** A view of the settings. @param {{title: string}} props */
export function SettingsFrame({ title, children }) {
  return html`<${Frame} title=${title} label=${t("common.settings")} links=${SETTINGS}>${children}<//>`;
}

function Frame({ title, label, links, children }) {
  useTitle(title);
  return html`<div class="view">
    <nav class="section-nav" aria-label=${label}><ul>
      ${links.map(([href, key]) => html`<li key=${href}><${Link} href=${href} current=${isWithin(href)}>${t(key)}<//></li>`)}
    </ul></nav>
    <header class="view-head"><h1 dir="auto">${title}</h1></header>
    ${children}
  </div>`;
}

function isWithin(href) {
  const { path } = location.value;
  return path === href || path.startsWith(`${href}/`);
}

/** A part of a view with a heading. @param {{title: string, text?: string, danger?: boolean}} props */
export function Section({ title, text, children, class: more = "" }) {
  return html`<section class="section ${more}">
    <div class="section-head"><h2>${title}</h2>${text && html`<p class="help">${text}</p>`}</div>
    <div class="stack">${children}</div>
  </section>`;
}
