// Mounting components on Streamlit's pages.
import assert from "node:assert/strict";
import test, { mock } from "node:test";
import { mountComponent } from "../../mha_viz/browser/mount.js";

function makeComponent(data = 1) {
  const root = { isConnected: true, replaceChildren: (element) => (root.content = element) };
  return { root, data, setTriggerValue: () => {}, parentElement: { querySelector: () => root } };
}

test("a drawing is created once, updated with its data, and created again after it has left the page", () => {
  const calls = [];
  const create = () => {
    calls.push("created");
    return { show: (data) => calls.push(data), stop: () => calls.push("stopped") };
  };
  const first = makeComponent();
  const end = mountComponent(first, ".x", create);
  mountComponent({ ...first, data: 2 }, ".x", create);
  first.root.isConnected = false;
  end();
  mountComponent({ ...first, data: 3 }, ".x", create);
  assert.deepEqual(calls, ["created", 1, 2, "stopped", "created", 3]);
});

test("the end of a call that was replaced does not stop a drawing on the page", () => {
  const calls = [];
  const first = makeComponent();
  const create = () => ({ show: (data) => calls.push(data), stop: () => calls.push("stopped") });
  const endFirst = mountComponent(first, ".x", create);
  endFirst();
  const end = mountComponent({ ...first, data: 2 }, ".x", create);
  endFirst();
  assert.deepEqual(calls, [1, 2]);
  first.root.isConnected = false;
  end();
  assert.deepEqual(calls, [1, 2, "stopped"]);
});

test("messages use the function of the latest call; each element has its own drawing", () => {
  const sent = [];
  const sends = [];
  const create = (root, send) => {
    sends.push(send);
    return { show: () => {} };
  };
  const [first, other] = [makeComponent(), makeComponent()];
  mountComponent({ ...first, setTriggerValue: (...message) => sent.push(["first", ...message]) }, ".x", create);
  mountComponent({ ...first, setTriggerValue: (...message) => sent.push(["second", ...message]) }, ".x", create);
  mountComponent(other, ".x", create);
  sends[0]("view", 1);
  assert.deepEqual([sends.length, sent], [2, [["second", "view", 1]]]);
});

test("a failing drawing is stopped, shows a message, and is created again with the next data", () => {
  const calls = [];
  const create = () => ({
    show: (data) => {
      if (data === 1) throw new Error("broken data");
      calls.push(data);
    },
    stop: () => calls.push("stopped"),
  });
  globalThis.document = {
    createElement: () => ({ setAttribute: () => {}, append: (text) => (document.text = text) }),
  };
  const logged = mock.method(console, "error", () => {});
  const first = makeComponent();
  mountComponent(first, ".x", create, "It failed.");
  assert.deepEqual([document.text, calls], ["It failed.", ["stopped"]]);
  assert.equal(logged.mock.calls[0].arguments[0].message, "broken data");
  mountComponent({ ...first, data: 2 }, ".x", create, "It failed.");
  assert.deepEqual(calls, ["stopped", 2]);
  logged.mock.restore();
  assert.throws(() => mountComponent(makeComponent(), ".x", create), /broken data/);
});
