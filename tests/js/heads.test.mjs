import assert from "node:assert/strict";
import test from "node:test";
import { Heads } from "../../mha_viz/browser/explorer/heads.js";

const reading = (model) => ({ model, layers: 6, heads: 12, quantity: "weight", made: [], metrics: [] });

test("switching a head off and on again is announced, but not for another model", () => {
  const announcements = [];
  const data = { reading: reading("minilm"), ablation: null };
  const heads = new Heads(data, { send: () => {} }, (words) => announcements.push(words));
  const receive = (model, off) => {
    Object.assign(data, { reading: reading(model), ablation: off.length ? { off, moved: [] } : null });
    heads.announceSwitch();
    return announcements.splice(0);
  };
  heads.toggleOff(37);
  assert.deepEqual(announcements.splice(0), ["L3H1 is being switched off."]);
  assert.deepEqual(receive("minilm", []), [], "not yet");
  assert.deepEqual(receive("minilm", [37]), ["L3H1 is off."]);
  assert.deepEqual(receive("toy", []), []);
  assert.deepEqual(receive("minilm", [37]), []);
  assert.deepEqual(receive("minilm", []), ["L3H1 is on."], "Back");
});
