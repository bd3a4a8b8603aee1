// Show one head as links, heatmap, text and table; the links can include other heads of its layer.
import { showFirstSettings, makeControls, describeChanges, makeDrawingMenu, keepFitted } from "../controls.js";
import { fadeOut, make } from "../dom.js";
import { getDefaultView, isPair } from "../geometry.js";
import { drawHeatmap, describeLabelStep } from "../heatmap.js";
import { findHeatmapSpot, findLinksSpot } from "../layouts.js";
import { drawLinks, describeFewLinks, makeLineRamp, chooseLinkScale } from "../links.js";
import { formatHead, getModelNumbers, getKeys, formatMapName, formatPaperName } from "../reading.js";
import { CHANGED, openReasonStore } from "../reasons/store.js";
import { getPoint, revealRow, isSameSpot } from "../stage.js";
import { OF_STRENGTH, getFirstValues, isOfLayers, serializeSettings } from "../view.js";
import { describeHidden, describeOff, describeFocus, describeScale, makeTables } from "../words.js";
import { HeadBar } from "./heads.js";
import { hasArcs } from "./read.js";
import { findExplainedLink, describeReasons, findStrongestTokens } from "./reasons.js";
import { UNEXPLAINED, findCells } from "./recipe.js";
import { Chips } from "./roles.js";
/** @import { Change } from "../controls.js" */
/** @import { Children } from "../dom.js" */
/** @import { Axes, ReadingView } from "../geometry.js" */
/** @import { HeatmapLayout, LinksLayout, Spot } from "../layouts.js" */
/** @import { LinkScene, ShownHead } from "../links.js" */
/** @import { Reading } from "../reading.js" */
/** @import { Walk } from "../stage.js" */
/** @import { Setting } from "../view.js" */
/** @import { Stores } from "./explorer.js" */

const BEGUN = [
  "Long text: special tokens hidden, the three strongest links per word, colours per row.",
  "Show only the strongest links",
];

const SWITCH = { on: "Switch on", off: "Switch off" }; // label of the action of a click

const MOST_FADED = 128; // tokens
const FEW = { tallest: 50, largest: 60 }; // maximum pixels of a row and of a cell of a short text

/** @type {(label: string) => HTMLCanvasElement} */
export const makeSurface = (label) => make("canvas", { tabIndex: 0, role: "application", "aria-label": label });
/** @type {(left: string, ...right: Children) => HTMLElement} */
const makeEnds = (left, ...right) =>
  make("div", { class: "ends soft" }, make("span", { title: "from" }, left), ...right);

export class HeadView {
  #title = make("h2");
  #readout = make("p", { class: "readout" });
  #reason = make("p", { class: "reason", hidden: true });
  // Whether the user has ever pointed at a drawing; until then, a word pinned by the address is not explained.
  #hasActed = false;
  #unexplained = /** @type {Spot | null} */ (null); // announced before its reasons arrived
  #begun = make("p", { class: "begun", hidden: true });
  note = make("p", { class: "note soft" });
  #links = makeSurface("Token links");
  #tall = make("div", { class: "tall" }, this.#links);
  #scroller = make("div", { class: "scroller" }, this.#tall);
  #shownRows = make("span");
  #lineRamp = make("i", { class: "ramp", "aria-hidden": true });
  #lineWords = make("span");
  #linksBox = make(
    "div",
    { class: "links" },
    makeEnds("query", this.#shownRows, make("span", { title: "to" }, "key")),
    this.#scroller,
    make("p", { class: "lines soft" }, this.#lineRamp, this.#lineWords),
  );
  #heat = makeSurface("Heatmap");
  #heatBox = make(
    "div",
    { class: "heat" },
    makeEnds("query ↓", make("span", { title: "to" }, "key →")),
    make("div", { class: "sheet" }, this.#heat),
  );
  #panels = make("div", { class: "panels", part: "drawings" }, this.#linksBox, this.#heatBox);
  #tableBox = make("div", { class: "tablebox", tabIndex: 0, role: "region", "aria-label": "Weights as a table" });
  #table = make(
    "details",
    { ontoggle: () => this.drawTable() },
    make("summary", {}, "These weights as a table"),
    this.#tableBox,
  );
  #scene = ""; // key of the current drawing, except for the hovered spot
  #layouts = /** @type {{ links: LinksLayout | null, heat: HeatmapLayout | null }} */ ({ links: null, heat: null });
  #stores;
  #off = make(
    "button",
    { type: "button", class: "quiet off", title: "Key x, or drag its square out of the grid" },
    SWITCH.off,
  );
  #fan = make("input", { type: "checkbox", onchange: () => this.#toggleFan() });
  #fanned = make(
    "label",
    { class: "known fan", title: "Draw lines from word to word next to the heatmap" },
    this.#fan,
    "Token links",
  );
  #wantsFan = /** @type {boolean | null} */ (null); // null until the user chooses
  #offNote = make("p", { class: "off-note" });
  #usual = make("summary");
  #composition = make("input", { type: "checkbox" });
  #composed = make(
    "label",
    { class: "known", title: "Composition: which earlier heads contribute to a head’s scores on this text" },
    this.#composition,
    "Arrows between heads",
  );
  menu; // of the drawing
  #controls;
  #chips;
  #bar;

  /** @param {Stores} stores */
  constructor(stores) {
    this.#stores = stores;
    const { stage, heads, isAlone } = stores;
    this.#controls = makeViewControls((fields, delay) => stage.change(fields, delay));
    this.#controls.shownBox.hidden = isAlone; // other quantities need a server
    this.#chips = new Chips("role_open", stores);
    this.#bar = new HeadBar(stores, (words) => {
      this.note.textContent = words;
    });
    const title = "Add this head to My heads (in the grid: key c or Shift-click)";
    const onclick = () => heads.compare(stage.view.head);
    const compare = make("button", { type: "button", class: "quiet", title, onclick, hidden: isAlone }, "+ Compare");
    this.#off.onclick = () => heads.turn(stage.view.head);
    this.#composition.onchange = () => stage.change({ arrows: this.#composition.checked });
    const top = make("header", {}, this.#title, compare, this.#off);
    const texts = [this.#begun, this.#offNote, this.#readout, this.#reason, this.#panels, this.note];
    this.menu = makeDrawingMenu(
      this.#usual,
      this.#controls.box,
      this.#bar.box,
      this.#table,
      this.#fanned,
      this.#composed,
    );
    this.box = make("section", { class: "one" }, top, this.#chips.box, this.menu, ...texts);
    this.#listen();
  }

  // Whether the links fan out beside the heatmap: as chosen by the user, by default if arcs under the sentence cannot
  // show them.
  get #hasFan() {
    const { stage, read } = this.#stores;
    const { view } = stage;
    const isPlain = hasArcs(this.#stores) && view.on.length < 2 && view.links === getDefaultView(read.reading).links;
    return this.#wantsFan ?? !isPlain;
  }

  #toggleFan() {
    this.#wantsFan = this.#fan.checked;
    this.#stores.stage.drawing.draw();
  }

  drawControls() {
    const { read, stage, heads } = this.#stores;
    const { reading } = read;
    this.#title.replaceChildren(...makeHeading(reading, stage.view.head));
    this.#off.hidden = this.#stores.isAlone || isOfLayers(reading);
    this.#off.textContent = heads.isOff(stage.view.head) ? SWITCH.on : SWITCH.off;
    this.#fanned.hidden = this.#stores.isAlone;
    this.#fan.checked = this.#hasFan;
    this.#offNote.textContent = describeOff(reading, stage.view.on);
    this.#chips.draw(stage.view.head);
    this.#controls.set(stage.view, isPair(reading), !!read.recipes);
    this.#composition.checked = stage.view.arrows;
    this.#composed.hidden = this.#stores.isAlone || !!read.mode || isOfLayers(reading);
    const [usual, first] = [getFirstValues("explorer", [reading]), getDefaultView(reading)];
    const quantity = reading.quantity ?? usual.shown; // weights, if the requested quantity could not be read
    const more = [
      ...(stage.view.on.length > 1 ? [`${stage.view.on.length} heads`] : []),
      ...(read.roles.ofHead.size && stage.view.roles ? ["known roles"] : []),
      ...(stage.view.arrows && !this.#composed.hidden ? ["composition"] : []),
    ];
    const side = isPair(reading) ? stage.view.side : first.side; // the second text may be gone
    this.#usual.textContent = describeChanges({ ...stage.view, shown: quantity, side }, first, "explorer", more);
    showFirstSettings(this.#begun, first, usual, stage.view, (settings) => stage.change(settings), BEGUN);
    this.#bar.draw();
  }

  draw() {
    const { read, stage, shown } = this.#stores;
    const { axes, heads, opened } = shown;
    const wanted = Math.min(stage.view.on.length, read.reading.together);
    this.#panels.classList.toggle("waiting", heads.length < wanted);
    const focus = stage.focused();
    if (!opened) return this.#drawNothing();
    this.#fade(opened.head);
    this.#drawDrawings({ ...axes, heads, focus, quiet: read.quiet, view: stage.view }, opened);
    this.#drawWords(focus, opened, axes);
  }

  // Cross-fade to another head or other units, if the drawings are small.
  /** @type {(opened: number) => void} */
  #fade(opened) {
    const { read, stage } = this.#stores;
    const { key, n } = read.reading;
    const rows = serializeSettings(stage.view, "explorer", OF_STRENGTH);
    const [previousScene, scene] = [this.#scene, JSON.stringify([key, opened, stage.view.on, rows])];
    this.#scene = scene;
    if (previousScene === scene || JSON.parse(previousScene || "[]")[0] !== key || n > MOST_FADED) return;
    for (const canvas of [this.#links, this.#heat]) fadeOut(canvas, this.#panels);
  }

  drawTable() {
    const { read, shown, stage } = this.#stores;
    const head = this.#table.open && shown.opened;
    if (head) this.#tableBox.replaceChildren(...makeTables(head, shown.axes, read.reading, stage.view));
  }

  #drawNothing() {
    const { read, stage, isAlone } = this.#stores;
    const name = formatMapName(read.reading, stage.view.head);
    const alone = `${name} is not in this file: the text is too long for all heads.`;
    this.#readout.textContent = isAlone ? alone : `${name} is loading…`;
    this.#tableBox.replaceChildren();
  }

  /** @type {(scene: LinkScene, head: ShownHead) => void} */
  #drawDrawings(scene, head) {
    const { look, isAlone } = this.#stores;
    const available = window.innerHeight - (isAlone ? 320 : 480); // minus the usual height of the rest of the page
    const shape = scene.cols.length / Math.max(1, scene.rows.length);
    if (isAlone) document.body.style.setProperty("--columns-per-row", `${shape}`); // for the width of a map alone
    const usualHeight = Math.max(380, isAlone ? available : Math.min(640, available));
    const height = look.letters ? this.#heatBox.clientHeight : usualHeight; // in class mode, the CSS sets the height
    this.#linksBox.hidden = !this.#hasFan;
    this.#panels.classList.toggle("lone", !this.#hasFan);
    const [width, across] = [this.#linksBox.clientWidth, this.#heatBox.clientWidth]; // read before any change
    const scroll = this.#scroller.scrollTop;
    this.#scroller.style.maxHeight = `${height}px`;
    this.#heatBox.style.maxHeight = look.letters ? "" : `${height + 60}px`;
    const links = width ? drawLinks(this.#links, scene, { ...look, ...FEW, width, height }, scroll) : null;
    this.#tall.style.height = `${links?.height ?? 0}px`;
    const heat = drawHeatmap(
      this.#heat,
      { ...scene, head, marked: this.#getMarkedCells() },
      { ...look, ...FEW, width: across, height },
    );
    this.#layouts = { links, heat: across ? heat : null }; // a file with links alone hides the heatmap
    if (!links) return;
    this.#shownRows.textContent = describeVisibleRows(links, scene, scroll, height);
    this.#drawLineScale(scene);
  }

  // Explain the width and darkness of lines and, if only some are drawn, which.
  /** @type {(scene: LinkScene) => void} */
  #drawLineScale({ heads, rows, cols }) {
    const { read, stage, look } = this.#stores;
    const [{ colour, below }, { scale, unit }] = [heads[0], stage.view];
    const top = Math.max(...heads.map(({ part }) => part.max));
    this.#lineRamp.style.background = makeLineRamp(heads.length > 1 && !below ? look.ink : colour, below);
    const few = describeFewLinks({ rows, cols }, unit);
    const which = few ? `; without a pinned word, ${few}` : "";
    const range = describeScale(chooseLinkScale(scale), top, read.reading);
    this.#lineWords.textContent = `line width and darkness: ${range}${which}`;
  }

  // Return the cells predicted by the hovered rule.
  #getMarkedCells() {
    const { read, shown, heads } = this.#stores;
    const rule = heads.rule === null ? undefined : read.recipes?.rules[heads.rule];
    return rule ? findCells(rule, read.reading.n, shown.axes) : null;
  }

  /** @type {(focus: Spot | null, head: ShownHead, axes: Axes) => void} */
  #drawWords(focus, head, axes) {
    const { read, stage } = this.#stores;
    const { reading, quiet } = read;
    this.#readout.replaceChildren(...describeFocus(head, axes, focus, stage.view.unit, quiet, !read.mode));
    const sparse = describeLabelStep(this.#layouts.heat?.cell, this.#stores.look.letters);
    const more =
      sparse &&
      ` In the heatmap, ${sparse[0].toLowerCase()}${sparse.slice(1, -1)}; hover over a cell to read its words.`;
    this.note.textContent = describeHidden(head, axes, focus, stage.view, reading) + more;
    const name = formatMapName(reading, head.head);
    const keys = "Arrow keys move, Enter pins, Escape unpins.";
    this.#heat.setAttribute("aria-label", `Heatmap of ${name}. ${this.#readout.textContent} ${keys}`);
    this.#links.setAttribute("aria-label", `Token links of ${name}. ${this.#readout.textContent} ${keys}`);
    this.#reason.hidden = !read.explains;
    // A first visit, on which a word is pinned, does not ask the server; a link that was pinned for the visitor does.
    const isAsked = this.#hasActed || (!!focus && focus.row !== null && focus.col !== null);
    this.#reason.replaceChildren(...(focus && read.explains && isAsked ? this.#explain(focus, head, axes) : []));
  }

  // Say why the focused link is there, once the server has answered; [] if nothing is to be said.
  /** @type {(focus: Spot, head: ShownHead, axes: Axes) => Children} */
  #explain(focus, head, axes) {
    const { reading } = this.#stores.read;
    const link = findExplainedLink(head, axes, focus);
    const matrix = reading.matrices.get(head.head);
    if (!link || !matrix) return [];
    const reasons = openReasonStore().find(reading.key, formatHead(reading, head.head));
    if (!reasons) return [];
    const [from, to] = [axes.rows[link.row], axes.cols[link.col]];
    return describeReasons(reasons, from.text, to.text, ...findStrongestTokens(from, to, matrix, getKeys(reading).n));
  }

  #onReasons = () => {
    const { read, stage, say } = this.#stores;
    if (!read.reading) return;
    this.draw();
    const { textContent } = this.#reason;
    if (!textContent || !this.#unexplained) return;
    if (isSameSpot(this.#unexplained, stage.focused())) say(textContent);
    this.#unexplained = null;
  };

  stop() {
    document.removeEventListener(CHANGED, this.#onReasons);
  }

  // ---- Pointer and keys ---------------------------------------------------------------------------------------

  #listen() {
    const { stage, shown } = this.#stores;
    /** @type {() => [number, number]} */
    const counts = () => [shown.axes.rows.length, shown.axes.cols.length];
    /** @type {(event: MouseEvent) => Spot | null} */
    const cell = (event) => {
      const { heat } = this.#layouts;
      return heat && findHeatmapSpot(heat, ...counts(), ...getPoint(this.#heat, event));
    };
    /** @type {(event: MouseEvent) => Spot | null} */
    const end = (event) => {
      const [x, y] = getPoint(this.#links, event);
      const { links } = this.#layouts;
      return links && findLinksSpot(links, ...counts(), x, y + this.#scroller.scrollTop);
    };
    /** @type {(isHeat: boolean) => () => Walk} */
    const about = (isHeat) => () => {
      const [R, C] = counts();
      return { from: stage.focused(), isHeat, R, C, start: {}, walked: (spot) => this.#announceSpot(spot, isHeat) };
    };
    stage.attend(this.#heat, cell, about(true));
    stage.attend(this.#links, end, about(false));
    this.#scroller.onscroll = () => this.draw();
    const act = () => {
      this.#hasActed = true;
    };
    for (const canvas of [this.#heat, this.#links])
      for (const name of ["pointerdown", "pointermove", "keydown"]) canvas.addEventListener(name, act, true);
    document.addEventListener(CHANGED, this.#onReasons);
  }

  /** @type {(spot: Spot, isHeat: boolean) => void} */
  #announceSpot(spot, isHeat) {
    const reason = this.#reason.textContent;
    this.#stores.say([this.#readout.textContent, reason].filter(Boolean).join(". "));
    this.#unexplained = reason ? null : spot;
    const rowHeight = this.#layouts.links?.rowHeight ?? 0;
    if (!isHeat) revealRow(this.#scroller, (spot.row ?? spot.col) * rowHeight);
  }
}

/** @type {(reading: Reading, head: number) => Children} */
function makeHeading(reading, head) {
  const [layer, number] = getModelNumbers(reading, head);
  if (isOfLayers(reading)) return [`After layer ${layer}, all heads together`];
  const title = `Layer ${layer}, head ${number}, counted from 0; papers count from 1`;
  const names = make("code", { title }, `${formatMapName(reading, head)} (${formatPaperName(reading, head)})`);
  return ["Head ", names];
}

// Say which words of a scrolling diagram are visible; return "" if all are.
/** @type {(layout: LinksLayout, axes: Axes, scroll: number, height: number) => string} */
function describeVisibleRows({ rowHeight, height: whole }, { rows, cols }, scroll, height) {
  if (whole <= height) return "";
  const [count, first] = [Math.max(rows.length, cols.length), Math.floor(scroll / rowHeight)];
  const last = Math.min(count, Math.floor((scroll + height) / rowHeight));
  return `↕ ${first + 1}–${last} of ${count}`;
}

// Make the controls of the view. `set` shows the values of a view, for a pair of sentences or a single one.
/**
 * @type {(change: Change) => { box: HTMLElement, shownBox: HTMLElement, set: (view: ReadingView, pair: boolean,
 *   hasRecipes: boolean) => void }}
 */
function makeViewControls(change) {
  const controls = makeControls("explorer", change);
  const box = make("div", { class: "controls" }, ...Object.values(controls).map((control) => control.box));
  const fitAll = keepFitted(box);
  return {
    box,
    shownBox: controls.shown.box,
    set: (view, pair, hasRecipes) => {
      for (const option of controls.shown.select?.options ?? [])
        option.hidden = option.value === UNEXPLAINED && !hasRecipes;
      for (const [name, control] of Object.entries(controls)) control.set(view[/** @type {Setting} */ (name)] ?? "");
      controls.side.box.hidden = !pair;
      fitAll();
    },
  };
}
