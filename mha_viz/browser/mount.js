// A component on one of Streamlit's pages, which calls it on the same page elements at every change of its data, and
// how it reaches the server.
import { make } from "./dom.js";

/**
 * What Streamlit gives to a component.
 *
 * @typedef {{ data: any, parentElement: HTMLElement, setTriggerValue: Send }} StreamlitComponent
 */

/** @type {WeakMap<Element, { drawing: any, send: Send }>} */
const mounts = new WeakMap(); // what is drawn in an element, and how it reaches the server

/**
 * Make the drawing of a component at its first call, and show it the data at each call. Returns what ends it once its
 * elements have left the page: where new data overtake a call, Streamlit ends that call while the drawing goes on.
 *
 * @template {{ show: (data: any) => void, stop?: () => void }} OnPage
 * @param {StreamlitComponent} component
 * @param {string} selector
 * @param {(root: HTMLElement, send: Send) => OnPage} create
 * @param {string} failure What stands in place of a drawing that fails; without it, the error goes on.
 */
export function mounted({ data, parentElement, setTriggerValue }, selector, create, failure = "") {
  const root = /** @type {HTMLElement} */ (parentElement.querySelector(selector));
  const mount = mounts.get(root) ?? { drawing: null, send: setTriggerValue };
  mounts.set(root, mount);
  mount.send = setTriggerValue;
  const end = () => {
    mount.drawing?.stop?.();
    mount.drawing = null;
  };
  try {
    mount.drawing ??= create(root, (name, value) => mount.send(name, value));
    mount.drawing.show(data);
  } catch (error) {
    if (!failure) throw error;
    console.error(error);
    end();
    root.replaceChildren(make("p", { role: "alert" }, failure));
  }
  return () => {
    if (!root.isConnected) end();
  };
}

// ---- Messages to the server ---------------------------------------------------------------------------------

// User actions are sent one message at a time: Streamlit sends the address bar with each, in its state at that time, so
// a message sent before the answer to the last one would undo that one's changes.

/**
 * Says something to the server.
 *
 * @typedef {(name: string, value: any) => void} Send
 */

/**
 * Messages to the server that wait, by name, and the name of the one that waits for its answer, "" for none. The
 * components of a page share one queue.
 *
 * @typedef {{ waiting: Map<string, [Send, any, string]>, sent: string, turn: number }} Queue
 */

const ANSWER_WAIT = 1500; // milliseconds; some messages change nothing in the address

const page = /** @type {{ mhaVizQueue?: Queue }} */ (globalThis);

/** @type {() => Queue} */
const queue = () => (page.mhaVizQueue ??= { waiting: new Map(), sent: "", turn: 0 });

// Whether a message of this name waits to be sent, or for its answer.
/** @type {(name: string) => boolean} */
export const isUnanswered = (name) => queue().waiting.has(name) || queue().sent === name;

// Of messages with the same name, only the latest is sent; of heads to compare, each.
/** @type {(send: Send, name: string, value: any) => void} */
export function post(send, name, value) {
  const { waiting } = queue();
  if (name === "read" || name === "example") waiting.delete("view"); // it was set on the previous text
  const key = name === "compare" ? `${name} ${value.head}` : name;
  waiting.delete(key);
  waiting.set(key, [send, value, name]);
  if (!queue().sent) next();
}

// `send` through the queue.
/** @type {(send: Send) => Send} */
export const queued = (send) => (name, value) => post(send, name, value);

/** @type {() => void} */
function next() {
  const state = queue();
  const [first] = state.waiting;
  state.sent = first?.[0] ?? "";
  if (!first) return;
  const [key, [send, value, name]] = first;
  state.waiting.delete(key);
  const [before, end] = [window.location.search, performance.now() + ANSWER_WAIT];
  // `turn` makes every message new, so that one that was lost with a server can be sent again.
  send(name, value && typeof value === "object" ? { ...value, turn: ++state.turn } : value);
  const wait = () => {
    if (window.location.search !== before || performance.now() > end) next();
    else setTimeout(wait, 25);
  };
  setTimeout(wait, 25);
}
