// "Find a head that …", from anywhere on the page: "/" focuses the field.
import { make } from "../dom.js";
import { mounted } from "../mount.js";
import { post } from "../post.js";
import { isShortcut } from "../shortcuts.js";
import { answersOf, counted } from "./answers.js";
/** @import { Parts } from "../dom.js" */
/** @import { StreamlitComponent } from "../mount.js" */
/** @import { Send } from "../post.js" */
/** @import { SearchData } from "./answers.js" */

/**
 * @typedef {{ root: HTMLElement, send: Send, data: SearchData | null, timer: ReturnType<typeof setTimeout> | undefined,
 *   part: Parts }} SearchApp
 */

/** @typedef {{ show: (data: SearchData) => void, stop: () => void }} SearchOnPage */

const ASK_AFTER = 250; // milliseconds without typing before the server is asked

/** @type {(root: HTMLElement, send: Send) => SearchOnPage} */
export function search(root, send) {
  const app = /** @type {SearchApp} */ ({ root, send, data: null, timer: undefined, part: {} });
  page(app);
  /** @type {(event: KeyboardEvent) => void} */
  const onKey = (event) => onAnyKey(app, event);
  /** @type {(event: PointerEvent) => void} */
  const onPress = (event) => {
    if (!event.composedPath().includes(root)) close(app);
  };
  document.addEventListener("keydown", onKey);
  document.addEventListener("pointerdown", onPress);
  return {
    show: (data) => drawSearch(app, data),
    stop: () => {
      clearTimeout(app.timer);
      document.removeEventListener("keydown", onKey);
      document.removeEventListener("pointerdown", onPress);
    },
  };
}

/** @type {(app: SearchApp) => void} */
function page(app) {
  const { part: p } = app;
  const name = "Find a head that …";
  p.field = make("input", {
    type: "search",
    placeholder: name,
    "aria-label": name,
    maxLength: 80,
    autocomplete: "off",
  });
  p.field.oninput = () => typed(app);
  p.field.onkeydown = (/** @type {KeyboardEvent} */ event) => onFieldKey(app, event);
  p.field.onfocus = () => app.data?.typed === wanted(app) && open(app);
  p.answers = make("div", { class: "answers", role: "region", "aria-label": "Heads that answer", hidden: true });
  p.answers.onkeydown = (/** @type {KeyboardEvent} */ event) => onAnswerKey(app, event);
  p.status = make("p", { class: "status", role: "status" });
  const box = make("div", { class: "box" }, p.field, make("kbd", { "aria-hidden": "true" }, "/"));
  app.root.replaceChildren(make("div", { class: "search", role: "search" }, box, p.answers, p.status));
}

/** @type {(app: SearchApp) => string} */
const wanted = ({ part }) => part.field.value.trim().replace(/\s+/g, " ");
/** @type {(app: SearchApp) => HTMLElement[]} */
const links = ({ part }) => [...part.answers.querySelectorAll("a")];

// ---- The server's answer ------------------------------------------------------------------------------------------

/** @type {(app: SearchApp, data: SearchData) => void} */
function drawSearch(app, data) {
  if (!data.typed) return; // the page was drawn for another reason
  app.data = data;
  const { part } = app;
  part.answers.replaceChildren(...answersOf(data, (index) => choose(app, index)));
  if (data.typed !== wanted(app)) return;
  part.field.removeAttribute("aria-busy");
  part.status.textContent = counted(data);
  open(app);
}

/** @type {(app: SearchApp) => void} */
function open({ part }) {
  part.answers.hidden = false;
}

/** @type {(app: SearchApp) => void} */
function close({ part }) {
  part.answers.hidden = true;
  part.status.textContent = "";
}

// ---- User actions ---------------------------------------------------------------------------------------------

/** @type {(app: SearchApp) => void} */
function typed(app) {
  clearTimeout(app.timer);
  if (!wanted(app)) close(app);
  else app.timer = setTimeout(() => query(app), ASK_AFTER);
}

/** @type {(app: SearchApp) => void} */
function query(app) {
  clearTimeout(app.timer);
  if (!wanted(app)) return;
  app.part.field.setAttribute("aria-busy", "true");
  app.send("query", wanted(app));
}

/** @type {(app: SearchApp, index: number) => void} */
function choose(app, index) {
  app.part.field.value = "";
  if (app.part.answers.querySelector(":focus-visible")) app.part.field.focus(); // the focused element is now hidden
  close(app);
  post(app.send, "open", { typed: app.data?.typed, index });
}

/** @type {(app: SearchApp, event: KeyboardEvent) => void} */
function onFieldKey(app, event) {
  const { part, data } = app;
  const isAnswered = !part.answers.hidden && data?.typed === wanted(app);
  if (event.key === "Enter" && isAnswered && links(app).length) choose(app, 0);
  else if (event.key === "Enter") query(app);
  else if (event.key === "ArrowDown" && isAnswered) links(app)[0]?.focus();
  else if (event.key === "Escape" && !part.answers.hidden) close(app);
  else if (event.key === "Escape" && part.field.value) part.field.value = "";
  else if (event.key === "Escape") part.field.blur();
  else return;
  event.preventDefault();
  event.stopPropagation(); // handles one key press once: the held word stays
}

/** @type {(app: SearchApp, event: KeyboardEvent) => void} */
function onAnswerKey(app, event) {
  const all = links(app);
  const at = all.indexOf(/** @type {HTMLElement} */ (event.target));
  if (event.key === "ArrowDown") all[Math.min(at + 1, all.length - 1)]?.focus();
  else if (event.key === "ArrowUp" && at > 0) all[at - 1].focus();
  else if (event.key === "ArrowUp") app.part.field.focus();
  else if (event.key === "Escape") {
    app.part.field.focus();
    close(app);
  } else return;
  event.preventDefault();
  event.stopPropagation();
}

/** @type {(app: SearchApp, event: KeyboardEvent) => void} */
function onAnyKey({ part }, event) {
  if (!isShortcut(event, "/")) return;
  event.preventDefault();
  part.field.focus();
  part.field.select();
}

/** @param {StreamlitComponent} component */
export default function (component) {
  return mounted(component, ".mha-search", search);
}
