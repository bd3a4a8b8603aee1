// Locate the axes and bands of a Plotly chart.

/** @typedef {{ x: number, y: number, width: number, height: number }} Area */

/** @type {(layout: any, name: string) => any} */
export const getAxis = (layout, name) => layout[`${name[0]}axis${name.slice(1)}`];

// Return the area of an axis: the rectangle of its subplot that receives pointer events.
/** @type {(chart: any, name: string) => Area | null} */
export function getArea(chart, name) {
  const otherAxis = getAxis(chart.layout, name).anchor ?? (name[0] === "x" ? "y" : "x");
  const subplot = [name, otherAxis].sort().join("");
  const rectangle = chart.querySelector(`.nsewdrag[data-subplot="${subplot}"]`);
  const [x, y, width, height] = ["x", "y", "width", "height"].map((attribute) =>
    Number(rectangle?.getAttribute(attribute)),
  );
  return rectangle && { x, y, width, height };
}

// Return the band at a position along an axis with this range. It is as long as the other axis.
/** @type {(area: Area, name: string, range: [number, number], position: number) => Record<string, number>} */
export function computeBand({ x, y, width, height }, name, [from, to], position) {
  const [start, end] = [position - 0.5, position + 0.5]
    .map((edge) => (edge - from) / (to - from))
    .sort((a, b) => a - b);
  if (name[0] === "x") return { left: x + start * width, top: y, width: (end - start) * width, height };
  return { left: x, top: y + (1 - end) * height, width, height: (end - start) * height };
}
