/**
 * Starts the page.
 */
import "#app/core/platform";
import { html, render } from "#app/core/html";
import { loadMessages, loadOtherMessages } from "#app/core/messages";
import { installServiceWorker } from "#app/core/policy";
import { route } from "#app/core/router";
import { loadSession } from "#app/core/session";
import { ROUTES } from "#app/routes";
import { Shell } from "#app/shell";
import { ErrorNote } from "#app/ui/states";

async function start() {
  for (const [pattern, loader] of ROUTES) route(pattern, loader);
  const root = document.getElementById("app");
  const loads = await Promise.allSettled([loadMessages(), loadSession()]);
  root.replaceChildren();
  const failed = loads.find((load) => load.status === "rejected");
  if (failed) {
    const again = () => location.reload();
    render(html`<main class="notice"><${ErrorNote} error=${failed.reason} retry=${again} /></main>`, root);
    return;
  }
  render(html`<${Shell} />`, root);
  loadOtherMessages().catch(reportError);
  import("#app/chat/attention").then(({ startAttention }) => startAttention());
  import("#app/core/notifications").then(({ watchNews }) => watchNews());
  if (document.documentElement.dataset.ownModule === "true") import("#own/module").catch(reportError);
  installServiceWorker().catch((error) => console.warn("no service worker:", error));
}

start();
