// Composition arrows between the centres of squares; arrows to queries bend the other way.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { drawPath } from "../../mha_viz/browser/explorer/overview.js";

const reading = { layers: 3, heads: 4 };
const layout = { left: 10, top: 20, step: 30, size: 24, down: 34 };

before(() => {
  globalThis.document = {
    createElementNS: (_, tag) => {
      const element = { tag, attributes: {}, children: [], append: (...more) => element.children.push(...more) };
      element.setAttribute = (name, value) => (element.attributes[name] = value);
      return element;
    },
  };
});

const drawCurve = (side, share) => {
  const [group] = drawPath({ from: 1, to: 9, side, share }, reading, layout);
  return group.children[1].attributes;
};

test("an arrow starts at the centre of its first head; its share sets its width", () => {
  const { d, "stroke-width": width } = drawCurve("key", 0.5);
  assert.match(d, /^M52\.0 32\.0Q/);
  assert.equal(width, "5.5");
  assert.ok(+drawCurve("key", 0.1)["stroke-width"] < +width);
});

test("arrows to queries and to keys bend to opposite sides", () => {
  const bendX = (side) => +/Q([\d.-]+)/.exec(drawCurve(side, 0.2).d)[1];
  assert.ok(Math.sign(bendX("key") - 52) === -Math.sign(bendX("query") - 52));
});
