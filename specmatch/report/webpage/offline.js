// A service worker that keeps the page's files, so that a reload without a network shows the page as it was.
"use strict";
const name = new URL(registration.scope).pathname; // other pages of this host have their own
addEventListener("install", e => e.waitUntil(skipWaiting()));
addEventListener("activate", e => e.waitUntil(clients.claim()));
addEventListener("fetch", e => {
  if (e.request.method !== "GET" || new URL(e.request.url).origin !== location.origin) return;
  e.respondWith((async () => {
    const cache = await caches.open(name);
    try {
      const response = await fetch(e.request);
      if (response.ok) await cache.put(e.request, response.clone());
      return response;
    } catch {
      return await cache.match(e.request, { ignoreSearch: true }) ?? Response.error();
    }
  })());
});
addEventListener("message", e => e.waitUntil((async () => {
  const cache = await caches.open(name);
  await Promise.all(e.data.map(async url => await cache.match(url) ?? cache.add(url)));
  e.ports[0]?.postMessage("kept");
})()));
