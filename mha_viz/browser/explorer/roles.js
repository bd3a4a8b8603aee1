// Roles of heads, measured on a corpus: marks in the grid, a filter by kind, and labels beside a head.
import { enableRoving, setTabStop } from "../controls.js";
import { closeOnEscape, make } from "../dom.js";
import { formatHead } from "../reading.js";
/** @import { Finding, Stores } from "./explorer.js" */
/** @import { Arrow } from "./overview.js" */
/** @import { Recipes } from "./recipe.js" */

/**
 * @typedef {object} Role
 * @property {number} head
 * @property {string} role the kind of role
 * @property {string} glyph its class in glyphs.css
 * @property {string} name
 * @property {string} words its explanation
 * @property {string} standing how well it is established, or "not here"
 * @property {boolean} active whether it shows in this text
 */

/** @typedef {{ kinds: Record<string, number>, on: string[], measured: boolean, byHead: Map<number, Role[]> }} Roles */

/** @typedef {{ head: number, pin: Finding["pin"] | null, says: string }} ShowcaseHead for a first visit */

/**
 * An example sentence for a head: the words around a link, where it begins and ends, its weight, whether it is right.
 *
 * @typedef {{ words: string[], from: number, to: number, weight: number, right: boolean }} Case
 * @typedef {{ head: number, cases: Case[] }} OtherCases
 */

/**
 * The server's facts about heads: roles, findings, recipes, heads that are off, and the step of the tour.
 *
 * @typedef {object} HeadRoles
 * @property {Record<string, number>} kinds
 * @property {string[]} on the names of the corpora
 * @property {boolean} measured
 * @property {Role[]} roles
 * @property {string} tour
 * @property {number} opened how many times the server has opened a head by itself
 * @property {boolean} quiet whether the strongest link would reveal an answer
 * @property {Finding[]} unusual
 * @property {ShowcaseHead[]} turns
 * @property {Ablation | null} off
 * @property {OtherCases} [elsewhere]
 * @property {boolean} [explains] whether the server explains links
 * @property {Recipes | null} recipes
 * @property {Arrow[] | null} arrows
 */

/**
 * Heads that are switched off, and how much the attention of every other head has changed, as a share of the largest
 * change; null if it cannot change.
 *
 * @typedef {{ off: number[], moved: (number | null)[] }} Ablation
 */

// Index roles by head. Return {kinds: role → index among the colours, on: names of the corpora, byHead: head → its
// roles, strongest first}.
/** @type {(headRoles: Pick<HeadRoles, "kinds" | "on" | "measured" | "roles">) => Roles} */
export function indexByHead({ kinds, on, measured, roles }) {
  const byHead = new Map();
  for (const role of roles) byHead.set(role.head, [...(byHead.get(role.head) ?? []), role]);
  return { kinds, on, measured, byHead };
}

/** @type {(roles: Roles, role: string, colours: string[]) => string} */
const getColour = (roles, role, colours) => colours[roles.kinds[role] % colours.length];
/** @type {(list: Role[], kind: string) => boolean} */
const hasKind = (list, kind) => list.some((role) => role.role === kind);

// Count the heads that have each kind of role.
/** @type {(roles: Roles) => [string, number][]} */
export function countKinds(roles) {
  const lists = [...roles.byHead.values()];
  const counts = Object.keys(roles.kinds).map((kind) => ({
    kind,
    n: lists.filter((list) => hasKind(list, kind)).length,
  }));
  return counts.filter(({ n }) => n).map(({ kind, n }) => [kind, n]);
}

// Make the glyph of a role; glyphs.css draws it.
/** @type {(name: string) => HTMLElement} */
const makeGlyph = (name) => make("b", { class: `glyph ${name}` });

// Draw the glyph of each of `count` heads: its first role, or the kind in the filter, grey if that kind does not show
// in this text. A small shape stands for each further kind, and an outline surrounds the heads of the kind in the
// filter. `placeOnHead` positions an element on a head.
/**
 * @type {(roles: Roles, count: number, kindFilter: string | null, placeOnHead: (box: HTMLElement, head: number) =>
 *   HTMLElement, colours: string[]) => HTMLElement[]}
 */
function drawBadges(roles, count, kindFilter, placeOnHead, colours) {
  const heads = Array.from({ length: count }, (_, head) => head).filter((head) => kindFilter || roles.byHead.has(head));
  return heads.map((head) => {
    const headRoles = roles.byHead.get(head) ?? [];
    const first = headRoles.find((role) => !kindFilter || role.role === kindFilter);
    const box = placeOnHead(make("b", { class: kindFilter && !first ? "badges off" : "badges" }), head);
    const kinds = [...new Set([...(first ? [first] : []), ...headRoles].map(({ role }) => role))];
    for (const kind of kinds) {
      const isActive = headRoles.some((role) => role.role === kind && role.active);
      const mark = kind === first?.role ? makeGlyph(first.glyph) : make("s", { class: kind });
      mark.classList.toggle("active", isActive);
      mark.style.setProperty("--colour", getColour(roles, kind, colours));
      box.append(mark);
    }
    if (kinds.length) box.setAttribute("aria-label", kinds.join(", "));
    if (kinds.length) box.setAttribute("role", "img");
    if (kindFilter && first) box.style.outline = `3px solid ${getColour(roles, kindFilter, colours)}`;
    return box;
  });
}

// Draw the legend of roles: the glyph of each kind, and the small shape that represents it beside another glyph.
/**
 * @type {(box: HTMLElement, roles: Roles, kindFilter: string | null, colours: string[], choose: (kind: string) =>
 *   void) => void}
 */
function drawKinds(box, roles, kindFilter, colours, choose) {
  const index = [...box.children].findIndex((button) => button.matches(":focus"));
  box.replaceChildren(
    ...countKinds(roles).map(([kind, n]) => {
      const button = make(
        "button",
        {
          type: "button",
          "aria-pressed": String(kind === kindFilter),
          title: `Show heads with the role ${kind}: ${n}, measured on ${roles.on.join(", ")}, not on this sentence`,
          onclick: () => choose(kind),
        },
        makeGlyph(kind === "position" ? "previous" : kind),
        ` ${kind}`,
        make("s", { class: kind }),
      );
      button.style.setProperty("--colour", getColour(roles, kind, colours));
      return button;
    }),
  );
  const focusedButton = /** @type {HTMLElement | undefined} */ (box.children[index]);
  focusedButton?.focus();
  setTabStop(box, focusedButton);
}

/** @type {(list: Role[]) => string} */
export const describeRoles = (list) => list.map((role) => `Known for ${role.name}, ${role.standing}. `).join("");

// ---- The switch and the filter ------------------------------------------------------------------------------

// A switch that shows or hides roles.
export class RoleSwitch {
  #checkbox = make("input", { type: "checkbox", onchange: () => this.#toggleRoles() });
  box = make(
    "label",
    {
      class: "known",
      title: "Mark each head with the role it has on annotated corpora, as on the Roles page",
    },
    this.#checkbox,
    "Label roles",
  );
  legend = make(
    "span",
    { class: "signs soft" },
    make("b", { class: "glyph syntax" }),
    "not here",
    make("s", { class: "syntax" }),
    "another role",
  );
  unmeasured = make("span", { class: "known soft" }, "Roles not measured yet.");
  kinds = make("div", { class: "kinds", role: "toolbar", "aria-label": "Heads with a role" });
  #stores;
  #redraw;

  /** @param {Stores} stores @param {() => void} redraw */
  constructor(stores, redraw) {
    this.#stores = stores;
    this.#redraw = redraw;
    const onclick = () => stores.stage.send("measure", {});
    enableRoving(this.kinds);
    this.unmeasured.append(make("button", { type: "button", class: "quiet", onclick }, "Measure them"));
  }

  #toggleRoles() {
    this.#stores.stage.change({ roles: this.#checkbox.checked });
  }

  // Draw the switch, the legend and the filter. Return the marks for the grid; [] while roles are hidden.
  /** @type {(placeOnHead: (box: HTMLElement, head: number) => HTMLElement) => HTMLElement[]} */
  draw(placeOnHead) {
    const { data, stage, heads, look, isStandalone } = this.#stores;
    const { reading, roles } = data;
    this.unmeasured.hidden = roles.measured || isStandalone;
    this.box.hidden = !roles.byHead.size;
    this.#checkbox.checked = stage.view.roles;
    this.kinds.hidden = this.legend.hidden = this.box.hidden || !stage.view.roles;
    if (this.kinds.hidden) return [];
    drawKinds(this.kinds, roles, heads.kindFilter, look.heads, (kind) => {
      heads.kindFilter = heads.kindFilter === kind ? null : kind;
      this.#redraw();
    });
    return drawBadges(roles, reading.layers * reading.heads, heads.kindFilter, placeOnHead, look.heads);
  }
}

// ---- The roles of one head ----------------------------------------------------------------------------------

// Short labels that link to the head's card.
export class Chips {
  box = make("div", { class: "chips" });
  #name;
  #stores;
  #drawnKey = ""; // of the labels

  /** @param {string} name @param {Stores} stores */
  constructor(name, stores) {
    this.#name = name;
    this.#stores = stores;
  }

  // Draw the labels. A label that stays keeps the keyboard focus.
  /** @type {(head: number) => void} */
  draw(head) {
    const list = this.#stores.heads.roles(head);
    const key = JSON.stringify([list, this.#stores.look.theme]);
    if (this.#drawnKey === key) return;
    this.#drawnKey = key;
    this.box.replaceChildren(...list.map((role, i) => this.#makeChip(role, `${this.#name}_${i}`)));
  }

  // Make a label. Its explanation, with the tag of the relation, opens on hover, keyboard focus or the first tap.
  /** @type {(role: Role, id: string) => HTMLElement} */
  #makeChip(role, id) {
    const { data, stage, look, isStandalone } = this.#stores;
    const hint = isStandalone ? [] : [make("i", {}, " Tap again for its card.")];
    const tip = make("span", { class: "tip", role: "tooltip", id }, role.words, ...hint);
    const box = make("span", { class: "chip" });
    let isTouch = false;
    const button = make(
      "button",
      {
        type: "button",
        class: role.active ? "active" : "",
        "aria-describedby": id,
        onpointerdown: (/** @type {PointerEvent} */ event) => (isTouch = event.pointerType === "touch"),
        onclick: () => {
          if (isStandalone)
            box.classList.toggle("open"); // there are no cards
          else if (isTouch && !box.classList.contains("open")) box.classList.add("open");
          else stage.send("card", formatHead(data.reading, role.head));
        },
        onblur: () => box.classList.remove("open", "shut"),
      },
      make("s", { class: role.active ? "active" : "" }),
      make("b", {}, role.name.replace(/ \(.*/, "")),
      make("span", { class: "soft" }, role.standing),
    );
    closeOnEscape(
      button,
      button,
      () => !box.classList.contains("shut"),
      () => (box.className = "chip shut"),
    );
    box.onpointerleave = () => box.classList.remove("shut");
    box.append(button, tip);
    box.style.setProperty("--colour", getColour(data.roles, role.role, look.heads));
    return box;
  }
}
