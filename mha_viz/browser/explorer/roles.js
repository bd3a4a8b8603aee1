// What heads are known for, measured over a corpus: marks in the grid, a filter by kind, and words beside a head.
import { make } from "../dom.js";
/** @import { Arrow } from "./arrows.js" */
/** @import { Finding } from "./findings.js" */
/** @import { Recipes } from "./recipe.js" */

/**
 * @typedef {object} Role
 * @property {number} head
 * @property {string} role
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

// One mark per kind of role in the corner of each of `count` heads, hollow if the role does not show in this text; and
// a veil over the heads without the kind in the filter. `place` positions an element on a head.
/**
 * @type {(roles: Roles, count: number, sought: string | null, place: (box: HTMLElement, head: number) =>
 *   HTMLElement, colours: string[]) => HTMLElement[]}
 */
export function drawBadges(roles, count, sought, place, colours) {
  const drawn = Array.from({ length: count }, (_, head) => head).filter((head) => sought || roles.ofHead.has(head));
  return drawn.map((head) => {
    const list = roles.ofHead.get(head) ?? [];
    const box = place(make("b", { class: sought && !has(list, sought) ? "badges off" : "badges" }), head);
    for (const [kind] of counted(roles).filter(([name]) => has(list, name))) {
      const badge = make("s", { class: list.some((role) => role.role === kind && role.active) ? "active" : "" });
      badge.style.setProperty("--colour", colourOf(roles, kind, colours));
      box.append(badge);
    }
    if (sought && has(list, sought)) box.style.outline = `2px solid ${colourOf(roles, sought, colours)}`;
    return box;
  });
}

/**
 * @type {(box: HTMLElement, roles: Roles, sought: string | null, colours: string[], choose: (kind: string) =>
 *   void) => void}
 */
export function drawKinds(box, roles, sought, colours, choose) {
  box.replaceChildren(
    ...counted(roles).map(([kind, n]) => {
      const button = make(
        "button",
        {
          type: "button",
          "aria-pressed": String(kind === sought),
          title: `Show the heads measured as ${kind}`,
          onclick: () => choose(kind),
        },
        make("s", { class: "active" }),
        ` ${kind} ${n}`,
      );
      button.style.setProperty("--colour", colourOf(roles, kind, colours));
      return button;
    }),
    make(
      "span",
      { class: "soft", title: roles.on.join(", ") },
      `Roles come from ${corpora(roles.on)}, not from this sentence.`,
    ),
  );
}

/** @type {(names: string[]) => string} */
const corpora = (names) => (names.length === 1 ? names[0] : `${names.length} annotated corpora`);

/** @type {(list: Role[]) => string} */
export const spoken = (list) => list.map((role) => `Known for ${role.name}, ${role.standing}. `).join("");
