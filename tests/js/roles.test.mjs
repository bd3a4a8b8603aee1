// Roles of heads on the page.
import assert from "node:assert/strict";
import test from "node:test";
import { indexByHead, countKinds, describeRoles } from "../../mha_viz/browser/explorer/roles.js";

const message = {
  kinds: { syntax: 0, coreference: 3, broad: 5 },
  roles: [
    { head: 4, role: "syntax", name: "obj", words: "…", active: true, standing: "active here" },
    { head: 4, role: "syntax", name: "det", words: "…", active: false, standing: "not triggered here" },
    { head: 4, role: "coreference", name: "coref", words: "…", active: false, standing: "not triggered here" },
    { head: 7, role: "syntax", name: "nsubj", words: "…", active: true, standing: "active here" },
  ],
};

test("roles are indexed by head, in their original order", () => {
  const { byHead } = indexByHead(message);
  assert.deepEqual([...byHead.keys()], [4, 7]);
  assert.deepEqual(
    byHead.get(4).map((role) => role.name),
    ["obj", "det", "coref"],
  );
});

test("each head counts once per kind; kinds without heads are left out", () => {
  assert.deepEqual(countKinds(indexByHead(message)), [
    ["syntax", 2],
    ["coreference", 1],
  ]);
  assert.deepEqual(countKinds(indexByHead({ kinds: message.kinds, roles: [] })), []);
});

test("the description for screen readers lists each role and whether it is active", () => {
  const list = indexByHead(message).byHead.get(4);
  assert.equal(
    describeRoles(list),
    "Known for obj, active here. Known for det, not triggered here. Known for coref, not triggered here. ",
  );
  assert.equal(describeRoles([]), "");
});
