// Draw a component in a file without a server: its data are in the page; changes stay in the address.
/** @import { Send } from "./mount.js" */

export const NOT_DRAWN = "This drawing needs a browser from 2024 or later.";

/** @typedef {{ show: (data: any) => void }} StandaloneDrawing a component in a standalone file */
/** @typedef {(root: HTMLElement, send: Send, readAddress: () => string) => StandaloneDrawing} Create */

// Decode base64 of deflated data whose even bytes precede the odd ones; see `compress_packet` in
// figures/files/page.py.
/** @type {(text: string) => Promise<Uint8Array>} */
export async function inflate(text) {
  const compressed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([compressed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const planes = new Uint8Array(await new Response(stream).arrayBuffer());
  const half = Math.ceil(planes.length / 2);
  const bytes = new Uint8Array(planes.length);
  for (let i = 0; i < half; i++) bytes[2 * i] = planes[i];
  for (let i = half; i < planes.length; i++) bytes[2 * (i - half) + 1] = planes[i];
  return bytes;
}

// Wait until the page's fonts are ready, because canvases do not wait before they measure words.
/** @type {() => Promise<unknown>} */
export function waitForFonts() {
  return Promise.allSettled([...document.fonts].map((face) => face.load()));
}

// Unpack the data in the page and draw it with a component.
/** @type {(create: Create) => Promise<void>} */
export async function openAlone(create) {
  const [root, data] = ["root", "said"].map((id) => /** @type {HTMLElement} */ (document.getElementById(id)));
  const content = JSON.parse(data.textContent ?? "");
  let address = "";
  const readAddress = () => address || location.hash.slice(1) || content.start;
  /** @type {Send} */
  const send = (name, value) => {
    if (name !== "view") return;
    address = buildAddress(value);
    try {
      history.replaceState(null, "", "#" + address);
    } catch {
      /* inside a notebook a page has no address */
    }
  };
  await waitForFonts();
  const [drawing, bytes] = await drawAlone(create, root, content.packet, send, readAddress);
  if (!drawing) return;
  window.addEventListener("hashchange", () => {
    address = "";
    drawing.show(bytes);
  });
  document.documentElement.dataset.painted = "yes";
}

// Draw every part of a page with a component, each with the data that follow it. Such a page stores nothing in the
// address.
/** @type {(create: Create) => Promise<void>} */
export async function openParts(create) {
  await waitForFonts();
  for (const root of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-alone]"))) {
    const content = JSON.parse(root.nextElementSibling?.textContent ?? "");
    let address = content.start;
    /** @type {Send} */
    const send = (name, value) => {
      if (name === "view") address = buildAddress(value);
    };
    await drawAlone(create, root, content.packet, send, () => address);
  }
  document.documentElement.dataset.painted = "yes";
}

/**
 * @type {(create: Create, root: HTMLElement, packet: string, send: Send, readAddress: () => string) => Promise<any[]>}
 */
async function drawAlone(create, root, packet, send, readAddress) {
  try {
    const bytes = await inflate(packet);
    const drawing = create(root, send, readAddress);
    drawing.show(bytes);
    return [drawing, bytes];
  } catch (error) {
    console.error(error);
    root.textContent = NOT_DRAWN;
    document.documentElement.dataset.painted = "no"; // show the content that waits for a drawing
    return [];
  }
}

/** @type {(view: Record<string, any>) => string} */
export function buildAddress(view) {
  const fields = Object.entries(view).filter(([name, value]) => name !== "of" && value !== null);
  return new URLSearchParams([["v", "1"], ...fields]).toString();
}
