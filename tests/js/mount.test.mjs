// A component on one of Streamlit's pages.
import assert from "node:assert/strict";
import test, { mock } from "node:test";
import { mountComponent } from "../../mha_viz/browser/mount.js";

function component(data = 1) {
  const root = { isConnected: true, replaceChildren: (element) => (root.content = element) };
  return { root, data, setTriggerValue: () => {}, parentElement: { querySelector: () => root } };
}

test("a drawing is made once, shown at every change of its data, and made anew after it has left the page", () => {
  const seen = [];
  const create = () => {
    seen.push("made");
    return { show: (data) => seen.push(data), stop: () => seen.push("stopped") };
  };
  const one = component();
  const leave = mountComponent(one, ".x", create);
  mountComponent({ ...one, data: 2 }, ".x", create);
  one.root.isConnected = false;
  leave();
  mountComponent({ ...one, data: 3 }, ".x", create);
  assert.deepEqual(seen, ["made", 1, 2, "stopped", "made", 3]);
});

test("a call that ends because another has overtaken it ends no drawing that stands on the page", () => {
  const seen = [];
  const one = component();
  const create = () => ({ show: (data) => seen.push(data), stop: () => seen.push("stopped") });
  const overtaken = mountComponent(one, ".x", create);
  overtaken();
  const leave = mountComponent({ ...one, data: 2 }, ".x", create);
  overtaken();
  assert.deepEqual(seen, [1, 2]);
  one.root.isConnected = false;
  leave();
  assert.deepEqual(seen, [1, 2, "stopped"]);
});

test("a message goes where the latest call says, and two elements have two drawings", () => {
  const sent = [];
  const sends = [];
  const create = (root, send) => {
    sends.push(send);
    return { show: () => {} };
  };
  const [one, other] = [component(), component()];
  mountComponent({ ...one, setTriggerValue: (...message) => sent.push(["first", ...message]) }, ".x", create);
  mountComponent({ ...one, setTriggerValue: (...message) => sent.push(["second", ...message]) }, ".x", create);
  mountComponent(other, ".x", create);
  sends[0]("view", 1);
  assert.deepEqual([sends.length, sent], [2, [["second", "view", 1]]]);
});

test("a drawing that fails stops, says so, and is made anew with the next data", () => {
  const seen = [];
  const create = () => ({
    show: (data) => {
      if (data === 1) throw new Error("broken data");
      seen.push(data);
    },
    stop: () => seen.push("stopped"),
  });
  globalThis.document = {
    createElement: () => ({ setAttribute: () => {}, append: (text) => (document.text = text) }),
  };
  const logged = mock.method(console, "error", () => {});
  const one = component();
  mountComponent(one, ".x", create, "It failed.");
  assert.deepEqual([document.text, seen], ["It failed.", ["stopped"]]);
  assert.equal(logged.mock.calls[0].arguments[0].message, "broken data");
  mountComponent({ ...one, data: 2 }, ".x", create, "It failed.");
  assert.deepEqual(seen, ["stopped", 2]);
  logged.mock.restore();
  assert.throws(() => mountComponent(component(), ".x", create), /broken data/);
});
