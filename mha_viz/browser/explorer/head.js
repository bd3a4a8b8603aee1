// Show one head as links, heatmap, text and table; the links can include other heads of its layer.
import { showInitialSettings, makeControls, describeChanges, makeDrawingMenu, keepMenusFitted } from "../controls.js";
import { fadeOut, make } from "../dom.js";
import { getDefaultView, isPair } from "../geometry.js";
import { drawHeatmap, describeLabelStep } from "../heatmap.js";
import { findHeatmapSpot, findLinksSpot } from "../layouts.js";
import { drawLinks, describeFewLinks, makeLineRamp, chooseLinkScale } from "../links.js";
import { formatHead, getModelNumbers, getKeys, formatMapName, formatPaperName } from "../reading.js";
import { CHANGE_EVENT, openReasonStore } from "../reasons/store.js";
import { getPoint, revealRow, isSameSpot } from "../stage.js";
import { STRENGTH_SETTINGS, getDefaults, isOfLayers, serializeSettings } from "../view.js";
import { describeHidden, describeOff, describeFocus, describeScale, makeTables } from "../words.js";
import { HeadBar } from "./heads.js";
import { hasArcs } from "./data.js";
import { findExplainedLink, describeReasons, findStrongestTokens } from "./reasons.js";
import { UNEXPLAINED, findCells } from "./recipe.js";
import { Chips } from "./roles.js";
/** @import { Change } from "../controls.js" */
/** @import { Children } from "../dom.js" */
/** @import { Axes, ReadingView } from "../geometry.js" */
/** @import { HeatmapLayout, LinksLayout, Spot } from "../layouts.js" */
/** @import { LinkScene, ShownHead } from "../links.js" */
/** @import { Reading } from "../reading.js" */
/** @import { KeyContext } from "../stage.js" */
/** @import { Setting } from "../view.js" */
/** @import { Stores } from "./explorer.js" */

const LONG_TEXT_NOTE = [
  "Long text: special tokens hidden, the three strongest links per word, colours per row.",
  "Show only the strongest links",
];

const SWITCH_LABELS = { on: "Switch on", off: "Switch off" };

const MAX_FADED = 128; // tokens
const SHORT_TEXT = { maxRowHeight: 50, maxCell: 60 }; // maximum pixels of a row and of a cell of a short text

/** @type {(label: string) => HTMLCanvasElement} */
export const makeFocusableCanvas = (label) => make("canvas", { tabIndex: 0, role: "application", "aria-label": label });
/** @type {(left: string, ...right: Children) => HTMLElement} */
const makeAxisNames = (left, ...right) =>
  make("div", { class: "ends soft" }, make("span", { title: "from" }, left), ...right);

export class HeadView {
  #title = make("h2");
  #readout = make("p", { class: "readout" });
  #reason = make("p", { class: "reason", hidden: true });
  // Whether the user has pointed at a drawing; until then, a word pinned by the address is not explained.
  #hasPointed = false;
  #spotWithoutReason = /** @type {Spot | null} */ (null); // announced before its reason arrived
  #longTextNote = make("p", { class: "begun", hidden: true });
  note = make("p", { class: "note soft" });
  #links = makeFocusableCanvas("Token links");
  #linksSizer = make("div", { class: "tall" }, this.#links);
  #scroller = make("div", { class: "scroller" }, this.#linksSizer);
  #shownRows = make("span");
  #lineRamp = make("i", { class: "ramp", "aria-hidden": true });
  #lineWords = make("span");
  #linksBox = make(
    "div",
    { class: "links" },
    makeAxisNames("query", this.#shownRows, make("span", { title: "to" }, "key")),
    this.#scroller,
    make("p", { class: "lines soft" }, this.#lineRamp, this.#lineWords),
  );
  #heat = makeFocusableCanvas("Heatmap");
  #heatBox = make(
    "div",
    { class: "heat" },
    makeAxisNames("query ↓", make("span", { title: "to" }, "key →")),
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
  #sceneKey = ""; // key of the current drawing, except for the hovered spot
  #layouts = /** @type {{ links: LinksLayout | null, heat: HeatmapLayout | null }} */ ({ links: null, heat: null });
  #stores;
  #offButton = make(
    "button",
    { type: "button", class: "quiet off", title: "Key x, or drag its square out of the grid" },
    SWITCH_LABELS.off,
  );
  #linksCheckbox = make("input", { type: "checkbox", onchange: () => this.#toggleLinks() });
  #linksLabel = make(
    "label",
    { class: "known fan", title: "Draw lines from word to word next to the heatmap" },
    this.#linksCheckbox,
    "Token links",
  );
  #wantsLinks = /** @type {boolean | null} */ (null); // null until the user chooses
  #offNote = make("p", { class: "off-note" });
  #menuLabel = make("summary");
  #arrowsCheckbox = make("input", { type: "checkbox" });
  #arrowsLabel = make(
    "label",
    { class: "known", title: "Composition: which earlier heads contribute to a head’s scores on this text" },
    this.#arrowsCheckbox,
    "Arrows between heads",
  );
  menu; // of the drawing
  #controls;
  #chips;
  #bar;

  /** @param {Stores} stores */
  constructor(stores) {
    this.#stores = stores;
    const { stage, heads, isStandalone } = stores;
    this.#controls = makeViewControls((fields, delay) => stage.change(fields, delay));
    this.#controls.shownBox.hidden = isStandalone; // other quantities need a server
    this.#chips = new Chips("role_open", stores);
    this.#bar = new HeadBar(stores, (words) => {
      this.note.textContent = words;
    });
    const title = "Add this head to My heads (in the grid: key c or Shift-click)";
    const onclick = () => heads.compare(stage.view.head);
    const compare = make(
      "button",
      { type: "button", class: "quiet", title, onclick, hidden: isStandalone },
      "+ Compare",
    );
    this.#offButton.onclick = () => heads.toggleOff(stage.view.head);
    this.#arrowsCheckbox.onchange = () => stage.change({ arrows: this.#arrowsCheckbox.checked });
    const header = make("header", {}, this.#title, compare, this.#offButton);
    const texts = [this.#longTextNote, this.#offNote, this.#readout, this.#reason, this.#panels, this.note];
    this.menu = makeDrawingMenu(
      this.#menuLabel,
      this.#controls.box,
      this.#bar.box,
      this.#table,
      this.#linksLabel,
      this.#arrowsLabel,
    );
    this.box = make("section", { class: "one" }, header, this.#chips.box, this.menu, ...texts);
    this.#listen();
  }

  // Whether token links are drawn beside the heatmap: as the user chose, by default if arcs under the sentence cannot
  // show them.
  get #showsLinks() {
    const { stage, data } = this.#stores;
    const { view } = stage;
    const isPlain = hasArcs(this.#stores) && view.on.length < 2 && view.links === getDefaultView(data.reading).links;
    return this.#wantsLinks ?? !isPlain;
  }

  #toggleLinks() {
    this.#wantsLinks = this.#linksCheckbox.checked;
    this.#stores.stage.drawing.draw();
  }

  drawControls() {
    const { data, stage, heads } = this.#stores;
    const { reading } = data;
    this.#title.replaceChildren(...makeHeading(reading, stage.view.head));
    this.#offButton.hidden = this.#stores.isStandalone || isOfLayers(reading);
    this.#offButton.textContent = heads.isOff(stage.view.head) ? SWITCH_LABELS.on : SWITCH_LABELS.off;
    this.#linksLabel.hidden = this.#stores.isStandalone;
    this.#linksCheckbox.checked = this.#showsLinks;
    this.#offNote.textContent = describeOff(reading, stage.view.on);
    this.#chips.draw(stage.view.head);
    this.#controls.set(stage.view, isPair(reading), !!data.recipes);
    this.#arrowsCheckbox.checked = stage.view.arrows;
    this.#arrowsLabel.hidden = this.#stores.isStandalone || !!data.ablation || isOfLayers(reading);
    const [defaults, initialView] = [getDefaults("explorer", [reading]), getDefaultView(reading)];
    const quantity = reading.quantity ?? defaults.shown; // weights, if the requested quantity could not be read
    const extras = [
      ...(stage.view.on.length > 1 ? [`${stage.view.on.length} heads`] : []),
      ...(data.roles.byHead.size && stage.view.roles ? ["known roles"] : []),
      ...(stage.view.arrows && !this.#arrowsLabel.hidden ? ["composition"] : []),
    ];
    const side = isPair(reading) ? stage.view.side : initialView.side; // the pair may be gone
    this.#menuLabel.textContent = describeChanges(
      { ...stage.view, shown: quantity, side },
      initialView,
      "explorer",
      extras,
    );
    showInitialSettings(
      this.#longTextNote,
      initialView,
      defaults,
      stage.view,
      (settings) => stage.change(settings),
      LONG_TEXT_NOTE,
    );
    this.#bar.draw();
  }

  draw() {
    const { data, stage, visible } = this.#stores;
    const { axes, heads, openHead } = visible;
    const headCount = Math.min(stage.view.on.length, data.reading.together);
    this.#panels.classList.toggle("waiting", heads.length < headCount);
    const focus = stage.getFocus();
    if (!openHead) return this.#drawNothing();
    this.#fade(openHead.head);
    this.#drawPanels({ ...axes, heads, focus, quiet: data.quiet, view: stage.view }, openHead);
    this.#drawWords(focus, openHead, axes);
  }

  // Cross-fade to another head or other units, if the drawings are small.
  /** @type {(head: number) => void} */
  #fade(head) {
    const { data, stage } = this.#stores;
    const { key, n } = data.reading;
    const rows = serializeSettings(stage.view, "explorer", STRENGTH_SETTINGS);
    const [previousScene, scene] = [this.#sceneKey, JSON.stringify([key, head, stage.view.on, rows])];
    this.#sceneKey = scene;
    if (previousScene === scene || JSON.parse(previousScene || "[]")[0] !== key || n > MAX_FADED) return;
    for (const canvas of [this.#links, this.#heat]) fadeOut(canvas, this.#panels);
  }

  drawTable() {
    const { data, visible, stage } = this.#stores;
    const head = this.#table.open && visible.openHead;
    if (head) this.#tableBox.replaceChildren(...makeTables(head, visible.axes, data.reading, stage.view));
  }

  #drawNothing() {
    const { data, stage, isStandalone } = this.#stores;
    const name = formatMapName(data.reading, stage.view.head);
    const missingText = `${name} is not in this file: the text is too long for all heads.`;
    this.#readout.textContent = isStandalone ? missingText : `${name} is loading…`;
    this.#tableBox.replaceChildren();
  }

  /** @type {(scene: LinkScene, head: ShownHead) => void} */
  #drawPanels(scene, head) {
    const { look, isStandalone } = this.#stores;
    const availableHeight = window.innerHeight - (isStandalone ? 320 : 480); // minus the rest of the page
    const aspectRatio = scene.cols.length / Math.max(1, scene.rows.length);
    if (isStandalone) document.body.style.setProperty("--columns-per-row", `${aspectRatio}`); // for a map alone
    const usualHeight = Math.max(380, isStandalone ? availableHeight : Math.min(640, availableHeight));
    const height = look.minLabelSize ? this.#heatBox.clientHeight : usualHeight; // set by CSS in class mode
    this.#linksBox.hidden = !this.#showsLinks;
    this.#panels.classList.toggle("lone", !this.#showsLinks);
    const [width, heatmapWidth] = [this.#linksBox.clientWidth, this.#heatBox.clientWidth]; // read before any change
    const scroll = this.#scroller.scrollTop;
    this.#scroller.style.maxHeight = `${height}px`;
    this.#heatBox.style.maxHeight = look.minLabelSize ? "" : `${height + 60}px`;
    const links = width ? drawLinks(this.#links, scene, { ...look, ...SHORT_TEXT, width, height }, scroll) : null;
    this.#linksSizer.style.height = `${links?.height ?? 0}px`;
    const heat = drawHeatmap(
      this.#heat,
      { ...scene, head, marked: this.#getMarkedCells() },
      { ...look, ...SHORT_TEXT, width: heatmapWidth, height },
    );
    this.#layouts = { links, heat: heatmapWidth ? heat : null }; // a file with links alone hides the heatmap
    if (!links) return;
    this.#shownRows.textContent = describeVisibleRows(links, scene, scroll, height);
    this.#drawLineScale(scene);
  }

  // Explain the width and darkness of lines and, if only some are drawn, which.
  /** @type {(scene: LinkScene) => void} */
  #drawLineScale({ heads, rows, cols }) {
    const { data, stage, look } = this.#stores;
    const [{ colour, negativeColour }, { scale, unit }] = [heads[0], stage.view];
    const top = Math.max(...heads.map(({ block }) => block.max));
    this.#lineRamp.style.background = makeLineRamp(
      heads.length > 1 && !negativeColour ? look.ink : colour,
      negativeColour,
    );
    const fewText = describeFewLinks({ rows, cols }, unit);
    const fewNote = fewText ? `; without a pinned word, ${fewText}` : "";
    const range = describeScale(chooseLinkScale(scale), top, data.reading);
    this.#lineWords.textContent = `line width and darkness: ${range}${fewNote}`;
  }

  // Return the cells predicted by the hovered rule.
  #getMarkedCells() {
    const { data, visible, heads } = this.#stores;
    const rule = heads.markedRule === null ? undefined : data.recipes?.rules[heads.markedRule];
    return rule ? findCells(rule, data.reading.n, visible.axes) : null;
  }

  /** @type {(focus: Spot | null, head: ShownHead, axes: Axes) => void} */
  #drawWords(focus, head, axes) {
    const { data, stage } = this.#stores;
    const { reading, quiet } = data;
    this.#readout.replaceChildren(...describeFocus(head, axes, focus, stage.view.unit, quiet, !data.ablation));
    const labelNote = describeLabelStep(this.#layouts.heat?.cell, this.#stores.look.minLabelSize);
    const labelText =
      labelNote &&
      ` In the heatmap, ${labelNote[0].toLowerCase()}${labelNote.slice(1, -1)}; hover over a cell to read its words.`;
    this.note.textContent = describeHidden(head, axes, focus, stage.view, reading) + labelText;
    const name = formatMapName(reading, head.head);
    const keys = "Arrow keys move, Enter pins, Escape unpins.";
    this.#heat.setAttribute("aria-label", `Heatmap of ${name}. ${this.#readout.textContent} ${keys}`);
    this.#links.setAttribute("aria-label", `Token links of ${name}. ${this.#readout.textContent} ${keys}`);
    this.#reason.hidden = !data.canExplainLinks;
    // Do not ask the server about the word pinned on a first visit, but do ask about a pinned link.
    const isAsked = this.#hasPointed || (!!focus && focus.row !== null && focus.col !== null);
    this.#reason.replaceChildren(...(focus && data.canExplainLinks && isAsked ? this.#explain(focus, head, axes) : []));
  }

  // Describe the reason for the focused link; return [] if there is none, or the server has not answered yet.
  /** @type {(focus: Spot, head: ShownHead, axes: Axes) => Children} */
  #explain(focus, head, axes) {
    const { reading } = this.#stores.data;
    const link = findExplainedLink(head, axes, focus);
    const matrix = reading.matrices.get(head.head);
    if (!link || !matrix) return [];
    const reasons = openReasonStore().find(reading.key, formatHead(reading, head.head));
    if (!reasons) return [];
    const [from, to] = [axes.rows[link.row], axes.cols[link.col]];
    return describeReasons(reasons, from.text, to.text, ...findStrongestTokens(from, to, matrix, getKeys(reading).n));
  }

  #onReasons = () => {
    const { data, stage, say } = this.#stores;
    if (!data.reading) return;
    this.draw();
    const { textContent } = this.#reason;
    if (!textContent || !this.#spotWithoutReason) return;
    if (isSameSpot(this.#spotWithoutReason, stage.getFocus())) say(textContent);
    this.#spotWithoutReason = null;
  };

  stop() {
    document.removeEventListener(CHANGE_EVENT, this.#onReasons);
  }

  // ---- Pointer and keys ---------------------------------------------------------------------------------------

  #listen() {
    const { stage, visible } = this.#stores;
    /** @type {() => [number, number]} */
    const counts = () => [visible.axes.rows.length, visible.axes.cols.length];
    /** @type {(event: MouseEvent) => Spot | null} */
    const findCell = (event) => {
      const { heat } = this.#layouts;
      return heat && findHeatmapSpot(heat, ...counts(), ...getPoint(this.#heat, event));
    };
    /** @type {(event: MouseEvent) => Spot | null} */
    const findToken = (event) => {
      const [x, y] = getPoint(this.#links, event);
      const { links } = this.#layouts;
      return links && findLinksSpot(links, ...counts(), x, y + this.#scroller.scrollTop);
    };
    /** @type {(isHeatmap: boolean) => () => KeyContext} */
    const getKeyContext = (isHeatmap) => () => {
      const [R, C] = counts();
      return {
        from: stage.getFocus(),
        isHeatmap,
        R,
        C,
        start: {},
        onMove: (spot) => this.#announceSpot(spot, isHeatmap),
      };
    };
    stage.listenTo(this.#heat, findCell, getKeyContext(true));
    stage.listenTo(this.#links, findToken, getKeyContext(false));
    this.#scroller.onscroll = () => this.draw();
    const noteAction = () => {
      this.#hasPointed = true;
    };
    for (const canvas of [this.#heat, this.#links])
      for (const name of ["pointerdown", "pointermove", "keydown"]) canvas.addEventListener(name, noteAction, true);
    document.addEventListener(CHANGE_EVENT, this.#onReasons);
  }

  /** @type {(spot: Spot, isHeatmap: boolean) => void} */
  #announceSpot(spot, isHeatmap) {
    const reason = this.#reason.textContent;
    this.#stores.say([this.#readout.textContent, reason].filter(Boolean).join(". "));
    this.#spotWithoutReason = reason ? null : spot;
    const rowHeight = this.#layouts.links?.rowHeight ?? 0;
    if (!isHeatmap) revealRow(this.#scroller, (spot.row ?? spot.col) * rowHeight);
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
function describeVisibleRows({ rowHeight, height: totalHeight }, { rows, cols }, scroll, height) {
  if (totalHeight <= height) return "";
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
  const fitAll = keepMenusFitted(box);
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
