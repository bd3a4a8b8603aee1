// Draw one head as one picture: x, q, k and v, the score, the share, the moved values, W_O, and the words it writes.
// Each stage unfolds in place under the pointer or the keyboard; the one that was clicked stays open.
import { make } from "../dom.js";
import { mountComponent, queueMessages } from "../mount.js";
import { drawDetail, drawThumbnail } from "./stages.js";
/** @import { Children } from "../dom.js" */
/** @import { Send, StreamlitComponent } from "../mount.js" */
/** @import { Picture } from "./stages.js" */

/** @type {Record<string, number>} */
const STEPS = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };
const OPEN_DELAY = 90; // milliseconds before a stage opens under the pointer, so that crossing it opens nothing

/** @typedef {{ name: string, label: string, shape: string, inside: boolean }} Stage */

/** @typedef {{ stages: Stage[], stage: string, heads: string[], head: number, picture: Picture }} BlockData */

// Split "W_Q  W_K" into text and subscripts.
/** @type {(text: string) => string[]} */
export const splitSubscripts = (text) => text.split(/_(\w+)/);
/** @type {(text: string) => Children} */
const makeFormula = (text) => splitSubscripts(text).map((part, i) => (i % 2 ? make("sub", {}, part) : part));

/** @type {(root: HTMLElement, send: Send) => { show: (data: BlockData) => void }} */
export const block = (root, send) => ({ show: (data) => drawBlock(root, send, data) });

// Redraw the picture after each change; the keyboard focus stays where it was.
/** @type {(root: HTMLElement, send: Send, data: BlockData) => void} */
function drawBlock(root, send, data) {
  const listButtons = () => [...root.querySelectorAll("button")];
  const { activeElement } = /** @type {Document | ShadowRoot} */ (root.getRootNode());
  const index = listButtons().indexOf(/** @type {HTMLButtonElement} */ (activeElement));
  const openName = root.querySelector(".stage.open")?.getAttribute("data-stage");
  const stages = data.stages.map((stage) => drawStage(stage, data, send));
  const row = make("div", { class: "row", role: "toolbar", "aria-label": "Stages of a head", onkeydown: walkStages });
  row.append(...stages);
  row.style.setProperty("--own", data.heads[data.head]);
  root.replaceChildren(drawHeads(data, send), row);
  const pinned = stages.find((stage) => stage.hasAttribute("data-pinned")) ?? null;
  openUnderPointer(row, stages, pinned);
  const isPreviewed = root.matches(":hover") && !isStacked();
  openStage(stages, isPreviewed ? (stages.find((stage) => stage.dataset.stage === openName) ?? pinned) : pinned);
  getButton(pinned ?? stages[0]).tabIndex = 0;
  if (index >= 0) listButtons()[index]?.focus();
}

/** @type {(stage: Element) => HTMLButtonElement} */
const getButton = (stage) => /** @type {HTMLButtonElement} */ (stage.querySelector(".title"));

/** @type {(stage: Stage, data: BlockData, send: Send) => HTMLElement} */
function drawStage({ name, label, shape, inside }, data, send) {
  const isPinned = name === data.stage;
  const choose = () => !isPinned && send("stage", name);
  const title = make(
    "button",
    { type: "button", class: "title", tabIndex: -1, onclick: choose },
    make("b", {}, ...makeFormula(label)),
    make("span", {}, ...makeFormula(shape)),
  );
  const thumbnail = make(
    "div",
    { class: "face", "aria-hidden": true, onclick: choose },
    ...drawThumbnail(name, data.picture),
  );
  const detail = make("div", { class: "detail" }, ...drawDetail(name, data.picture, send));
  const stage = make("section", { class: `stage${inside ? " inside" : ""}` }, title, thumbnail, detail);
  stage.dataset.stage = name;
  if (isPinned) {
    stage.dataset.pinned = "";
    title.setAttribute("aria-current", "step");
  } else {
    stage.title = "Click to show its numbers below";
  }
  return stage;
}

/** @type {(stages: HTMLElement[], openedStage: HTMLElement | null) => void} */
function openStage(stages, openedStage) {
  for (const stage of stages) {
    stage.classList.toggle("open", stage === openedStage);
    getButton(stage).setAttribute("aria-expanded", String(stage === openedStage));
  }
}

// Whether the stages stand below each other, as in block.css. Opening one would move those below it from the pointer.
/** @type {() => boolean} */
const isStacked = () => matchMedia("(max-width: 640px)").matches;

// Open the stage under the pointer or the focus; the pinned one opens again once both have left.
/** @type {(row: HTMLElement, stages: HTMLElement[], pinned: HTMLElement | null) => void} */
function openUnderPointer(row, stages, pinned) {
  let timer = 0;
  /** @type {(stage: HTMLElement | null, wait: number) => void} */
  const openLater = (stage, wait) => {
    clearTimeout(timer);
    timer = window.setTimeout(() => openStage(stages, stage), wait);
  };
  for (const stage of stages) {
    stage.addEventListener(
      "pointerenter",
      (event) => event.pointerType === "mouse" && !isStacked() && openLater(stage, OPEN_DELAY),
    );
    stage.addEventListener("focusin", () => getButton(stage).matches(":focus-visible") && openLater(stage, 0));
  }
  row.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && openLater(pinned, 2 * OPEN_DELAY));
  row.addEventListener(
    "focusout",
    (event) => !row.contains(/** @type {Node} */ (event.relatedTarget)) && openLater(pinned, 0),
  );
}

// Make the stages one tab stop; an arrow key goes to the next or the previous one.
/** @type {(event: KeyboardEvent) => void} */
function walkStages(event) {
  const title = /** @type {HTMLElement} */ (event.target).closest(/** @type {"button"} */ (".title"));
  const titles = [.../** @type {Element} */ (event.currentTarget).querySelectorAll(/** @type {"button"} */ (".title"))];
  const neighbour = title && findNeighbour(event, title, titles);
  if (!neighbour) return;
  title.tabIndex = -1;
  neighbour.tabIndex = 0;
  neighbour.focus();
}

/** @type {(data: BlockData, send: Send) => HTMLElement} */
function drawHeads(data, send) {
  const buttons = data.heads.map((colour, number) => makeHeadButton(number, colour, data.head, send));
  const chips = make(
    "div",
    { class: "chips", role: "radiogroup", "aria-label": "Heads", onkeydown: walkHeads },
    ...buttons,
  );
  chips.style.setProperty("--in-a-row", String(Math.min(8, Math.ceil(buttons.length / (buttons.length > 8 ? 2 : 1)))));
  return make("div", { class: "heads" }, `${data.heads.length} heads`, chips);
}

/** @type {(number: number, colour: string, chosen: number, send: Send) => HTMLElement} */
function makeHeadButton(number, colour, chosen, send) {
  const button = make(
    "button",
    {
      type: "button",
      class: "chip",
      role: "radio",
      "aria-checked": String(number === chosen),
      "aria-label": `Head ${number}`,
      tabIndex: number === chosen ? 0 : -1,
      onclick: () => send("head", number),
    },
    String(number),
  );
  button.style.setProperty("--own", colour);
  return button;
}

// Make the heads one tab stop; an arrow key opens the next or the previous one.
/** @type {(event: KeyboardEvent) => void} */
function walkHeads(event) {
  const chip = /** @type {HTMLElement} */ (event.target).closest("button");
  const chips = /** @type {HTMLElement[]} */ ([...(chip?.parentElement?.children ?? [])]);
  const neighbour = chip && findNeighbour(event, chip, chips);
  neighbour?.focus();
  neighbour?.click();
}

// Return the element to which an arrow key leads from `current`; undefined for other keys.
/** @type {(event: KeyboardEvent, current: HTMLElement, elements: HTMLElement[]) => HTMLElement | undefined} */
function findNeighbour(event, current, elements) {
  const step = STEPS[event.key];
  if (!step || event.altKey || event.ctrlKey || event.metaKey) return undefined;
  event.preventDefault();
  event.stopPropagation();
  return elements.at((elements.indexOf(current) + step) % elements.length);
}

/** @param {StreamlitComponent} component */
export default function (component) {
  return mountComponent(component, ".mha-block", (root, send) => block(root, queueMessages(send)));
}
