// Mount components on Streamlit's pages, and send messages to the server. Streamlit calls a component again on the same
// elements whenever its data change.
import { make } from "./dom.js";

/**
 * The arguments that Streamlit passes to a component.
 *
 * @typedef {{ data: any, parentElement: HTMLElement, setTriggerValue: Send }} StreamlitComponent
 */

/** @type {WeakMap<Element, { drawing: any, send: Send }>} */
const mounts = new WeakMap(); // the drawing in an element, and the function that sends its messages

/**
 * Create the drawing of a component at its first call, and show it the data at each call. Returns a function that ends
 * the drawing once its elements have left the page. Streamlit also calls this function when new data replace a call,
 * although the drawing continues.
 *
 * @template {{ show: (data: any) => void, stop?: () => void }} MountedDrawing
 * @param {StreamlitComponent} component
 * @param {string} selector
 * @param {(root: HTMLElement, send: Send) => MountedDrawing} create
 * @param {string} failure Message shown in place of a drawing that fails; if empty, the error is rethrown.
 */
export function mountComponent({ data, parentElement, setTriggerValue }, selector, create, failure = "") {
  const root = /** @type {HTMLElement} */ (parentElement.querySelector(selector));
  const mount = mounts.get(root) ?? { drawing: null, send: setTriggerValue };
  mounts.set(root, mount);
  mount.send = setTriggerValue;
  const stopDrawing = () => {
    mount.drawing?.stop?.();
    mount.drawing = null;
  };
  try {
    mount.drawing ??= create(root, (name, value) => mount.send(name, value));
    mount.drawing.show(data);
  } catch (error) {
    if (!failure) throw error;
    console.error(error);
    stopDrawing();
    root.replaceChildren(make("p", { role: "alert" }, failure));
  }
  return () => {
    if (!root.isConnected) stopDrawing();
  };
}

// ---- Messages to the server ---------------------------------------------------------------------------------

// User actions are sent one message at a time. Streamlit sends the current address with each, so a message sent before
// the answer to the last one would undo its changes.

/**
 * Sends a message to the server.
 *
 * @typedef {(name: string, value: any) => void} Send
 */

/**
 * Messages waiting to be sent, by name, and the name of the message waiting for its answer, or "". The components of a
 * page share one queue.
 *
 * @typedef {{ waiting: Map<string, [Send, any, string]>, sent: string, turn: number }} Queue
 */

const ANSWER_WAIT = 1500; // milliseconds; some messages change nothing in the address

const page = /** @type {{ mhaVizQueue?: Queue }} */ (globalThis);

/** @type {() => Queue} */
const getQueue = () => (page.mhaVizQueue ??= { waiting: new Map(), sent: "", turn: 0 });

// Whether a message of this name waits to be sent, or for its answer.
/** @type {(name: string) => boolean} */
export const isUnanswered = (name) => getQueue().waiting.has(name) || getQueue().sent === name;

// Whether any message waits to be sent, or for its answer.
/** @type {() => boolean} */
export const isQueueBusy = () => getQueue().waiting.size > 0 || getQueue().sent !== "";

// Queue a message. Of messages with the same name, only the latest is sent; edits of the compared heads are all sent.
/** @type {(send: Send, name: string, value: any) => void} */
export function post(send, name, value) {
  const { waiting } = getQueue();
  if (name === "read" || name === "example") waiting.delete("view"); // the view was that of the previous text
  const key = name === "compare" ? `${name} ${value.head}` : name;
  waiting.delete(key);
  waiting.set(key, [send, value, name]);
  if (!getQueue().sent) sendNext();
}

// Wrap `send` so that it uses the queue.
/** @type {(send: Send) => Send} */
export const queueMessages = (send) => (name, value) => post(send, name, value);

/** @type {() => void} */
function sendNext() {
  const queue = getQueue();
  const [first] = queue.waiting;
  queue.sent = first?.[0] ?? "";
  if (!first) return;
  const [key, [send, value, name]] = first;
  queue.waiting.delete(key);
  // `turn` makes every message unique, so that a message lost with a server can be sent again.
  waitForAnswer();
  send(name, value && typeof value === "object" ? { ...value, turn: ++queue.turn } : value);
}

// Note that a widget of Streamlit has sent a message of its own, so that the next message waits for its answer.
/** @type {() => void} */
export function noteWidgetMessage() {
  if (getQueue().sent) return;
  getQueue().sent = "widget";
  waitForAnswer();
}

// Send the next message once the address has changed, or after ANSWER_WAIT.
/** @type {() => void} */
function waitForAnswer() {
  const [previousSearch, deadline] = [window.location.search, performance.now() + ANSWER_WAIT];
  const check = () => {
    if (window.location.search !== previousSearch || performance.now() > deadline) sendNext();
    else setTimeout(check, 25);
  };
  setTimeout(check, 25);
}
