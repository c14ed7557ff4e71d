/**
 * The frame of every view: sidebar, the view itself, notices and dialogs.
 */
import { Dialogs, openModule } from "#app/core/dialogs";
import { connection } from "#app/core/events";
import { html, useEffect, useRef, useSignal, useState } from "#app/core/html";
import { t } from "#app/core/messages";
import { Link, location, navigate } from "#app/core/router";
import { config, isAdmin, me } from "#app/core/session";
import { shortcut } from "#app/core/shortcuts";
import { Toasts } from "#app/core/toasts";
import { Outlet } from "#app/outlet";
import { ADMIN, OPEN } from "#app/routes";
import { IconButton } from "#app/ui/controls";
import { EmptyState } from "#app/ui/states";

const NARROW = matchMedia("(max-width: 767px)");

/** The page. */
export function Shell() {
  useEffect(() => {
    const removers = [
      shortcut("mod+/", () => void openModule(() => import("#app/shortcut_list"), "ShortcutList"), "common.shortcutList"),
      shortcut("mod+.", () => navigate("/settings"), "common.settings"),
    ];
    return () => removers.forEach((remove) => remove());
  }, []);
  const { path } = location.value;
  const isOpen = OPEN.has(path);
  const isOut = !me.value || me.value.role === "pending";
  useEffect(() => {
    if (isOut && !isOpen) navigate(`/auth?redirect=${encodeURIComponent(here())}`, { replace: true });
  }, [isOut, isOpen]);
  if (isOut && !isOpen) return null;
  return html`<a class="skip-link" href="#main">${t("common.skipToContent")}</a>
    <div class="shell ${isOpen ? "alone" : ""}">
      ${!isOpen && html`<${Sidebar} />`}
      <${Main} path=${path} />
    </div>
    <${Toasts} /><${Dialogs} />`;
}

function here() {
  return window.location.pathname + window.location.search;
}

function Main({ path }) {
  const main = useRef(null);
  const isFirst = useRef(true);
  useEffect(() => {
    if (!isFirst.current) main.current.focus({ preventScroll: true });
    isFirst.current = false;
  }, [path]);
  const isRefused = (path === ADMIN || path.startsWith(`${ADMIN}/`)) && !isAdmin();
  return html`<main id="main" tabindex="-1" ref=${main}>
    ${connection.value === "lost" && html`<p class="connection-lost" role="status">${t("common.connectionLost")}</p>`}
    ${isRefused ? html`<${Refused} />` : html`<${Outlet} path=${path} />`}
  </main>`;
}

function Refused() {
  return html`<div class="view"><h1 class="hidden">${t("errors.forbidden")}</h1>
    <${EmptyState} icon="lock" title=${t("errors.forbidden")}>
      <${Link} class="button" href="/">${t("common.toChats")}<//>
    <//></div>`;
}

/** The place of the sidebar, whose module is loaded apart; at phone width it lies over the view when it is open. */
function Sidebar() {
  const isShown = useSignal(!NARROW.matches);
  const [loaded, setLoaded] = useState(null);
  useEffect(() => {
    // A pending account, or a page whose sidebar cannot be loaded, has the plain links.
    import("#app/sidebar/view").then((module) => setLoaded(() => module.default), () => setLoaded(() => PlainLinks));
    const toggle = () => {
      isShown.value = !isShown.peek();
    };
    const removers = [
      shortcut("mod+b", toggle, "common.toggleSidebar"),
      shortcut("mod+shift+s", toggle, "common.toggleSidebar"),
    ];
    return () => removers.forEach((remove) => remove());
  }, []);
  useEffect(() => {
    if (NARROW.matches) isShown.value = false;
  }, [location.value]);
  const Content = loaded;
  const label = t(isShown.value ? "common.hideSidebar" : "common.showSidebar");
  return html`<div class="sidebar-place ${isShown.value ? "shown" : ""}">
    <${IconButton} class="sidebar-toggle" icon="panel-left" label=${label} aria-expanded=${String(isShown.value)}
      aria-controls="sidebar" onClick=${() => (isShown.value = !isShown.value)} />
    <aside id="sidebar" aria-label=${t("common.sidebar")} inert=${!isShown.value}>
      <p class="site-name" dir="auto">${config.value.name}</p>
      ${Content && html`<${Content} />`}
    </aside>
    <div class="sidebar-shade" onClick=${() => (isShown.value = false)}></div>
  </div>`;
}

function PlainLinks() {
  const links = [
    ["/", "common.newChat"],
    ["/documents", "common.documents"],
    ["/settings", "common.settings"],
    ...(isAdmin() ? [[ADMIN, "common.administration"]] : []),
  ];
  return html`<nav class="plain-links" aria-label=${config.value.name}>
    <ul>${links.map(([href, key]) => html`<li key=${href}><${Link} href=${href}>${t(key)}<//></li>`)}</ul>
  </nav>`;
}
