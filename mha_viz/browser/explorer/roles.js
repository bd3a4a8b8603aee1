// What heads are known for, measured over a corpus: marks in the grid, a filter by kind, and words beside a head.
import { stopAt } from "../controls.js";
import { make } from "../dom.js";
/** @import { Arrow } from "./arrows.js" */
/** @import { Finding } from "./findings.js" */
/** @import { Recipes } from "./recipe.js" */

/**
 * @typedef {object} Role
 * @property {number} head
 * @property {string} role
 * @property {string} glyph
 * @property {string} name
 * @property {string} words
 * @property {string} standing
 * @property {boolean} active
 */

/** @typedef {{ kinds: Record<string, number>, on: string[], measured: boolean, ofHead: Map<number, Role[]> }} Roles */

/**
 * What the server knows of the roles of heads; the step of the tour that the page says, and how often the search has
 * opened a head.
 *
 * @typedef {object} HeadRoles
 * @property {Record<string, number>} kinds
 * @property {string[]} on
 * @property {boolean} measured
 * @property {Role[]} roles
 * @property {string} tour
 * @property {number} opened
 * @property {boolean} quiet
 * @property {Finding[]} unusual
 * @property {Pick<Finding, "head" | "pin">[]} turns
 * @property {Mode | null} off
 * @property {Recipes | null} recipes
 * @property {Arrow[] | null} arrows
 */

/**
 * Heads that are switched off, and how far every other one has moved, as a share of the largest; null: it cannot have.
 *
 * @typedef {{ off: number[], moved: (number | null)[] }} Mode
 */

// {kinds: role → index among the colours, on: the corpora in words, ofHead: head → its roles, the strongest first}.
/** @type {(headRoles: Pick<HeadRoles, "kinds" | "on" | "measured" | "roles">) => Roles} */
export function byHead({ kinds, on, measured, roles }) {
  const ofHead = new Map();
  for (const role of roles) ofHead.set(role.head, [...(ofHead.get(role.head) ?? []), role]);
  return { kinds, on, measured, ofHead };
}

/** @type {(roles: Roles, role: string, colours: string[]) => string} */
export const colourOf = (roles, role, colours) => colours[roles.kinds[role] % colours.length];
/** @type {(list: Role[], kind: string) => boolean} */
const has = (list, kind) => list.some((role) => role.role === kind);

// How many heads have each kind of role.
/** @type {(roles: Roles) => [string, number][]} */
export function counted(roles) {
  const lists = [...roles.ofHead.values()];
  const counts = Object.keys(roles.kinds).map((kind) => ({ kind, n: lists.filter((list) => has(list, kind)).length }));
  return counts.filter(({ n }) => n).map(({ kind, n }) => [kind, n]);
}

// A picture of what a head does, which glyphs.css draws.
/** @type {(name: string) => HTMLElement} */
const glyphOf = (name) => make("b", { class: `glyph ${name}` });

// The glyph of each of `count` heads, that of its first role or of the kind in the filter, grey if that kind does not
// show in this text; a small shape for each further kind; and an outline around the heads of the kind in the filter.
// `place` positions an element on a head.
/**
 * @type {(roles: Roles, count: number, sought: string | null, place: (box: HTMLElement, head: number) =>
 *   HTMLElement, colours: string[]) => HTMLElement[]}
 */
export function drawBadges(roles, count, sought, place, colours) {
  const drawn = Array.from({ length: count }, (_, head) => head).filter((head) => sought || roles.ofHead.has(head));
  return drawn.map((head) => {
    const list = roles.ofHead.get(head) ?? [];
    const first = list.find((role) => !sought || role.role === sought);
    const box = place(make("b", { class: sought && !first ? "badges off" : "badges" }), head);
    const kinds = [...new Set([...(first ? [first] : []), ...list].map(({ role }) => role))];
    for (const kind of kinds) {
      const isActive = list.some((role) => role.role === kind && role.active);
      const mark = kind === first?.role ? glyphOf(first.glyph) : make("s", { class: kind });
      mark.classList.toggle("active", isActive);
      mark.style.setProperty("--colour", colourOf(roles, kind, colours));
      box.append(mark);
    }
    if (kinds.length) box.setAttribute("aria-label", kinds.join(", "));
    if (kinds.length) box.setAttribute("role", "img");
    if (sought && first) box.style.outline = `3px solid ${colourOf(roles, sought, colours)}`;
    return box;
  });
}

// The kinds of roles, each with its glyph and with its shape, which stands for it beside another.
/**
 * @type {(box: HTMLElement, roles: Roles, sought: string | null, colours: string[], choose: (kind: string) =>
 *   void) => void}
 */
export function drawKinds(box, roles, sought, colours, choose) {
  const at = [...box.children].findIndex((button) => button.matches(":focus"));
  box.replaceChildren(
    ...counted(roles).map(([kind, n]) => {
      const button = make(
        "button",
        {
          type: "button",
          "aria-pressed": String(kind === sought),
          title: `Show the heads measured as ${kind}, ${n}, on ${roles.on.join(", ")}, not on this sentence`,
          onclick: () => choose(kind),
        },
        glyphOf(kind === "position" ? "previous" : kind),
        ` ${kind}`,
        make("s", { class: kind }),
      );
      button.style.setProperty("--colour", colourOf(roles, kind, colours));
      return button;
    }),
  );
  const again = /** @type {HTMLElement | undefined} */ (box.children[at]);
  again?.focus();
  stopAt(box, again);
}

/** @type {(list: Role[]) => string} */
export const spoken = (list) => list.map((role) => `Known for ${role.name}, ${role.standing}. `).join("");
