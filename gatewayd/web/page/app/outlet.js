/**
 * Shows the view of an address, and loads its module first.
 */
import { html, useEffect, useState } from "#app/core/html";
import { loadOtherMessages, t } from "#app/core/messages";
import { Link, match } from "#app/core/router";
import { FIRST } from "#app/routes";
import { EmptyState, ErrorNote, Skeleton } from "#app/ui/states";

const RELOADED = "gatewayd-reloaded";
const RELOAD_PAUSE_MS = 60000;

/** The view of a path. @param {{path: string}} props */
export function Outlet({ path }) {
  const found = match(path);
  const [loaded, setLoaded] = useState({});
  useEffect(() => {
    let isCurrent = true;
    const keep = (state) => isCurrent && setLoaded({ loader: found.loader, ...state });
    if (found) load(found).then((View) => keep({ View }), (error) => reloadOnce(error) || keep({ error }));
    return () => {
      isCurrent = false;
    };
  }, [found?.loader]);
  // Two addresses with one loader have one view, which stays.
  if (!found) return html`<${Unknown} />`;
  if (loaded.loader !== found.loader) {
    return html`<div class="view"><${Skeleton} /></div>`;
  }
  if (loaded.error) return html`<${Failed} error=${loaded.error} />`;
  return html`<${loaded.View} params=${found.params} />`;
}

/** Loads a view, and its texts unless they have come with the page. */
async function load({ pattern, loader }) {
  const [module] = await Promise.all([loader(), FIRST.has(pattern) ? null : loadOtherMessages()]);
  return module.default;
}

function Unknown() {
  return html`<div class="view"><h1 class="hidden">${t("errors.notFound")}</h1>
    <${EmptyState} icon="search" title=${t("errors.notFound")}>
      <${Link} class="button" href="/">${t("common.toChats")}<//>
    <//></div>`;
}

function Failed({ error }) {
  return html`<div class="view"><h1 class="hidden">${t("errors.page")}</h1>
    <${ErrorNote} error=${error} retry=${() => location.reload()} /></div>`;
}

/**
 * Loads the page anew when a module is gone, since another release of the gateway has other addresses for its files;
 * returns whether it does so, which is once a minute at most.
 */
function reloadOnce(error) {
  // A name that the import map does not have is no matter of releases.
  if (/specifier/.test(String(error.message))) return false;
  const last = Number(sessionStorage.getItem(RELOADED) ?? 0);
  if (Date.now() - last < RELOAD_PAUSE_MS) return false;
  sessionStorage.setItem(RELOADED, String(Date.now()));
  location.reload();
  return true;
}
