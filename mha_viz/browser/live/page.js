// A sentence field on a published page: a worker on this device reads the typed text, and the explorer draws it.
import { NOT_DRAWN, buildAddress, inflate, waitForFonts } from "../alone.js";
import { make } from "../dom.js";
/** @import { HeadRoles } from "../explorer/roles.js" */
/** @import { Send } from "../mount.js" */
/** @import { Message } from "./reader.js" */

/** @typedef {{ show: (data: any, headRoles?: HeadRoles) => void }} ExplorerDrawing */
/** @typedef {(root: HTMLElement, send: Send, readAddress: () => string) => ExplorerDrawing} Create */

// Filled in when the page is written (figures/files/live.py).
const READER = "reader.js";

const MEGABYTE = 1e6;
const READING = "Reading …";
const FAILED = "The model could not be downloaded or run. Check the connection, then try again.";
const TOO_LARGE = "The model is too large for this browser. Open the page on a device with more memory.";

/** @type {(bytes: number) => string} */
const formatMegabytes = (bytes) => (bytes / MEGABYTE).toFixed(bytes < 10 * MEGABYTE ? 1 : 0);

// Draw the example, and every text typed after that.
/** @type {(create: Create, style: string) => Promise<void>} */
export async function openLive(create, style) {
  document.getElementById("unserved")?.remove();
  const section = /** @type {HTMLElement} */ (document.getElementById("live"));
  /** @type {(selector: string) => any} */
  const findPart = (selector) => section.querySelector(selector);
  const content = JSON.parse(findPart("script").textContent);
  let address = content.start;
  /** @type {Send} */
  const send = (name, value) => {
    if (name === "view") address = buildAddress(value);
  };
  const host = findPart("[data-live]");
  try {
    const root = attachStyle(host, style);
    await waitForFonts();
    const drawing = create(root, send, () => address);
    drawing.show(await inflate(content.packet), content.ofHeads);
    listen(findPart, (message) => drawing.show(message));
  } catch (error) {
    host.replaceWith(make("p", {}, NOT_DRAWN));
    throw error;
  }
  navigator.serviceWorker?.register("offline.js").catch(() => {}); // without it, the page does not work offline
}

// Make an element for the explorer, with a style that applies only to it.
/** @type {(host: HTMLElement, style: string) => HTMLElement} */
function attachStyle(host, style) {
  const shadow = host.attachShadow({ mode: "open" });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(style);
  shadow.adoptedStyleSheets = [sheet];
  const root = make("div", { class: "mha-explorer" });
  Object.assign(root.dataset, { alone: "yes", show: "all" });
  shadow.append(root);
  return root;
}

// Send typed text to the worker; draw only the answer to the latest sentence.
/** @type {(findPart: (selector: string) => any, show: (reading: any) => void) => void} */
function listen(findPart, show) {
  const [form, field, status, bar] = ["form", "input", "[role=status]", "progress"].map(findPart);
  /** @type {Worker | null} */
  let worker = null;
  let unanswered = 0;
  const fail = (notice = FAILED) => {
    worker?.terminate();
    [worker, unanswered, bar.hidden] = [null, 0, true]; // the next sentence tries again
    status.textContent = notice;
  };
  /** @type {(event: MessageEvent<Message>) => void} */
  const onMessage = ({ data }) => {
    const { loaded, total = 0, refusal = "", note = "" } = data;
    if (data.failed) return fail(data.large ? TOO_LARGE : FAILED);
    bar.hidden = loaded === undefined || loaded === total;
    if (loaded !== undefined) {
      [bar.value, bar.max] = [loaded, total];
      const progress = `Downloading the model: ${formatMegabytes(loaded)} of ${formatMegabytes(total)} MB`;
      status.textContent = loaded < total ? progress : unanswered ? READING : "";
      return;
    }
    if (--unanswered) return;
    if (data.reading) show(attachMatrices(data));
    status.textContent = refusal || note || `Read on this device: ${data.reading.n} tokens.`;
    storeAll();
  };
  /** @type {(text: string | null) => void} */
  const ask = (text) => {
    worker ??= startWorker(onMessage, fail);
    worker.postMessage(text);
  };
  form.addEventListener("submit", (/** @type {Event} */ event) => {
    event.preventDefault();
    unanswered++;
    status.textContent = READING;
    ask(field.value);
  });
  field.addEventListener("input", () => ask(null), { once: true }); // load the model when the user begins to type
}

/** @type {(onMessage: (event: MessageEvent<Message>) => void, fail: () => void) => Worker} */
function startWorker(onMessage, fail) {
  const worker = new Worker(READER, { type: "module" });
  worker.addEventListener("message", onMessage);
  worker.addEventListener("error", () => fail());
  return worker;
}

// Ask the service worker, and any update of it that takes over, to store everything that the page needs offline.
/** @type {() => void} */
function storeAll() {
  const workers = navigator.serviceWorker;
  const ask = () => workers.ready.then(({ active }) => active?.postMessage("keep"));
  if (!workers) return;
  workers.oncontrollerchange = ask;
  ask();
}

/** @type {(message: Message) => any} */
function attachMatrices({ reading, weights = new Float32Array() }) {
  const size = reading.n * reading.n;
  const matrices = new Map(
    reading.full.map((/** @type {number} */ head, /** @type {number} */ i) => {
      return [head, weights.subarray(i * size, (i + 1) * size)];
    }),
  );
  return { ...reading, matrices };
}
