/**
 * What the document in this tab may do beyond the strict policy that it came with, and the one policy for script
 * addresses (Trusted Types).
 */
const { dataset } = document.documentElement;

/** Hosts whose pages may be embedded: `host`, `host:port` or `*.domain`. */
export const embedHosts = (dataset.embedHosts ?? "").split(" ").filter(Boolean);

const SERVICE_WORKER = "/service-worker.js";
const scripts = window.trustedTypes?.createPolicy("page", {
  createScriptURL: (address) => {
    if (address !== SERVICE_WORKER) throw new TypeError(`not a script of this page: ${address}`);
    return address;
  },
});

/** Installs the service worker, where browsers allow it. */
export async function installServiceWorker() {
  if (!("serviceWorker" in navigator)) return;
  await navigator.serviceWorker.register(scripts ? scripts.createScriptURL(SERVICE_WORKER) : SERVICE_WORKER);
}
