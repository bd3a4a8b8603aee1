// Play a training run step by step, with Play, Pause and a slider over recorded steps. All animation runs in the
// browser.
import { make, prefersReducedMotion, makeSvg } from "../dom.js";
import { makePalette } from "../ink.js";
import { mountComponent, queueMessages } from "../mount.js";
import { makeFlow } from "./flow.js";
import { decodeBytes, computeMoment, computeDurations, chooseStart } from "./frames.js";
import { DASH_PATTERN, findHost, setSubscripts, makeMaps, measureScroll, makeStripLegend } from "./maps.js";
import { makeMatrices } from "./matrices.js";
/** @import { Parts } from "../dom.js" */
/** @import { Send, StreamlitComponent } from "../mount.js" */

/** @typedef {{ name: string, colour: string }} PlayerHead */

/**
 * A relation: for every word, the position of the word to attend to, or -1 if there is none. `notes`: a remark for each
 * step.
 *
 * @typedef {{ name: string, places: number[], colour: string, notes: string[] }} PlayerMark
 */

/**
 * A measurement at each step, from 0 to 1; faint lines belong to other runs.
 *
 * @typedef {{ values: number[], colour: string, faint: boolean, dashed: boolean }} PlayerLine
 */

/**
 * A row of maps of one of several training runs, with a remark for each step; its curve can be dashed.
 *
 * @typedef {{ title: string, notes: string[], dashed: boolean }} PlayerRow
 */

/** @typedef {{ title: string, lines: PlayerLine[] }} PlayerCurves */

/**
 * Comparison of every two heads: values[step][head * heads + head], and the meaning of some values.
 *
 * @typedef {object} PlayerMatrix
 * @property {string} title
 * @property {number[][]} values
 * @property {number} low
 * @property {number} high
 * @property {"share" | "signed"} colours
 * @property {[number, string][]} legend
 */

/**
 * The gradient at each head, [step][head]: its norm, and its cosine with the gradient at the first head.
 *
 * @typedef {{ norms: number[][], cosines: number[][] }} Flow
 */

/**
 * The first `size` numbers of a matrix of every head at every step, as shades from 1 to 255; 128 is 0.
 *
 * @typedef {{ name: string, size: number, largest: number, cells: string }} PlayerStrip
 */

/**
 * The recorded steps of a training run (figures/layout/player_data.py). `off`: the heads that are removed at each step;
 * `verdict`: its result, shown at the end; `next`: the title of the following scene, or "". `play`: the number of
 * answers so far; playing starts when it changes. `beside`: it is one of several runs, whose maps have no room for
 * words. `follows`: it moves with the first of them, which has the button. `asked`: the sentence that explains the
 * task, before the names of the marks; `note`: the text after them. `large`: the heads with large maps, beside small
 * ones of the others; empty if all are large.
 *
 * @typedef {object} PlayerData
 * @property {string} key
 * @property {number[]} steps
 * @property {string[]} labels
 * @property {PlayerCurves | null} curves
 * @property {boolean[][] | null} off
 * @property {string} [verdict]
 * @property {string} [next]
 * @property {number} [play]
 * @property {boolean} [beside]
 * @property {boolean} [follows]
 * @property {number} at the index of the step in the address
 * @property {string[]} words
 * @property {string} asked
 * @property {string} note
 * @property {PlayerHead[]} heads
 * @property {PlayerRow[]} rows
 * @property {number[]} large
 * @property {string} maps the weights of all heads at all steps, as bytes in base64
 * @property {PlayerStrip | null} strip
 * @property {PlayerMark[]} marks
 * @property {{ flow: string, matrices: string }} titles
 * @property {PlayerMatrix[]} matrices
 * @property {Flow | null} flow
 * @property {string[]} ramp
 * @property {string[]} signed
 */

/** @typedef {Record<"ramp" | "share" | "signed", Uint32Array>} Palettes */

const MOVE_EVENT = "mha-player-moved"; // one of several runs side by side has moved to another moment
const SIGNS = "○□◇"; // for the first, second and third relation, as in lab/jobs.py
const REDUCED_MOTION_FACTOR = 1.6; // slows down playback in steps, without interpolation

/**
 * A move to another moment of a training run: the drawing that moved, its steps, and the moment.
 *
 * @typedef {{ player: Player, steps: string, moment: number }} Move
 */

class Player {
  #data = /** @type {PlayerData | null} */ (null);
  #moment = 0; // in recorded steps
  #animation = /** @type {number | null} */ (null);
  #unansweredSteps = /** @type {Set<number>} */ (new Set()); // steps sent to the server
  #hasEnded = false;
  #parts = /** @type {Parts} */ ({});
  #root;
  #send;

  /** @param {HTMLElement} root @param {Send} send */
  constructor(root, send) {
    this.#root = root;
    this.#send = send;
    window.addEventListener("popstate", this.#onHistory);
    window.addEventListener(MOVE_EVENT, this.#onMoved);
  }

  stop() {
    this.#pause();
    window.removeEventListener("popstate", this.#onHistory);
    window.removeEventListener(MOVE_EVENT, this.#onMoved);
  }

  // Handle Back before the server has answered a step: the answer may never come, so the previous answer remains valid.
  #onHistory = () => {
    if (!this.#unansweredSteps.size || !this.#data) return;
    this.#unansweredSteps.clear();
    this.#moveTo(this.#data.at);
  };

  #onMoved = (/** @type {Event} */ event) => {
    const { player, steps, moment } = /** @type {CustomEvent<Move>} */ (event).detail;
    if (player !== this && steps === this.#data?.steps.join()) this.#moveTo(moment);
  };

  /** @type {(data: PlayerData) => void} */
  show(data) {
    const previous = this.#data;
    this.#data = data;
    if (previous?.key !== data.key) {
      this.#pause();
      this.#unansweredSteps.clear();
      this.#hasEnded &&= previous?.maps === data.maps; // same training run
      this.#moment = data.at;
      this.#build(data, !previous);
    } else if (data.at !== previous.at && !this.#unansweredSteps.delete(data.at) && !this.#animation) {
      this.#moment = data.at; // set by Back or by a link
      this.#hasEnded = false;
    }
    this.#parts.verdictRoom.textContent = data.verdict ?? ""; // so that nothing moves when it appears
    this.#parts.next.hidden = !data.next;
    this.#parts.title.replaceChildren(": ", ...setSubscripts(data.next ?? ""));
    // Play when an answer arrives after the first drawing, but not when the drawing is recreated.
    if (previous && data.play !== previous.play && !this.#animation) this.#play(data);
    else this.#draw();
  }

  /** @type {(data: PlayerData, isFirst: boolean) => void} */
  #build(data, isFirst) {
    const verdict = make("p", { class: "verdict", "aria-live": "polite" });
    const verdictRoom = make("p", { class: "verdict-room", "aria-hidden": "true" });
    const readout = make("p", { class: "pointed", "aria-hidden": "true" });
    /** @type {(text: string) => string} */
    const say = (text) => (readout.textContent = text);
    const maps = makeMaps(data, say);
    const flow = data.flow ? makeFlow(data, data.flow) : null;
    const matrices = data.matrices.length ? makeMatrices(data, say) : null;
    const colours = {
      ramp: makePalette(data.ramp),
      share: makePalette(data.ramp.toReversed()),
      signed: makePalette(data.signed),
    };
    const notes = data.marks.map(() => make("output"));
    const bar = this.#makeBar(data);
    const title = make("span");
    const onclick = () => this.#send("next", true);
    const nextButton = make("button", { type: "button", class: "next", onclick }, "Next", title, " →");
    const words = make(
      "div",
      { class: "said" },
      make("div", { class: "words" }, verdictRoom, verdict, readout),
      nextButton,
    );
    const legend = make("div", { class: "legend" }, data.asked, ...makeLegend(data.marks, notes), data.note);
    if (data.strip) legend.append(makeStripLegend(data.strip, colours.signed));
    if (isFirst) hideUntilSettled(bar.root);
    bar.root.append(words);
    this.#root.replaceChildren(
      make("div", { class: "top" }, maps.sentence, legend),
      maps.root,
      data.steps.length > 1 ? bar.root : words,
      ...(flow ? [make("h3", {}, data.titles.flow), makeWideBox(flow.root, data.titles.flow)] : []),
      ...(matrices ? [make("h3", {}, data.titles.matrices), matrices.root] : []),
    );
    this.#parts = {
      ...bar,
      verdict,
      verdictRoom,
      next: nextButton,
      title,
      notes,
      maps,
      flow,
      matrices,
      colours,
      drawnStep: -1,
      resultText: "",
    };
  }

  // Build the bar: Play, the curve that serves as slider, and the step in view.
  /** @type {(data: PlayerData) => Parts} */
  #makeBar(data) {
    const onclick = () => this.#toggle();
    const button = make("button", { type: "button", class: "play", hidden: Boolean(data.follows), onclick });
    const slider = make("input", { type: "range", min: "0", max: String(data.steps.length - 1), step: "1" });
    slider.setAttribute("aria-label", "Training step");
    slider.oninput = () => {
      this.#pause();
      this.#moment = Number(slider.value);
      this.#move();
    };
    slider.onchange = () => this.#report();
    const step = make("output", { class: "step" });
    const scrubber = data.curves ? makeScrubber(slider, data.curves) : null;
    const stepBox = make("div", { class: "at" }, step, ...(data.curves ? [make("small", {}, data.curves.title)] : []));
    const root = make(
      "div",
      { class: "bar", role: "group", "aria-label": "Training" },
      button,
      scrubber?.root ?? slider,
      stepBox,
    );
    return { root, button, slider, step, scrubber };
  }

  #toggle() {
    if (this.#animation) {
      this.#moveTo(Math.round(this.#moment));
      this.#report();
    } else if (this.#data) this.#play(this.#data);
  }

  /** @type {(data: PlayerData) => void} */
  #play({ maps, words, heads, off, steps: { length } }) {
    this.#parts.maps.reveal();
    const durations = computeDurations(decodeBytes(maps), heads.length * words.length ** 2, off);
    const [startMoment, begin, isMotionReduced] = [
      chooseStart(Math.round(this.#moment), length),
      performance.now(),
      prefersReducedMotion(),
    ];
    const frame = (/** @type {number} */ now) => {
      if (!this.#root.isConnected) return this.#pause();
      const moment = computeMoment(
        startMoment,
        (now - begin) / (isMotionReduced ? REDUCED_MOTION_FACTOR : 1),
        durations,
      );
      this.#moment = isMotionReduced ? Math.floor(moment) : moment;
      const hasEnded = moment >= length - 1;
      this.#animation = hasEnded ? null : requestAnimationFrame(frame);
      this.#move();
      if (hasEnded) this.#report();
    };
    this.#animation = requestAnimationFrame(frame);
    this.#moment = startMoment;
    this.#draw();
  }

  #pause() {
    if (this.#animation) cancelAnimationFrame(this.#animation);
    this.#animation = null;
  }

  /** @type {(moment: number) => void} */
  #moveTo(moment) {
    this.#pause();
    this.#moment = moment;
    this.#draw();
  }

  // Draw another moment here and in the runs shown alongside.
  #move() {
    this.#draw();
    const detail = { player: this, steps: this.#data?.steps.join(), moment: this.#moment };
    window.dispatchEvent(new CustomEvent(MOVE_EVENT, { detail }));
  }

  // Write the step in view to the address.
  #report() {
    const step = Math.round(this.#moment);
    if (!this.#data || step === this.#data.at) return;
    this.#unansweredSteps.add(step);
    this.#send("step", this.#data.steps[step]);
  }

  #draw() {
    const [data, moment, parts, isPlaying] = [this.#data, this.#moment, this.#parts, this.#animation];
    if (!data) return;
    const step = Math.round(moment);
    parts.button.textContent = isPlaying ? "❚❚ Pause" : "▶ Play";
    parts.slider.value = String(step);
    parts.slider.setAttribute("aria-valuetext", data.labels[step]);
    parts.scrubber?.draw(moment);
    parts.maps.draw(moment, parts.colours);
    if (moment >= data.steps.length - 1) this.#hasEnded = true;
    showResult(parts, this.#hasEnded ? (data.verdict ?? "") : "", data.marks);
    parts.next.classList.toggle("waiting", !parts.resultText);
    if (step === parts.drawnStep) return;
    parts.drawnStep = step;
    parts.step.textContent = data.labels[step];
    data.marks.forEach((mark, i) => {
      parts.notes[i].setAttribute("aria-live", isPlaying ? "off" : "polite");
      parts.notes[i].textContent = mark.notes[step] ?? "";
    });
    parts.maps.showNotes(step);
    parts.flow?.draw(step);
    parts.matrices?.draw(step, parts.colours);
  }
}

// Wrap a drawing in a box that scrolls sideways on narrow pages and is a tab stop only there.
/** @type {(drawing: Element, title: string) => HTMLElement} */
function makeWideBox(drawing, title) {
  const box = make("div", { class: "wide", role: "group", "aria-label": title }, drawing);
  new ResizeObserver(() => (box.tabIndex = box.scrollWidth > box.clientWidth ? 0 : -1)).observe(box);
  return box;
}

/** @type {(marks: PlayerMark[], notes: HTMLElement[]) => HTMLElement[]} */
function makeLegend(marks, notes) {
  return marks.map((mark, i) => {
    const sample = makeSign(mark, SIGNS[i]);
    sample.setAttribute("aria-hidden", "true");
    const isOnMaps = mark.places.some((place) => place >= 0);
    return make("span", {}, ...(isOnMaps ? [sample] : []), mark.name, notes[i]);
  });
}

// Show the result of the training run once it has been played to its end. Signs have the colours that they have on the
// maps.
/** @type {(parts: Parts, text: string, marks: PlayerMark[]) => void} */
function showResult(parts, text, marks) {
  if (parts.resultText === text) return;
  parts.resultText = text;
  const pieces = text.split(/([○□◇])/).flatMap((piece, i) => {
    const mark = i % 2 ? marks[SIGNS.indexOf(piece)] : undefined;
    return mark ? [makeSign(mark, piece)] : setSubscripts(piece);
  });
  parts.verdict.replaceChildren(...pieces);
}

/** @type {(mark: PlayerMark, sign: string) => HTMLElement} */
function makeSign(mark, sign) {
  const element = make("b", {}, sign);
  element.style.color = mark.colour;
  return element;
}

/** @param {StreamlitComponent} component */
export default function (component) {
  return mountComponent(component, ".mha-player", (root, send) => new Player(root, queueMessages(send)));
}

// ---- The slider ---------------------------------------------------------------------------------------------

// The training curve is the slider: the measurement at each recorded step, the current moment, and dots on the curve.

/** @typedef {{ root: HTMLElement, draw: (moment: number) => void }} Scrubber */

/** @type {(slider: HTMLInputElement, curves: PlayerCurves) => Scrubber} */
function makeScrubber(slider, curves) {
  const lastStep = curves.lines[0].values.length - 1;
  const playedPart = makeSvg("rect", { y: 0, height: 1, width: 0, class: "seen" });
  const lines = curves.lines.map((line) =>
    makeSvg("polyline", { points: formatPoints(line.values), ...getLineStyle(line) }),
  );
  const chart = makeSvg(
    "svg",
    { viewBox: `0 0 ${lastStep} 1`, preserveAspectRatio: "none", "aria-hidden": "true" },
    playedPart,
    ...lines,
  );
  const mainLines = curves.lines.filter((line) => !line.faint);
  const dots = mainLines.map((line) => {
    const dot = make("i", { class: "dot", "aria-hidden": "true" });
    dot.style.background = line.colour;
    return dot;
  });
  const root = make("div", { class: "scrubber" }, make("div", { class: "chart" }, chart, ...dots), slider);
  /** @type {(moment: number) => void} */
  const draw = (moment) => {
    playedPart.setAttribute("width", String(moment));
    dots.forEach((dot, i) => {
      dot.style.left = `${(100 * moment) / lastStep}%`;
      dot.style.top = `${100 * (1 - interpolate(mainLines[i].values, moment))}%`;
    });
  };
  return { root, draw };
}

// Interpolate between the values of two recorded steps.
/** @type {(values: number[], moment: number) => number} */
function interpolate(values, moment) {
  const first = Math.floor(moment);
  return values[first] + ((values[first + 1] ?? values[first]) - values[first]) * (moment - first);
}

/** @type {(values: number[]) => string} */
const formatPoints = (values) => values.map((value, i) => `${i},${1 - value}`).join(" ");

/** @type {(line: PlayerLine) => Record<string, string>} */
const getLineStyle = ({ colour, faint, dashed }) => ({
  fill: "none",
  stroke: colour,
  "vector-effect": "non-scaling-stroke",
  "stroke-width": faint ? "1" : "2.5",
  opacity: faint ? "0.45" : "1",
  "stroke-dasharray": dashed ? DASH_PATTERN : "none",
});

// ---- Elements that must not move under the pointer while the page above them loads --------------------------

const [STABLE_TIME, MAX_TIME] = [300, 8000]; // milliseconds: without movement, and in total

// Hide an element until fonts have loaded, no Streamlit placeholder precedes it, and its position is stable.
/** @type {(element: HTMLElement) => void} */
function hideUntilSettled(element) {
  element.style.visibility = "hidden";
  const begin = performance.now();
  const lastMove = { top: NaN, since: begin };
  const check = (/** @type {number} */ now) => {
    const host = findHost(element);
    const top = element.getBoundingClientRect().top + measureScroll(host);
    if (top !== lastMove.top || isLoading(host)) Object.assign(lastMove, { top, since: now });
    if (now - lastMove.since < STABLE_TIME && now - begin < MAX_TIME) requestAnimationFrame(check);
    else element.style.visibility = "";
  };
  requestAnimationFrame(check);
}

/** @type {(element: Element) => boolean} */
function isLoading(element) {
  const precedes = (/** @type {Element} */ placeholder) =>
    Boolean(placeholder.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING);
  return (
    document.fonts.status !== "loaded" || [...document.querySelectorAll("[data-testid=stSkeleton]")].some(precedes)
  );
}
