// The service worker of a page that reads by itself: what was fetched once is taken from this device from then on.

/** @typedef {{ version: string, files: string[] }} Stored */

// Filled in where the page is written (exports/live.py): a browser asks for this file again, and a new text of it
// brings a new version of the page.
const STORED = /** @type {Stored} */ ({ version: "", files: [] });

const scope = /** @type {any} */ (self);
const mine = `mha-viz ${scope.registration.scope} `; // other pages of the host have stores, too
/** @type {() => Promise<Cache>} */
const store = () => caches.open(mine + STORED.version);

/** @type {() => Promise<void>} */
async function install() {
  await (await store()).addAll(STORED.files.map((file) => new Request(file, { cache: "no-cache" })));
  await scope.skipWaiting();
}

/** @type {() => Promise<void>} */
async function activate() {
  const names = (await caches.keys()).filter((name) => name.startsWith(mine) && name !== mine + STORED.version);
  await Promise.all(names.map((name) => caches.delete(name)));
  await scope.clients.claim();
}

/** @type {(request: Request) => Promise<Response>} */
async function answered(request) {
  const files = await store();
  const stored = await files.match(request, { ignoreSearch: true });
  if (stored) return stored;
  const response = await fetch(request);
  if (response.ok) await files.put(request, response.clone());
  return response;
}

scope.addEventListener("install", (/** @type {any} */ event) => event.waitUntil(install()));
scope.addEventListener("activate", (/** @type {any} */ event) => event.waitUntil(activate()));
scope.addEventListener("fetch", (/** @type {any} */ event) => {
  const { method, url } = event.request;
  if (method === "GET" && url.startsWith(scope.registration.scope)) event.respondWith(answered(event.request));
});
