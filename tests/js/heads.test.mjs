import assert from "node:assert/strict";
import test from "node:test";
import { Heads } from "../../mha_viz/browser/explorer/heads.js";

const reading = (model) => ({ model, layers: 6, heads: 12, quantity: "weight", made: [], metrics: [] });

test("a head that was switched off is said to be so, and to be on again, but not of another model", () => {
  const said = [];
  const data = { reading: reading("minilm"), mode: null };
  const heads = new Heads(data, { send: () => {} }, (words) => said.push(words));
  const comes = (model, off) => {
    Object.assign(data, { reading: reading(model), mode: off.length ? { off, moved: [] } : null });
    heads.announceSwitch();
    return said.splice(0);
  };
  heads.toggleOff(37);
  assert.deepEqual(said.splice(0), ["L3H1 is being switched off."]);
  assert.deepEqual(comes("minilm", []), [], "not yet");
  assert.deepEqual(comes("minilm", [37]), ["L3H1 is off."]);
  assert.deepEqual(comes("toy", []), []);
  assert.deepEqual(comes("minilm", [37]), []);
  assert.deepEqual(comes("minilm", []), ["L3H1 is on."], "Back");
});
