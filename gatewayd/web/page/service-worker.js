/**
 * Service worker of the page: keeps its files, which never change at their address, and one notice for the time
 * without a connection. It stores no answer of the API and no view, so that nothing of an account stays readable.
 */
const RELEASE = "page-$release";
const NOTICE = "/offline.html";

self.addEventListener("install", (event) => event.waitUntil(prepare()));
self.addEventListener("activate", (event) => event.waitUntil(tidy()));
self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== self.location.origin || request.headers.has("range")) return;
  if (url.pathname.startsWith("/static/")) event.respondWith(fromCache(request));
  else if (request.mode === "navigate") event.respondWith(fromNetwork(request));
});

/** Stores the notice and the files that it needs. */
async function prepare() {
  const cache = await caches.open(RELEASE);
  const reply = await fetch(NOTICE, { cache: "reload" });
  if (!reply.ok) throw new Error(`${NOTICE}: ${reply.status}`);
  const files = (await reply.clone().text()).matchAll(/"(\/static\/[^"]+)"/g);
  await cache.addAll([...files].map((found) => found[1]));
  await cache.put(NOTICE, reply);
  await self.skipWaiting();
}

/** Removes what earlier releases stored. */
async function tidy() {
  const old = (await caches.keys()).filter((name) => name !== RELEASE);
  await Promise.all(old.map((name) => caches.delete(name)));
  await self.clients.claim();
}

/** Answers a file of the page, and keeps it. */
async function fromCache(request) {
  const kept = await caches.match(request);
  if (kept) return kept;
  const reply = await fetch(request);
  if (reply.status === 200) {
    const cache = await caches.open(RELEASE);
    await cache.put(request, reply.clone());
  }
  return reply;
}

/** Answers a view from the network, else the notice. */
async function fromNetwork(request) {
  try {
    return await fetch(request);
  } catch {
    return (await caches.match(NOTICE)) ?? Response.error();
  }
}
