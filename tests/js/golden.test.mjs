// The drawings on screen have the same marks, positions, colours and opacities as those in files (tests/golden).
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

const measureWidth = (font, text) => 0.5 * +/(\d+(?:\.\d+)?)px/.exec(font)[1] * text.length;

class Recorder {
  constructor(canvas) {
    Object.assign(this, { canvas, marks: [], at: [0, 0], turn: 0, saved: [], globalAlpha: 1, dash: [] });
  }
  setTransform() {}
  clearRect() {}
  setLineDash(dash) {
    this.dash = dash;
  }
  save() {
    this.saved.push([this.at, this.turn]);
  }
  restore() {
    [this.at, this.turn] = this.saved.pop();
  }
  translate(x, y) {
    this.at = [this.at[0] + x, this.at[1] + y];
  }
  rotate(angle) {
    this.turn = -(angle * 180) / Math.PI;
  }
  measureText(text) {
    return { width: measureWidth(this.font, text) };
  }
  fillText(text, x, y) {
    const [, weight, size] = /^(\d+) (\d+(?:\.\d+)?)px/.exec(this.font);
    const anchor = { left: "start", center: "middle", right: "end" }[this.textAlign];
    this.marks.push({
      mark: "text",
      x: this.at[0] + x,
      y: this.at[1] + y,
      text: text.replace(/[\u2068\u2069]/g, ""),
      size: +size,
      colour: this.fillStyle,
      weight: +weight,
      anchor,
      turn: this.turn,
      opacity: this.globalAlpha,
    });
  }
  fillRect(x, y, width, height) {
    if (this.turn) [x, y, width, height] = [y, -x - width, height, width]; // a quarter turn to the left
    [x, y] = [this.at[0] + x, this.at[1] + y];
    this.marks.push({
      mark: "rect",
      x,
      y,
      width,
      height,
      fill: this.fillStyle,
      stroke: null,
      stroke_width: 0,
      opacity: this.globalAlpha,
    });
  }
  strokeRect(x, y, width, height) {
    this.marks.push({
      mark: "rect",
      x,
      y,
      width,
      height,
      fill: null,
      stroke: this.strokeStyle,
      stroke_width: this.lineWidth,
      opacity: this.globalAlpha,
    });
  }
  drawImage({ image, width: C, height: R }, x, y, width, height) {
    const colours = Array.from({ length: R }, (_, r) =>
      Array.from(
        { length: C },
        (_, c) => "#" + [0, 1, 2].map((k) => image.data[4 * (r * C + c) + k].toString(16).padStart(2, "0")).join(""),
      ),
    );
    this.marks.push({ mark: "cells", x, y, width, height, colours });
  }
  stroke(path) {
    for (const points of path.lines)
      this.marks.push({
        mark: "curve",
        points,
        colour: this.strokeStyle,
        width: this.lineWidth,
        opacity: this.globalAlpha,
        dash: this.dash,
      });
  }
  createImageData(width, height) {
    return new ImageData(width, height);
  }
  putImageData(image) {
    this.canvas.image = image;
  }
}

class Canvas {
  constructor(width = 0, height = 0) {
    Object.assign(this, { width, height, style: {} });
  }
  getContext() {
    return (this.context ??= new Recorder(this));
  }
}

Object.assign(globalThis, {
  window: { devicePixelRatio: 1 },
  OffscreenCanvas: Canvas,
  ImageData: class {
    constructor(width, height) {
      this.data = new Uint8ClampedArray(4 * width * height);
    }
  },
  Path2D: class {
    lines = [];
    moveTo(x, y) {
      this.from = [x, y];
    }
    bezierCurveTo(a, b, c, d, x, y) {
      this.lines.push([this.from, [a, b], [c, d], [x, y]]);
    }
  },
});

const { computeBlock, computeShades, computeUnits } = await import("../../mha_viz/browser/geometry.js");
const { makePalette } = await import("../../mha_viz/browser/ink.js");
const { drawGrid } = await import("../../mha_viz/browser/explorer/overview.js");
const {
  drawHeatmap,
  drawHeatmapFocus,
  EDGE,
  measureHeatmapLabel,
  computeLabelSize,
  computeLabelStep,
  describeLabelStep,
} = await import("../../mha_viz/browser/heatmap.js");
const { drawLinks, measureLinksLabel, makeLinks } = await import("../../mha_viz/browser/links.js");
const {
  findCounterparts,
  subtract,
  findPartners,
  computeSharedShades,
  computeSignedShades,
  findLargestWeight,
  computeTextUnits,
  unpackPanels,
} = await import("../../mha_viz/browser/compare/together.js");
const golden = JSON.parse(readFileSync(new URL("../golden/figures.json", import.meta.url)));

const reading = {
  ...golden.reading,
  matrices: new Map(golden.reading.matrices.map((m, i) => [i, Float32Array.from(m)])),
};
const crowded = {
  ...golden.crowded.reading,
  matrices: new Map(golden.crowded.reading.matrices.map((m, i) => [i, Float32Array.from(m)])),
};
const withSigns = {
  ...golden.reading,
  signed: true,
  quantity: "gradient",
  matrices: new Map(golden.signed.matrices.map((m, i) => [i, Float32Array.from(m)])),
};
const allCases = [
  ...Object.entries(golden.cases).map(([name, expected]) => [name, expected, reading, golden.theme]),
  ...Object.entries(golden.signed.cases).map(([name, expected]) => [name, expected, withSigns, golden.grey]),
];
const { theme } = golden;
const makeLook = (theme) => ({
  width: golden.width,
  height: 100_000,
  colours: makePalette(theme.ramp),
  signedColours: makePalette(theme.signed),
  ink: theme.ink,
  muted: theme.muted,
  accent: theme.accent,
  paper: theme.paper,
  hasMinus: theme.has_minus,
  textFont: (size, weight = 400) => `${weight} ${size}px sans`,
  numberFont: (size) => `600 ${size}px mono`,
});
const look = makeLook(theme);
const withEdge = (look) => ({ ...look, width: look.width + EDGE }); // of a canvas with room for half of a frame

function scene({ pin, ...view }, reading, theme) {
  const axes = computeUnits(reading, view);
  const blocks = golden.open.map((head) => computeBlock(reading, head, view, axes));
  const lines = makeLinks(blocks, axes, view.links, view.scale);
  const heads = golden.open.map((head, index) => {
    const block = blocks[index];
    const colours = reading.signed ? { colour: theme.signed.at(-2), negativeColour: theme.signed[1] } : {};
    const line = { colour: theme.heads[head], dash: theme.dashes[index], ...colours };
    return { head, ...line, block, ...lines[index], shade: computeShades(block, view.scale) };
  });
  const [, query, key] = /^(?:q(\d+))?(?:k(\d+))?$/.exec(pin);
  const find = (list, token) => (token === undefined ? null : list.findIndex((u) => u.tokens.includes(+token)));
  const focus = pin ? { row: find(axes.rows, query), col: find(axes.cols, key) } : null;
  return { ...axes, heads, focus, view };
}

// Sort marks, because their stacking order is not compared.
const sortMarks = (marks) => marks.map((m) => JSON.stringify(round(m), Object.keys(round(m)).sort())).sort();
function round(value) {
  if (Array.isArray(value)) return value.map(round);
  if (value && typeof value === "object")
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, round(v)]));
  return typeof value === "number" ? Math.round(value * 1e5) / 1e5 + 0 : value;
}

// Undo a difference between screen and file: on screen, labels near or not linked to a pinned one are paler.
function matchFile(marks, { rows, cols, focus, heads }) {
  const focusByTurn = heads ? { 0: focus } : { 0: focus?.row ?? null, 90: focus?.col ?? null };
  const special = new Set([...rows, ...cols].filter((unit) => unit.special).map((unit) => unit.text));
  return marks.map((mark) => {
    const isPale = mark.mark === "text" && focusByTurn[mark.turn] !== null && mark.colour === theme.muted;
    return isPale && !special.has(mark.text) ? { ...mark, colour: theme.ink } : mark;
  });
}

for (const [name, expected, reading, theme] of allCases) {
  test(`heatmap, ${name}`, () => {
    const { heads, ...axes } = scene(expected.view, reading, theme);
    const canvas = new Canvas();
    drawHeatmap(canvas, { ...axes, head: heads[0] }, withEdge(makeLook(theme)));
    assert.deepEqual(sortMarks(matchFile(canvas.getContext().marks, axes)), sortMarks(expected.heatmap));
  });
}

const crowdedCases = Object.entries(golden.crowded.cases).map(([name, expected]) => [name, expected, crowded, theme]);
for (const [name, expected, reading, theme] of [...allCases, ...crowdedCases]) {
  test(`links, ${name}`, () => {
    const canvas = new Canvas();
    const linksScene = scene(expected.view, reading, theme);
    drawLinks(canvas, linksScene, makeLook(theme), 0);
    assert.deepEqual(sortMarks(matchFile(canvas.getContext().marks, linksScene)), sortMarks(expected.links));
  });
}

test("labels have the same size, number and description on screen as in a file", () => {
  for (const [cell, expected] of golden.labelled)
    assert.deepEqual([computeLabelSize(cell), computeLabelStep(cell), describeLabelStep(cell)], expected, String(cell));
});

test("both canvases have room for half of a frame beyond the last row and column", () => {
  const pinnedCase = allCases.find(([, { view }]) => view.pin === "q6");
  const { heads, ...axes } = scene(pinnedCase[1].view, reading, theme);
  const framed = { ...axes, head: heads[0], focus: { row: axes.rows.length - 1, col: axes.cols.length - 1 } };
  const [below, over] = [new Canvas(), new Canvas()];
  const layout = drawHeatmap(below, framed, look);
  drawHeatmapFocus(over, framed, look, layout);
  for (const { width, height, context } of [below, over])
    for (const frame of context.marks.filter(({ stroke }) => stroke)) {
      assert.ok(frame.x + frame.width + frame.stroke_width / 2 <= width);
      assert.ok(frame.y + frame.height + frame.stroke_width / 2 <= height);
    }
  assert.ok(below.width <= look.width);
});

test("words without a link to a pinned one are paler on screen", () => {
  const pinnedCase = allCases.find(([, { view }]) => view.pin === "q6");
  const canvas = new Canvas();
  const linksScene = scene(pinnedCase[1].view, reading, theme);
  drawLinks(canvas, linksScene, look, 0);
  const pale = (marks) => marks.filter(({ mark, colour }) => mark === "text" && colour === theme.muted).length;
  assert.ok(pale(canvas.getContext().marks) > pale(matchFile(canvas.getContext().marks, linksScene)));
});

test("labels near a pinned one are paler on screen; cells are not", () => {
  const pinnedCase = allCases.find(([, { view }]) => view.pin === "q6");
  const { heads, ...axes } = scene(pinnedCase[1].view, reading, theme);
  const [pinned, unpinned] = [axes.focus, null].map((focus) => {
    const canvas = new Canvas();
    drawHeatmap(canvas, { ...axes, focus, head: heads[0] }, look);
    return canvas.getContext().marks;
  });
  const rows = (marks) => marks.filter(({ mark, turn }) => mark === "text" && turn === 0).map(({ colour }) => colour);
  assert.equal(rows(unpinned).filter((colour) => colour === theme.muted).length, 0);
  assert.equal(rows(pinned).filter((colour) => colour === theme.muted).length, rows(pinned).length - 1);
  const cells = (marks) => marks.filter(({ mark, fill }) => mark === "cells" || fill);
  assert.deepEqual(cells(pinned), cells(unpinned));
});

// ---- The grid: its pictures consist of pixels, so each cell is read in its middle --------------------------------

for (const [name, expected, reading, theme] of allCases) {
  test(`grid, ${name}`, () => {
    const canvas = new Canvas();
    const layout = drawGrid(canvas, reading, expected.view, { ...makeLook(theme), smallFont: "400 11px sans" });
    const pictures = expected.grid.filter((mark) => mark.mark === "cells");
    const { R, C } = computeBlock(reading, 0, expected.view);
    assert.equal(pictures.length, R && C ? reading.heads : 0);
    pictures.forEach((picture, head) => {
      assert.deepEqual(
        [picture.x, picture.y, picture.width],
        [layout.left + head * layout.step, layout.top, layout.size],
      );
      const findPixel = (r, c) => [(r + 0.5) / R, (c + 0.5) / C].map((share) => Math.floor(share * picture.width));
      const colours = Array.from({ length: R }, (_, r) =>
        Array.from({ length: C }, (_, c) => {
          const [y, x] = findPixel(r, c);
          return getColour(canvas, picture.x + x, picture.y + y);
        }),
      );
      assert.deepEqual(colours, picture.colours);
    });
    const texts = (marks) => sortMarks(marks.filter((mark) => mark.mark === "text"));
    assert.deepEqual(texts(canvas.getContext().marks), texts(expected.grid));
  });
}

function getColour({ image, width }, x, y) {
  const offset = 4 * (y * width + x);
  return "#" + [0, 1, 2].map((k) => image.data[offset + k].toString(16).padStart(2, "0")).join("");
}

// ---- Panels side by side, and the difference of two, as compare.js draws them ---------------------------------------

const set = unpackPanels(new Uint8Array(Buffer.from(golden.panels, "base64")));
set.panels.forEach(({ reading: i, head }, panel) =>
  set.readings[i].matrices.set(head, Float32Array.from(golden.weights[panel])),
);

function computePanels({ view: { pin, ...view }, at, diff }) {
  const units = set.readings.map((reading) => computeTextUnits(reading, view));
  const blocks = set.panels.map(({ reading: i, head }) =>
    computeBlock(set.readings[i], head, view, { rows: units[i], cols: units[i] }),
  );
  const subtracted = diff && subtract(set, view, diff);
  const diffReadings = subtracted?.partner ? diff.map((panel) => set.panels[panel].reading) : [];
  const from = set.panels[at].reading;
  const [, query, key] = /^(?:q(\d+))?(?:k(\d+))?$/.exec(pin);
  const pinnedUnits = [query, key].map((token) =>
    token === undefined ? null : units[from].findIndex((u) => u.tokens.includes(+token)),
  );
  const mapFocus = (i) => {
    // as mapSpot does
    if (!pin || pinnedUnits.includes(-1)) return null;
    const counterparts =
      from !== i && diffReadings.includes(from) && diffReadings.includes(i)
        ? findPartners(set, from, i, units[from], units[i], view).partner.map((unit) => [unit, 1])
        : findCounterparts(set, from, i, units[from], units[i]);
    const [row, col] = pinnedUnits.map((unit) => (unit === null ? [null, 1] : counterparts[unit]));
    return row && col ? { row: row[0], rows: row[1], col: col[0], cols: col[1] } : null;
  };
  return { units, blocks, subtracted, mapFocus, top: findLargestWeight(blocks) };
}

// Combine the marks of a heatmap and of the canvas over it, which covers the labels of a focused axis with new ones.
function combineMarks(below, over) {
  const covers = ({ x, y, width, height }, text) =>
    text.x >= x - 10 && text.x <= x + width + 10 && text.y >= y && text.y <= y + height + 10;
  const labels = over.filter((m) => m.mark === "rect" && m.fill && (m.x === 0 || m.y === 0)); // around the cells
  const base = below.filter((mark) => mark.mark !== "text" || !labels.some((rect) => covers(rect, mark)));
  return [...base, ...over.filter((mark) => !labels.includes(mark))];
}

function drawTwice(scene, focus, panelLook) {
  const [below, over] = [new Canvas(), new Canvas()];
  const layout = drawHeatmap(below, { ...scene, focus: null }, withEdge(panelLook));
  if (focus) drawHeatmapFocus(over, { ...scene, focus }, panelLook, layout);
  return matchFile(combineMarks(below.getContext().marks, over.getContext().marks), { ...scene, focus });
}

for (const [name, expected] of Object.entries(golden.together)) {
  const { view } = expected;
  const { units, blocks, subtracted, mapFocus, top } = computePanels(expected);
  const maxUnits = Math.max(...units.map((list) => list.length));
  const makePanelLook = (measureLabel) => ({
    ...look,
    maxUnits,
    labelWidth: Math.max(...units.map((list) => measureLabel(list, list, look))),
  });
  set.panels.forEach(({ reading: i, head }, panel) => {
    const shade = computeSharedShades(blocks[panel], view.scale, top);
    const axes = { rows: units[i], cols: units[i] };
    test(`heatmap of panel ${panel}, ${name}`, () => {
      const marks = drawTwice(
        { ...axes, head: { block: blocks[panel], shade } },
        mapFocus(i),
        makePanelLook(measureHeatmapLabel),
      );
      assert.deepEqual(sortMarks(marks), sortMarks(expected.heatmap[panel]));
    });
    test(`links of panel ${panel}, ${name}`, () => {
      const canvas = new Canvas();
      const drawnHead = {
        head,
        block: blocks[panel],
        shade,
        ...makeLinks([blocks[panel]], axes, view.links, view.scale, top)[0],
        colour: theme.heads[head % set.readings[i].heads],
        dash: [],
      };
      const scene = { ...axes, heads: [drawnHead], focus: mapFocus(i), view };
      drawLinks(canvas, scene, makePanelLook(measureLinksLabel), 0);
      assert.deepEqual(sortMarks(matchFile(canvas.getContext().marks, scene)), sortMarks(expected.links[panel]));
    });
  });
  if (expected.diff) {
    test(`difference, ${name}`, () => {
      const { rows, d, R, C, top } = subtracted;
      const head = { block: { w: d, R, C }, shade: computeSignedShades(subtracted), largest: top };
      const scene = { rows, cols: rows, head };
      const marks = drawTwice(scene, mapFocus(set.panels[expected.diff[0]].reading), {
        ...look,
        colours: makePalette(theme.signed),
      });
      assert.deepEqual(sortMarks(marks), sortMarks(expected.difference));
    });
  }
}
