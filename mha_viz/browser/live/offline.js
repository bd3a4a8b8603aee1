// The service worker of a page that works without a server. The page itself is fetched from its host if reachable; its
// files, whose addresses change with their content, come from this device once fetched. No other address on
// the host is affected. The worker unregisters itself when its file is gone.

// Filled in when the page is written (figures/files/live.py): `first` is stored on the first visit, `all` once the
// model has loaded. Browsers check this file for changes; if it has changed, they install the new version of the page.
const STORED = /** @type {{ first: string[], all: string[] }} */ ({ first: [], all: [] });
const PAGE = "./";

const SELF_FILE = "offline.js"; // this file

const scope = /** @type {any} */ (self);
const CACHE = `mha-viz ${scope.registration.scope}`; // other pages of the host have caches, too
/** @type {(name: string) => string} */
const resolveAddress = (name) => new URL(name, scope.registration.scope).href;
const PAGES = new Set([PAGE, "index.html"].map(resolveAddress));
const FILES = new Set(STORED.all.filter((name) => name !== PAGE).map(resolveAddress));
/** @type {() => Promise<Cache>} */
const openStore = () => caches.open(CACHE);
/** @type {Map<string, Promise<void>>} */
const pendingWrites = new Map(); // by address

// Store a copy in the background. If there is no room, the page still works online.
/** @type {(event: any, address: string, response: Response) => Response} */
function storeCopy(event, address, response) {
  if (!response.ok) return response;
  const copy = response.clone();
  const write = openStore()
    .then((files) => files.put(address, copy))
    .catch(() => {})
    .finally(() => pendingWrites.delete(address));
  pendingWrites.set(address, write);
  event.waitUntil(write);
  return response;
}

/** @type {(names: string[]) => Promise<void>} */
async function storeFiles(names) {
  await Promise.all(pendingWrites.values());
  const files = await openStore();
  for (const name of names) {
    if (name === PAGE) await files.add(new Request(PAGE, { cache: "no-cache" }));
    else if (!(await files.match(name))) await files.add(name);
  }
}

// Delete the files stored by other versions of the page.
/** @type {() => Promise<void>} */
async function activate() {
  const files = await openStore();
  const others = (await files.keys()).filter(({ url }) => !FILES.has(url) && !PAGES.has(url));
  await Promise.all(others.map((request) => files.delete(request)));
  await scope.clients.claim();
}

// Unregister if the host has removed this page: the file is missing, or its address returns a page. Browsers check for
// new versions of the file, but keep a worker whose file was removed.
/** @type {() => Promise<void>} */
async function unregisterIfGone() {
  const answer = await fetch(SELF_FILE, { cache: "no-cache" });
  const isScript = /javascript/.test(answer.headers.get("content-type") ?? "");
  if (answer.ok ? isScript : ![404, 410].includes(answer.status)) return;
  await Promise.all(pendingWrites.values());
  await scope.registration.unregister();
  await caches.delete(CACHE);
}

/** @type {(event: any) => Promise<Response>} */
async function fetchNewest(event) {
  try {
    const response = await fetch(event.request.url, { cache: "no-cache", redirect: "manual" });
    event.waitUntil(unregisterIfGone().catch(() => {}));
    return storeCopy(event, PAGE, response);
  } catch (error) {
    const storedPage = await (await openStore()).match(PAGE);
    if (storedPage) return storedPage;
    throw error;
  }
}

/** @type {(event: any) => Promise<Response>} */
async function fetchOnce(event) {
  const { request } = event;
  return (await (await openStore()).match(request)) ?? storeCopy(event, request.url, await fetch(request));
}

scope.addEventListener("install", (/** @type {any} */ event) => {
  event.waitUntil(storeFiles(STORED.first).then(() => scope.skipWaiting()));
});
scope.addEventListener("activate", (/** @type {any} */ event) => event.waitUntil(activate()));
scope.addEventListener("message", (/** @type {any} */ event) =>
  event.waitUntil(storeFiles(STORED.all).catch(() => {})),
);
scope.addEventListener("fetch", (/** @type {any} */ event) => {
  const { method, url } = event.request;
  const [address] = url.split("#");
  if (method !== "GET") return;
  if (PAGES.has(address)) event.respondWith(fetchNewest(event));
  else if (FILES.has(address)) event.respondWith(fetchOnce(event));
});
