// A component on one of Streamlit's pages, which calls it on the same page elements at every change of its data.
import { make } from "./dom.js";
/** @import { Send } from "./post.js" */

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
