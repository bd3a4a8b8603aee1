// One reading on the page: the grid of all heads, one head as links and heatmap, and the ranking by a link. What only
// changes the view is drawn here at once; the server is told afterwards and keeps the URL.
import { encodeView, keysOf, parseView, unpack } from "../geometry.js";
import { rememberRoles, remembersRoles, showsRoles } from "../memory.js";
import { Stage, mounted, readLook } from "../stage.js";
import { drawControls, drawHead, drawTable, held, listenToHead, pinAt } from "./head.js";
import { setAside } from "./heads.js";
import { drawOverview, drawPictures, listenToGrid } from "./overview.js";
import { page } from "./page.js";
import { ask, drawAsk, more } from "./ranks.js";
import { byHead } from "./roles.js";

const KEEP_BYTES = 64e6; // the most matrices that are cached for heads opened before

/** @type {(root: HTMLElement, send: Send, locate?: () => string) => ExplorerOnPage} */
export function explorer(root, send, locate = () => window.location.search) {
  /** @type {ExplorerApp} */
  const app = /** @type {any} */ ({
    root,
    send,
    reading: null,
    derived: null, // rows, columns and open heads of the view
    hoveredHead: null, // the head under the pointer in the grid
    cursor: 0, // the head that the arrow keys are on
    pictured: "", // the data from which the pictures of the grid were drawn
    layouts: /** @type {any} */ ({}), // the layout of each drawing, once it is drawn
    look: /** @type {Look} */ ({}),
    tour: "", // the step of the tour, as sent by the server
    opened: 0, // how often the server has opened a head by itself
    roles: { kinds: {}, on: [], measured: false, ofHead: new Map() }, // ofHead: what each head is known for
    sought: null, // the kind of role in the filter
  });
  app.stage = new Stage(send, locate, drawingOf(app));
  app.part = page({
    change: (fields, delay) => app.stage.change(fields, delay),
    ask: () => ask(app),
    more: () => more(app),
    roles: () => turnRoles(app),
    measure: () => app.send("measure", {}),
    compare: () => setAside(app, app.stage.view.head),
    table: () => drawTable(app),
  });
  root.replaceChildren(app.part.all);
  listenToGrid(app);
  listenToHead(app);
  return { show: (bytes, headRoles = null) => show(app, bytes, headRoles), stop: () => app.stage.stop() };
}

/** @type {(app: ExplorerApp) => Drawing<ReadingView>} */
const drawingOf = (app) => ({
  isReady: () => !!app.reading,
  parse: (params) => {
    const view = { ...parseView(params, app.reading), roles: showsRoles(params) };
    return app.quiet ? { ...view, pin: null } : view; // a held word would give the hidden answer away
  },
  adopted: () => {
    app.cursor = app.stage.view.head;
  },
  message: (view) => ({ of: app.reading.of, ...encodeView(view, app.reading), roles: rolesName(view) }),
  held: () => held(app),
  pin: (spot) => pinAt(app, spot),
  draw: () => draw(app),
  drawFocus: () => drawHead(app),
});

// The address states whether roles are shown only if that differs from what this browser remembers.
/** @type {(view: ReadingView) => string | null} */
const rolesName = ({ roles }) => (roles === remembersRoles() ? null : roles ? "on" : "off");

/** @type {(app: ExplorerApp) => void} */
function draw(app) {
  if (!app.reading) return;
  readLook(app.look, app.root, app.reading.themes, app.part.note);
  app.part.all.classList.toggle("plain", new URLSearchParams(app.stage.locate()).get("class") === "1");
  drawPictures(app); // first what measures the page, then what changes it: one layout
  drawHead(app);
  drawOverview(app);
  drawControls(app);
  drawAsk(app);
  drawTable(app);
}

/** @type {(app: ExplorerApp) => void} */
function turnRoles({ part, stage }) {
  rememberRoles(part.rolesShown.checked);
  stage.change({ roles: part.rolesShown.checked });
}

// ---- Data from the server -------------------------------------------------------------------------------------

// Shows the bytes of a reading and the roles of its heads, with the step of the tour.
/** @type {(app: ExplorerApp, bytes: Uint8Array, headRoles: HeadRoles | null) => void} */
function show(app, bytes, headRoles) {
  const next = unpack(bytes);
  const isStep = headRoles?.tour && headRoles.tour !== app.tour;
  const isLed = isStep || (headRoles && headRoles.opened !== app.opened); // the address contains another view
  if (headRoles) {
    const { tour, opened, quiet } = headRoles;
    Object.assign(app, { roles: byHead(headRoles), tour, opened, quiet });
  }
  const isSame = app.reading?.key === next.key;
  const isOfSameTokens = /** @type {const} */ (["of", "model", "heads"]).every(
    (name) => app.reading?.[name] === next[name],
  );
  if (isSame) keep(app, next);
  else Object.assign(app, { reading: next, hoveredHead: null });
  if (!isSame || isLed) app.stage.adopt(undefined, isOfSameTokens && !isLed);
  if (isStep && app.stage.view.roles) rememberRoles(true); // the tour has explained them
  draw(app);
}

// More of the current reading: its matrices join the others; the oldest are dropped if there is no room.
/** @type {(app: ExplorerApp, next: Reading) => void} */
function keep({ reading, stage }, next) {
  if (next.link) reading.link = next.link;
  for (const [head, matrix] of next.matrices) reading.matrices.set(head, matrix);
  const room = Math.max(24, KEEP_BYTES / (4 * reading.n * keysOf(reading).n));
  for (const head of reading.matrices.keys()) {
    if (reading.matrices.size <= room) break;
    if (!stage.view.on.includes(head)) reading.matrices.delete(head);
  }
}

// Splits the data into a packet and the roles, which follow it as JSON, preceded by their length.
/** @type {(data: Uint8Array) => [Uint8Array, HeadRoles]} */
function apart(data) {
  const end = data.byteLength - 4;
  const begin = end - new DataView(data.buffer, data.byteOffset + end).getUint32(0, true);
  return [data.subarray(0, begin), JSON.parse(new TextDecoder().decode(data.subarray(begin, end)))];
}

/** @type {InStreamlit<ExplorerOnPage>} */
const IN_STREAMLIT = {
  create: explorer,
  show: (app, data) => app.show(...apart(data)),
  failure: "This drawing failed. Reload the page without the part of its address after “&”, or read another text.",
};

/** @param {StreamlitComponent} component */
export default function (component) {
  const leave = mounted(component, ".mha-explorer", IN_STREAMLIT);
  const { host } = /** @type {ShadowRoot} */ (/** @type {unknown} */ (component.parentElement));
  host?.toggleAttribute("data-drawn", true); // the placeholder can be hidden
  return leave;
}
