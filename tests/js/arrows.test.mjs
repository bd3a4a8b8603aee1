// Arrows between heads: from one square's centre to another's, bent to the other side for queries.
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

const lineOf = (side, share) => {
  const [group] = drawPath({ from: 1, to: 9, side, share }, reading, layout);
  return group.children[1].attributes;
};

test("an arrow begins in the centre of its first head, and is as thick as its share", () => {
  const { d, "stroke-width": width } = lineOf("key", 0.5);
  assert.match(d, /^M52\.0 32\.0Q/);
  assert.equal(width, "5.5");
  assert.ok(+lineOf("key", 0.1)["stroke-width"] < +width);
});

test("arrows of queries and keys bend to different sides", () => {
  const across = (side) => +/Q([\d.-]+)/.exec(lineOf(side, 0.2).d)[1];
  assert.ok(Math.sign(across("key") - 52) === -Math.sign(across("query") - 52));
});
