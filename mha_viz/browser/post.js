// User actions are sent to the server one message at a time: Streamlit sends the address bar with each, in its state at
// that time, so a message sent before the answer to the last one would undo that one's changes.

/**
 * Says something to the server.
 *
 * @typedef {(name: string, value: any) => void} Send
 */

/**
 * Messages to the server that wait, by name, and the name of the one that waits for its answer, "" for none. The
 * components of a page share one queue.
 *
 * @typedef {{ waiting: Map<string, [Send, any]>, sent: string, turn: number }} Queue
 */

const ANSWER_WAIT = 1500; // milliseconds; some messages change nothing in the address

const page = /** @type {{ mhaVizQueue?: Queue }} */ (globalThis);

/** @type {() => Queue} */
const queue = () => (page.mhaVizQueue ??= { waiting: new Map(), sent: "", turn: 0 });

// Whether a message of this name waits to be sent, or for its answer.
/** @type {(name: string) => boolean} */
export const isUnanswered = (name) => queue().waiting.has(name) || queue().sent === name;

// Of messages with the same name, only the latest is sent.
/** @type {(send: Send, name: string, value: any) => void} */
export function post(send, name, value) {
  const { waiting } = queue();
  if (name === "read" || name === "example") waiting.delete("view"); // it was set on the previous text
  waiting.delete(name);
  waiting.set(name, [send, value]);
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
  const [name, [send, value]] = first;
  state.waiting.delete(name);
  const [before, end] = [window.location.search, performance.now() + ANSWER_WAIT];
  // `turn` makes every message new, so that one that was lost with a server can be sent again.
  send(name, value && typeof value === "object" ? { ...value, turn: ++state.turn } : value);
  const wait = () => {
    if (window.location.search !== before || performance.now() > end) next();
    else setTimeout(wait, 25);
  };
  setTimeout(wait, 25);
}
