// Ask the server why the links of a head look where they do, and keep its answers for the explorer. The component draws
// nothing: it answers in a message of its own, so that the page with its drawing does not run again.
import { isQueueBusy, mountComponent } from "../mount.js";
import { openReasonStore, parseReasons } from "./store.js";
/** @import { Send, StreamlitComponent } from "../mount.js" */

const WAIT = 50; // milliseconds

/** @type {(root: HTMLElement, send: Send) => { show: (data: any) => void, stop: () => void }} */
function mountOnPage(root, send) {
  const store = openReasonStore();
  let timer = /** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined);
  // Wait until the last user action has been answered: a run that answers this question could discard that answer.
  /** @type {(question: { key: string, head: string }) => void} */
  const ask = (question) => {
    clearTimeout(timer);
    if (isQueueBusy()) timer = setTimeout(() => ask(question), WAIT);
    else send("ask", question);
  };
  store.open(ask);
  return {
    show: (data) => {
      if (data.key) store.put(data.key, data.head, parseReasons(data));
    },
    stop: () => {
      clearTimeout(timer);
      store.close(ask);
    },
  };
}

/** @param {StreamlitComponent} component */
export default function (component) {
  return mountComponent(component, ".mha-reasons", mountOnPage);
}
