// The heads that answer a search, in groups; each is a link.
import { make } from "../dom.js";

/**
 * A head that answers a search (ui/search_field.py).
 *
 * @typedef {object} SearchAnswer
 * @property {string} head
 * @property {string} paper
 * @property {string} does
 * @property {string} score
 * @property {string} baseline
 * @property {string} rule
 * @property {string} standing
 * @property {string} href
 */

/**
 * @typedef {object} SearchData
 * @property {number} number How many searches there were: the same words are answered again.
 * @property {string} typed
 * @property {string} problem
 * @property {{ title: string, note: string, answers: SearchAnswer[] }[]} groups
 */

// `open` is called with the number of an answer among all.
/** @type {(data: SearchData, open: (index: number) => void) => HTMLElement[]} */
export function answersOf({ groups, problem }, open) {
  let index = 0;
  const sections = groups.map(({ title, note, answers }) => {
    const links = answers.map((answer) => make("li", {}, linkOf(answer, open, index++)));
    const remark = note ? [make("p", { class: "soft" }, note)] : [];
    return make("section", {}, make("h2", {}, title), ...remark, make("ul", {}, ...links));
  });
  return problem ? [make("p", { class: "soft" }, problem), ...sections] : sections;
}

/** @type {(answer: SearchAnswer, open: (index: number) => void, index: number) => HTMLElement} */
function linkOf(answer, open, index) {
  const { head, paper, does, score, baseline, rule, standing, href } = answer;
  /** @type {(event: MouseEvent) => void} */
  const onclick = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return; // another tab or window
    event.preventDefault();
    open(index);
  };
  const measured = score ? [make("b", {}, score), ` baseline ${baseline} (${rule})`] : [];
  const sure = /^established(, beats the rule)?$/.test(standing) ? "sure" : "";
  const trust = standing ? [make("i", { class: sure }, standing)] : [];
  return make(
    "a",
    { href, onclick },
    make("span", { class: "head" }, make("b", {}, head), ` (${paper})`),
    make("span", { class: "does" }, does),
    make("span", { class: "measured" }, ...measured, ...trust),
  );
}

// How many heads an answer has, for screen readers.
/** @type {(data: SearchData) => string} */
export function counted({ groups, problem }) {
  const count = groups.reduce((sum, { answers }) => sum + answers.length, 0);
  return problem || (count === 1 ? "1 head" : `${count} heads`);
}
