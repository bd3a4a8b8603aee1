// What travels through the drawings. Known to TypeScript in every module here; nothing of it reaches the browser.

/** The settings of a picture, in the values of the page's address. */
interface Settings {
  unit: string;
  special: string;
  links: string;
  scale: string;
  side?: string; // of a reading, not of panels
  shown?: string;
  as?: string;
}

type Setting = keyof Settings;

/** Tokens that a view holds, null for none; `at`: the panel that they are counted in. */
interface Pin {
  query: number | null;
  key: number | null;
  at?: number;
}

/** A row, a column or a cell that is pointed at or held, in units; `at`: the panel that it is counted in, by default
 * the first. */
type Spot = { at?: number } & ({ row: number; col: number } | { row: number; col: null } | { row: null; col: number });

/** A spot as it is in another panel: several units may stand for one. */
type Span = Spot & { rows?: number; cols?: number };

/** A cell, or the cells of one link where several units stand for one. */
interface Cells {
  row: number;
  rows?: number;
  col: number;
  cols?: number;
}

interface Link {
  query: number;
  key: number;
}

interface ReadingView extends Settings {
  roles: boolean;
  head: number;
  on: number[];
  pin: Pin | null;
  link: Link | null;
}

interface PanelsView extends Settings {
  pin: Pin | null;
  diff: [number, number] | null;
}

/** A row or column: a word, a piece or a special token; `tokens` are indices of pieces. */
interface Unit {
  text: string;
  tokens: number[];
  special: boolean;
  segment: number;
}

interface Axes {
  rows: Unit[];
  cols: Unit[];
}

/** What numbers are: the quantity, by default the weight, and whether they have signs. */
interface Kind {
  quantity?: string;
  signed?: boolean;
}

/** What a view shows of one head: w[row * C + col]; hidden[row] is the share of the row that is not shown. */
interface Block extends Kind {
  w: Float32Array;
  R: number;
  C: number;
  max?: number;
  hidden?: Float32Array;
}

type ShownBlock = Block & { max: number };
/** With what it hides. */
type WholeBlock = ShownBlock & { hidden: Float32Array };
/** A row of a matrix, or of several added up; the pieces of all columns one after the other, and where each ends. */
type Row = Float32Array | Float64Array;
interface Columns {
  tokens: Uint16Array;
  ends: Uint16Array;
}

interface ShownHead {
  head: number;
  part: WholeBlock;
  shade: Uint8ClampedArray;
  mask: Uint8Array | null;
  colour: string;
  dash: number[];
  below?: string;
  largest?: number;
  picture?: OffscreenCanvas;
}

interface Theme {
  ramp: string[];
  signed: string[];
  heads: string[];
  dashes: number[][];
}

interface Bins {
  starts: number[];
  special: number[];
}

interface Metric {
  label: string;
  help: string;
  unit: string;
  values: (number | null)[];
}

/** What rows or columns are drawn from: the tokens of a text, and the words that join them. */
interface Axis {
  n: number;
  tokens: string[];
  segments: number[];
  special: number[];
  groups: number[][];
  words: string[];
}

/** The same in panels, with what was typed, where each token stands in it, and its words by token. */
interface TypedAxis extends Axis {
  text: string;
  pair: string;
  spans: ([number, number] | null)[];
  wordOf: number[];
}

/** One reading (figures/packet.py): the rows, and `keys`, the columns where they are of another text; `request`,
 * what else the server needs to read it again. */
interface Reading extends TypedAxis {
  keys?: TypedAxis;
  coarse?: boolean; // levels of one byte
  request?: Record<string, string>; // the texts given to an encoder–decoder; or the heads that are off, and how
  quantity?: string;
  signed?: boolean;
  hidden?: number[][];
  key: string;
  of: string;
  model: string;
  revision: string;
  steps: string;
  layers: number;
  heads: number;
  together: number;
  full: number[];
  metrics: Metric[];
  themes: { light: Theme; dark: Theme };
  start?: { head?: string | null; pin?: string | null };
  bins?: Bins & { keys?: Bins };
  thumbs?: Uint8Array;
  matrices: Map<number, Float32Array>;
  link?: Link & { words: boolean; weights: number[] };
}

/** The texts of rows, or of columns, of all readings of some panels, and which of their words stand for each other. */
interface Sides {
  readings: TypedAxis[];
  aligned: (number | null)[][][];
  place: (number | null)[][][];
}

/** Panels to compare (figures/panels.py). */
interface Panels extends Sides {
  columns?: Sides;
  key: string;
  editable: boolean;
  panels: { reading: number; head: number; name: string; source?: number }[];
  readings: Reading[];
  sizes: number[];
  compared: (string | null)[][];
  divergence: (number | null)[][];
  themes: { light: Theme; dark: Theme };
  start?: { diff: string };
}

/** What the settings depend on with which panels open. */
type Opening = Pick<Panels, "readings" | "start">;

/** Matrices subtracted: d[row * C + col] is `second` minus `first`, at most `top` in size. */
interface Subtraction {
  partner: number[];
  d: Float32Array;
  R: number;
  C: number;
  top: number;
  first: Float32Array;
  second: Float32Array;
}

/** One panel minus another, with the units and what the numbers are. */
interface Difference extends Axes, Subtraction {
  kind: Kind;
}

/** Why two panels cannot be subtracted: the units that have no counterpart, and a remedy. */
interface Refusal {
  partner?: undefined;
  ours: Unit[];
  theirs: Unit[];
  remedy: Partial<Settings> | null;
  isMixed?: boolean;
}

/** A difference ready to be drawn, and its largest cells. */
interface DrawnDifference extends Difference {
  head: Pictured;
  largest: number[];
}

/** Colours and fonts of the page, and of one drawing its size. */
interface Look {
  theme: string;
  ramp: string[];
  signed: string[];
  heads: string[];
  dashes: number[][];
  colours: Uint32Array;
  signedColours: Uint32Array;
  ink: string;
  paper: string;
  accent: string;
  muted: string;
  small: string;
  textFont: (size: number, weight?: number) => string;
  numberFont: (size: number) => string;
  veil?: number;
  width: number;
  height: number;
  label?: number;
  most?: number;
}

interface GridLayout {
  left: number;
  top: number;
  step: number;
  size: number;
  width: number;
  height: number;
}

interface HeatmapLayout {
  cell: number;
  left: number;
  top: number;
  width: number;
  height: number;
}

interface LinksLayout {
  rowHeight: number;
  left: number;
  right: number;
  column: number;
  width: number;
  height: number;
}

/** Says something to the server. */
type Send = (name: string, value: any) => void;

/** Messages to the server that wait, by name, and the name of the one that waits for its answer, "" for none. The
 * components of a page share one queue. */
interface Queue {
  waiting: Map<string, [Send, any]>;
  sent: string;
  turn: number;
}

declare var mhaVizQueue: Queue | undefined;
declare var mhaVizTour: { step: string } | undefined;

/** What children of a page element may be. */
type Children = (Node | string)[];

/** What a drawing gives to its stage. */
interface Drawing<View> {
  isReady: () => boolean;
  parse: (params: URLSearchParams) => View;
  adopted: () => void;
  message: (view: View) => object;
  held: () => Spot | null;
  pin: (spot: Spot) => Pin;
  draw: () => void;
  drawFocus: (now: boolean) => void;
}

/** What keys on a canvas need. */
interface Walk {
  from: Spot | null;
  isHeat: boolean;
  R: number;
  C: number;
  start: Partial<Spot>;
  walked: (spot: Spot) => void;
}

/** Page elements by name, as `page` of each component makes them. */
type Parts = Record<string, any>;

interface Role {
  head: number;
  role: string;
  name: string;
  words: string;
  standing: string;
  active: boolean;
}

interface Roles {
  kinds: Record<string, number>;
  on: string[];
  measured: boolean;
  ofHead: Map<number, Role[]>;
}

/** What the drawings of the explorer share: what was read, what the view shows of it, and what is pointed at. `say`
 * tells screen readers; `isAlone`: in a file, without a server. */
interface Stores {
  read: import("./explorer/read.js").Read;
  stage: import("./stage.js").Stage<ReadingView>;
  shown: import("./explorer/shown.js").Shown;
  heads: import("./explorer/heads.js").Heads;
  look: Look;
  say: (words: string) => void;
  isAlone: boolean;
}

/** A change of the tray; `index` and `to` are panels. */
interface Edit {
  action: string;
  index: number;
  to?: number;
  name?: string;
}

interface Plate {
  canvas: HTMLCanvasElement;
  over: HTMLCanvasElement;
  tall: HTMLElement;
  box: HTMLElement;
  layout?: any;
}

/** A button of a panel: what it does to the tray, where it can. */
interface Tool {
  name: string;
  label: string;
  change?: Omit<Edit, "index">;
}

interface PanelPart extends Plate {
  all: HTMLElement;
  name: HTMLElement;
  tools: HTMLElement;
  says: HTMLElement;
  note: HTMLElement;
  rename?: HTMLElement;
  drawn: string;
}

interface CompareApp {
  root: HTMLElement;
  send: Send;
  set: Panels;
  derived: {
    key: string;
    units: Unit[][];
    columns: Unit[][];
    heads: ShownHead[];
    top: number;
    standing: Record<string, ([number, number] | null)[]>;
    diff: DrawnDifference | Refusal | null;
  };
  sent: {
    action: string;
    index: number;
    count: number;
    view: PanelsView;
    focused: { index: number; to?: number; tool: string };
    until: number;
  } | null;
  frame: number;
  look: Look;
  stage: import("./stage.js").Stage<PanelsView>;
  part: Parts & { panels: PanelPart[] };
}

type Change = (fields: Record<string, any>, delay?: number) => void;

/** A setting of the view on the page. */
interface Control {
  box: HTMLElement;
  set: (value: string) => void;
}

/** What a component's page elements tell what a person does to, by name. */
type Actions = Record<string, (...values: any[]) => void>;

/** A component in a file that stands alone. */
interface Mounted {
  show: (bytes: Uint8Array) => void;
}

interface CompareOnPage {
  show: (bytes: Uint8Array) => void;
  stop: () => void;
}

/** What the server knows of the roles of heads; the step of the tour that the page says, and how often the search has
 * opened a head. */
interface HeadRoles {
  kinds: Record<string, number>;
  on: string[];
  measured: boolean;
  roles: Role[];
  tour: string;
  opened: number;
  quiet: boolean;
}

interface Rank {
  head: number;
  weight: number;
}

/** A spot as it is in one reading, or the unit that this reading lacks. */
type Place = (Span & { missing?: undefined }) | { missing: Unit };

/** What is needed to tell where a spot is in other panels. */
interface Pointed {
  set: Panels;
  derived: Pick<CompareApp["derived"], "units" | "standing"> & {
    columns?: Unit[][];
    diff: { partner?: number[] } | null;
  };
  stage: { view: PanelsView };
}

/** For each unit its one partner, or the units that have none. */
type Partners =
  { partner: number[]; ours?: undefined; theirs?: undefined } | { partner?: undefined; ours: Unit[]; theirs: Unit[] };

/** What a heatmap is drawn from; of a difference also the largest of its numbers, for their sign is marked. */
type Pictured = Pick<ShownHead, "shade" | "picture" | "largest"> & { part: Block };

interface HeatScene extends Axes {
  head: Pictured;
  focus: Span | null;
}

interface LinkScene extends Axes {
  heads: ShownHead[];
  focus: Span | null;
}

/** A step of multi-head attention (ui/inside). */
interface Step {
  name: string;
  label: string;
  shape: string;
  inside: boolean;
}

interface BlockData {
  steps: Step[];
  step: string;
  heads: string[];
  head: number;
}

/** What a training looks like at its recorded steps (figures/frames.py). */
interface PlayerHead {
  name: string;
  colour: string;
}

/** A relation and, for every word, the place of the word to look at; -1 where there is none. */
interface PlayerMark {
  name: string;
  places: number[];
  colour: string;
}

/** Every two heads compared: values[step][head * heads + head], and what some of the values mean. */
interface PlayerMatrix {
  title: string;
  values: number[][];
  low: number;
  high: number;
  colours: "share" | "signed";
  legend: [number, string][];
}

/** The gradient at each head, [step][head]: its norm, and its cosine with that at the first head. */
interface Flow {
  norms: number[][];
  cosines: number[][];
}

interface PlayerData {
  key: string;
  steps: number[];
  at: number;
  words: string[];
  heads: PlayerHead[];
  columns: number;
  named: boolean;
  maps: string;
  strip: PlayerStrip | null;
  marks: PlayerMark[];
  captions: string[];
  titles: { flow: string; matrices: string };
  matrices: PlayerMatrix[];
  flow: Flow | null;
  ramp: string[];
  signed: string[];
}

/** Of every head, the first `size` numbers of a matrix at every step: shades from 1 to 255 around 128, which is 0. */
interface PlayerStrip {
  name: string;
  size: number;
  largest: number;
  cells: string;
}

interface PlayerMap {
  root: HTMLElement;
  canvas: HTMLCanvasElement;
  over: SVGElement;
  picture: OffscreenCanvas;
  name: string;
}

type Palettes = Record<"ramp" | "share" | "signed", Uint32Array>;

interface MapsView {
  root: HTMLElement;
  draw: (moment: number, colours: Palettes) => void;
}

interface MatricesView {
  root: HTMLElement;
  draw: (at: number, colours: Palettes) => void;
}

interface FlowView {
  root: SVGElement;
  draw: (at: number) => void;
}

/** `moment` is counted in recorded steps; `sent`: those that the server was told and has not answered. */
interface PlayerState {
  data: PlayerData;
  moment: number;
  playing: number | null;
  sent: Set<number>;
  parts: Parts;
}

interface Example {
  text: string;
  pair: string;
  look: string;
}

/** A sentence, maybe with a second one, as it was typed. */
interface Typed {
  text: string;
  pair: string;
}

/** What a link must say besides the address, and what the page can save for others. */
interface LinkData {
  full: Record<string, string>;
  file: "html" | "figures" | "";
}

interface SentenceData extends LinkData {
  text: string;
  pair: string;
  look: string;
  answer: string;
  intro: string;
  plain: boolean;
  opens: { index: number; head: string } | null;
  model: string;
  label: string;
  models: { name: string; label: string }[];
  open: boolean;
  examples: Example[];
}

interface SentenceApp {
  send: Send;
  part: Parts;
  typed: Record<"text" | "pair", import("./sentence/typed.js").TypedField>;
  last: Partial<SentenceData>;
}

/** A head that answers a search (ui/search_field.py). */
interface SearchAnswer {
  head: string;
  paper: string;
  does: string;
  score: string;
  baseline: string;
  rule: string;
  standing: string;
  href: string;
}

interface SearchData {
  /** How many searches there were: the same words are answered again. */
  number: number;
  typed: string;
  problem: string;
  groups: { title: string; note: string; answers: SearchAnswer[] }[];
}

interface SearchApp {
  root: HTMLElement;
  send: Send;
  data: SearchData | null;
  timer: ReturnType<typeof setTimeout> | undefined;
  part: Parts;
}

interface SearchOnPage {
  show: (data: SearchData) => void;
  stop: () => void;
}

/** What Streamlit gives to a component. */
interface StreamlitComponent {
  data: any;
  parentElement: HTMLElement;
  setTriggerValue: Send;
}
