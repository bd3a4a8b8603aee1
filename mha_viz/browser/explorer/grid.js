// All heads at a glance: one canvas, one small picture per head.
import { pooled, pooledUnits, shading, shownBlock, units } from "../geometry.js";
import { fit, meetings, paint, resolution } from "../ink.js";
import { gridLayout } from "../layouts.js";
import { gridOf, hasKeptHeads, inModel, mapName } from "../reading.js";
import { isOfLayers } from "../view.js";
/** @import { ReadingView, ShownBlock } from "../geometry.js" */
/** @import { Meetings } from "../ink.js" */
/** @import { GridLayout } from "../layouts.js" */
/** @import { Reading } from "../reading.js" */
/** @import { Look } from "../stage.js" */

const WIDE = 44; // pixels for "L11H11"

// Draws all heads and returns the layout. `look` = {width, height, colours, muted, small}; `below`: room for a bar.
/**
 * @type {(canvas: HTMLCanvasElement, reading: Reading, view: ReadingView, look: Look, below: number) =>
 *   GridLayout}
 */
export function drawGrid(canvas, reading, view, look, below) {
  const { layers, heads } = gridOf(reading);
  const layout = gridLayout(look.width, layers.length, heads.length, look.height, below, look.largest);
  const context = fit(canvas, layout.width, layout.height);
  const ratio = resolution(canvas);
  const size = Math.max(1, Math.floor(layout.size * ratio));
  const image = context.createImageData(canvas.width, canvas.height); // all heads in one image, drawn in one call
  const target = new Uint32Array(image.data.buffer);
  const partOf = blocks(reading, view);
  /** @type {Meetings[]} */
  let met = []; // the same for all heads
  for (let i = 0; i < layers.length * heads.length; i++) {
    const [row, column] = [Math.floor(i / heads.length), i % heads.length];
    const part = partOf(layers[row] * reading.heads + heads[column]);
    const x = Math.round((layout.left + column * layout.step) * ratio);
    const y = Math.round((layout.top + row * layout.down) * ratio);
    if (!part.R || !part.C) continue;
    if (!met.length) met = [meetings(part.R, size), meetings(part.C, size)];
    const colours = part.signed ? look.signedColours : look.colours;
    paint(part, shading(part, view.scale), met, colours, target, canvas.width, y * canvas.width + x);
  }
  context.putImageData(image, 0, 0);
  labels(context, reading, layout, look);
  return layout;
}

// What a view shows of each head: pooled if only thumbnails were sent.
/** @type {(reading: Reading, view: ReadingView) => (head: number) => ShownBlock} */
function blocks(reading, view) {
  if (reading.bins) {
    const bins = pooledUnits(reading, view);
    return (head) => pooled(reading, head, bins);
  }
  const axes = units(reading, view);
  return (head) => shownBlock(reading, head, view, axes);
}

/** @type {(context: CanvasRenderingContext2D, reading: Reading, layout: GridLayout, look: Look) => void} */
function labels(context, reading, layout, look) {
  context.fillStyle = look.muted;
  context.font = look.small;
  context.textBaseline = "middle";
  context.textAlign = "center";
  const { layers, heads } = gridOf(reading);
  const areKept = hasKeptHeads(reading);
  const hasNames = !isOfLayers(reading) && (!areKept || layout.step >= WIDE);
  for (const [column, head] of hasNames ? heads.entries() : []) {
    const name = areKept ? mapName(reading, head) : String(head);
    context.fillText(name, layout.left + column * layout.step + layout.size / 2, layout.top / 2);
  }
  context.textAlign = "right";
  for (const [row, layer] of areKept ? [] : layers.entries()) {
    const name = `L${inModel(reading, layer * reading.heads)[0]}`;
    context.fillText(name, layout.left - 8, layout.top + row * layout.down + layout.size / 2);
  }
}
