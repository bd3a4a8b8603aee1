// Ask the server why the links of a head look where they do, and keep its answers for the explorer. The component draws
// nothing: it answers in a message of its own, so that the page with its drawing does not run again.
import { mounted } from "../mount.js";
import { openReasonStore, parseReasons } from "./store.js";
/** @import { Send, StreamlitComponent } from "../mount.js" */

/** @type {(root: HTMLElement, send: Send) => { show: (data: any) => void, stop: () => void }} */
function onPage(root, send) {
  const store = openReasonStore();
  const ask = (/** @type {{ key: string, head: string }} */ question) => send("ask", question);
  store.open(ask);
  return {
    show: (data) => {
      if (data.key) store.put(data.key, data.head, parseReasons(data));
    },
    stop: () => store.close(ask),
  };
}

/** @param {StreamlitComponent} component */
export default function (component) {
  return mounted(component, ".mha-reasons", onPage);
}
