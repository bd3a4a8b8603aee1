// Follow links in tables and maps of heads, and to chapters, without reloading the page; arrow keys move between
// squares.
import { getArrowStep, clamp } from "../stage.js";
import { bringIntoView, callOnAction } from "./arrival.js";

const CHAPTER_LINK = "a[href^='?chapter=']";
const LINKS = `.mha-rows a, .mha-map a, ${CHAPTER_LINK}`;
/** @type {() => null} */
const returnNull = () => null;
const SQUARE = ".mha-map td a";
const HEAD_TABLE = "[data-testid=stDataFrame]"; // Streamlit's table; a click on a row opens a head on the server
const CARD_TITLE = ".st-key-head_card :is(h2, h3)";
const STEP_BUTTON = "[class*='st-key-to_'] button"; // below a question of Why heads differ, far below the step
const STEP_TITLE = ".st-key-lab_question h2";
const KIND_LINK = ".mha-map p a";

export class HeadLinks {
  /** @type {() => HTMLElement | null} */
  #findTarget = returnNull; // until the user does something else
  #stopListening = () => {};

  // `openTarget` opens the card of a head or a chapter, or shows kinds of roles. Return a function that stops watching.
  /** @type {(openTarget: (parameters: Record<string, string>) => void) => () => void} */
  watch(openTarget) {
    /** @type {(event: MouseEvent) => void} */
    const onClick = (event) => {
      const link = findLink(event);
      if (!link) onAction(event);
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      const name = link.matches(KIND_LINK) ? "kinds" : link.matches(CHAPTER_LINK) ? "chapter" : "head";
      const value = new URLSearchParams(link.search).get(name) ?? "";
      this.#expect(FINDERS[name](value, link.hash.slice(1)));
      openTarget({ [name]: value });
    };
    /** @type {(event: Event) => void} */
    const onAction = ({ target }) => {
      if (!(target instanceof Element)) return;
      if (target.closest(HEAD_TABLE)) this.#expect(makeFinder(CARD_TITLE));
      if (target.closest(STEP_BUTTON)) this.#expect(makeFinder(STEP_TITLE));
    };
    document.addEventListener("click", onClick);
    document.addEventListener("keydown", moveFocus);
    document.addEventListener("keydown", onAction, true); // before the table stops the event
    return () => {
      document.removeEventListener("click", onClick);
      document.removeEventListener("keydown", moveFocus);
      document.removeEventListener("keydown", onAction, true);
    };
  }

  /** @type {(find: () => HTMLElement | null) => void} */
  #expect(find) {
    this.#findTarget = find;
    this.#stopListening();
    this.#stopListening = callOnAction(() => (this.#findTarget = returnNull));
  }

  // After a change of the page, scroll to the requested element if it has appeared, and focus it.
  focusTarget() {
    const target = this.#findTarget();
    if (!target) return;
    this.#findTarget = returnNull;
    bringIntoView(target);
  }
}

/** @type {(event: Event) => HTMLAnchorElement | null} */
function findLink({ target }) {
  const link = target instanceof Element ? target.closest(LINKS) : null;
  return link instanceof HTMLAnchorElement ? link : null;
}

// Move the focus from a square, or a kind of roles, to the next one with an arrow key, and make that the tab stop.
/** @type {(event: KeyboardEvent) => void} */
function moveFocus(event) {
  const link = findLink(event);
  const step = getArrowStep(event);
  if (!link?.matches(`${SQUARE}, ${KIND_LINK}`) || !step) return;
  event.preventDefault();
  const list = link.closest("tbody")?.rows ?? [/** @type {HTMLElement} */ (link.parentElement)];
  const rows = [...list].map((row) => [...row.querySelectorAll("a")]);
  const rowIndex = rows.findIndex((row) => row.includes(link));
  const row = rows[clamp(rowIndex + step[0], rows.length)];
  const target = row[clamp(rows[rowIndex].indexOf(link) + step[1], row.length)];
  link.tabIndex = -1;
  target.tabIndex = 0;
  target.focus();
}

/** @type {(selector: string) => HTMLElement | null} */
const findElement = (selector) => document.querySelector(selector);

// Return a function that finds the title once it shows another head's card or another step.
/** @type {(selector: string) => () => HTMLElement | null} */
function makeFinder(selector) {
  const previousText = findElement(selector)?.textContent;
  return () => {
    const title = findElement(selector);
    return title && title.textContent !== previousText ? title : null;
  };
}

/** @type {Record<string, (value: string, anchor: string) => () => HTMLElement | null>} */
const FINDERS = {
  kinds: () => returnNull,
  head: (head) => () => {
    const title = findElement(CARD_TITLE);
    return title?.textContent.startsWith(`${head} `) ? title : null;
  },
  chapter: (chapter, anchor) => {
    const selector = chapter ? `.st-key-chapter_${chapter.replaceAll("/", "_")}` : ".stMain:has(.st-key-about_text)";
    return () => document.querySelector(`${selector} ${anchor ? `[id="${CSS.escape(anchor)}"]` : "h2"}`);
  },
};
