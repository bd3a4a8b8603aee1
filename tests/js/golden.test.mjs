// The screen draws what the golden file says (tests/golden): the same marks, places, colours and opacities as files.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

const wide = (font, text) => 0.5 * +/(\d+(?:\.\d+)?)px/.exec(font)[1] * text.length;

class Recorder {
  constructor(canvas) { Object.assign(this, { canvas, marks: [], at: [0, 0], turn: 0, kept: [], globalAlpha: 1 }); }
  setTransform() {}
  clearRect() {}
  save() { this.kept.push([this.at, this.turn]); }
  restore() { [this.at, this.turn] = this.kept.pop(); }
  translate(x, y) { this.at = [this.at[0] + x, this.at[1] + y]; }
  rotate(angle) { this.turn = -(angle * 180) / Math.PI; }
  measureText(text) { return { width: wide(this.font, text) }; }
  fillText(text, x, y) {
    const [, weight, size] = /^(\d+) (\d+(?:\.\d+)?)px/.exec(this.font);
    const anchor = { left: "start", center: "middle", right: "end" }[this.textAlign];
    this.marks.push({ mark: "text", x: this.at[0] + x, y: this.at[1] + y, text: text.replace(/[\u2068\u2069]/g, ""),
      size: +size, colour: this.fillStyle, weight: +weight, anchor, turn: this.turn, opacity: this.globalAlpha });
  }
  fillRect(x, y, width, height) {
    this.marks.push({ mark: "rect", x, y, width, height, fill: this.fillStyle, stroke: null, stroke_width: 0, opacity: this.globalAlpha });
  }
  strokeRect(x, y, width, height) {
    this.marks.push({ mark: "rect", x, y, width, height, fill: null, stroke: this.strokeStyle, stroke_width: this.lineWidth, opacity: this.globalAlpha });
  }
  drawImage({ image, width: C, height: R }, x, y, width, height) {
    const colours = Array.from({ length: R }, (_, r) => Array.from({ length: C }, (_, c) =>
      "#" + [0, 1, 2].map((k) => image.data[4 * (r * C + c) + k].toString(16).padStart(2, "0")).join("")));
    this.marks.push({ mark: "cells", x, y, width, height, colours });
  }
  stroke(path) {
    for (const points of path.lines) this.marks.push({ mark: "curve", points, colour: this.strokeStyle, width: this.lineWidth, opacity: this.globalAlpha });
  }
  putImageData(image) { this.canvas.image = image; }
}

class Canvas {
  constructor(width = 0, height = 0) { Object.assign(this, { width, height, style: {} }); }
  getContext() { return (this.context ??= new Recorder(this)); }
}

Object.assign(globalThis, {
  window: { devicePixelRatio: 1 },
  OffscreenCanvas: Canvas,
  ImageData: class { constructor(width, height) { this.data = new Uint8ClampedArray(4 * width * height); } },
  Path2D: class {
    lines = [];
    moveTo(x, y) { this.from = [x, y]; }
    bezierCurveTo(a, b, c, d, x, y) { this.lines.push([this.from, [a, b], [c, d], [x, y]]); }
  },
});

const { block, chosen, shades, units } = await import("../../mha_viz/ui/components/explorer/geometry.js");
const { palette } = await import("../../mha_viz/ui/components/explorer/ink.js");
const { drawHeatmap } = await import("../../mha_viz/ui/components/explorer/heatmap.js");
const { drawLinks } = await import("../../mha_viz/ui/components/explorer/links.js");
const golden = JSON.parse(readFileSync(new URL("../golden/figures.json", import.meta.url)));

const reading = { ...golden.reading, matrices: new Map(golden.reading.matrices.map((m, i) => [i, Float32Array.from(m)])) };
const { theme } = golden;
const look = {
  width: golden.width, height: 100_000, colours: palette(theme.ramp), ink: theme.ink, muted: theme.muted, accent: theme.accent, paper: theme.paper,
  textFont: (size, weight = 400) => `${weight} ${size}px sans`, numberFont: (size) => `600 ${size}px mono`,
};

function scene({ pin, ...view }) {
  const axes = units(reading, view);
  const heads = golden.open.map((head) => {
    const part = block(reading, head, view, axes);
    return { head, colour: theme.heads[head], part, mask: chosen(part, view.links), shade: shades(part, view.scale) };
  });
  const [, query, key] = /^(?:q(\d+))?(?:k(\d+))?$/.exec(pin);
  const find = (list, token) => (token === undefined ? null : list.findIndex((u) => u.tokens.includes(+token)));
  const focus = pin ? { row: find(axes.rows, query), col: find(axes.cols, key) } : null;
  return { ...axes, heads, focus };
}

// One list in one order: what lies on top of what is not compared, where it lies is.
const sorted = (marks) => marks.map((m) => JSON.stringify(rounded(m), Object.keys(rounded(m)).sort())).sort();
function rounded(value) {
  if (Array.isArray(value)) return value.map(rounded);
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, rounded(v)]));
  return typeof value === "number" ? Math.round(value * 1e5) / 1e5 + 0 : value;
}

for (const [name, expected] of Object.entries(golden.cases)) {
  test(`heatmap, ${name}`, () => {
    const { heads, ...axes } = scene(expected.view);
    const canvas = new Canvas();
    drawHeatmap(canvas, { ...axes, head: heads[0] }, look);
    assert.deepEqual(sorted(canvas.getContext().marks), sorted(expected.heatmap));
  });
  test(`links, ${name}`, () => {
    const canvas = new Canvas();
    drawLinks(canvas, scene(expected.view), look, 0);
    assert.deepEqual(sorted(canvas.getContext().marks), sorted(expected.links));
  });
}
