// Two canvases on top of each other: a drawing that is made once, and the focus in it.
import { make } from "../dom.js";
import { drawHeatmap, drawHeatmapFocus } from "../heatmap.js";
import { drawLinks } from "../links.js";
/** @import { Span } from "../layouts.js" */
/** @import { Look } from "../stage.js" */

/**
 * @typedef {{ canvas: HTMLCanvasElement, over: HTMLCanvasElement, tall: HTMLElement, box: HTMLElement, layout?: any }}
 *   CanvasPair
 */

/** @type {() => CanvasPair} */
export function canvasPair() {
  const canvas = make("canvas", { tabIndex: 0, role: "application" });
  const over = make("canvas", { class: "over", "aria-hidden": true });
  const tall = make("div", { class: "tall" }, canvas, over);
  return { canvas, over, tall, box: make("div", { class: "box" }, tall) };
}

// `scene` contains `heads` for links, `head` for a heatmap. Unless `all`, only the focus is drawn: over the heatmap, or
// in place of the links.
/** @type {(sheet: CanvasPair, scene: any, focus: Span | null, all: boolean, look: Look) => void} */
export function drawCanvasPair(sheet, scene, focus, all, look) {
  const isLinks = !!scene.heads;
  if (all && isLinks) {
    sheet.layout = drawLinks(sheet.canvas, scene, look, sheet.box.scrollTop);
    sheet.tall.style.height = `${sheet.layout.height}px`;
  } else if (all) {
    sheet.layout = drawHeatmap(sheet.canvas, scene, look);
    sheet.tall.style.height = "";
  }
  sheet.over.hidden = !focus;
  sheet.tall.classList.toggle("replaced", isLinks && !!focus);
  if (!focus) return;
  if (isLinks) drawLinks(sheet.over, { ...scene, focus }, look, sheet.box.scrollTop);
  else drawHeatmapFocus(sheet.over, { ...scene, focus }, look, sheet.layout);
}
