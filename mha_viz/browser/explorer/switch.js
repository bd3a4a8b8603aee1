// The controls for roles, which are shown on request: their switch, and the filter by kind.
import { roving } from "../controls.js";
import { make } from "../dom.js";
import { rememberRoles } from "../memory.js";
import { drawBadges, drawKinds } from "./roles.js";
/** @import { Stores } from "./explorer.js" */

export class RoleSwitch {
  #shown = make("input", { type: "checkbox", onchange: () => this.#turn() });
  box = make(
    "label",
    {
      class: "known",
      title: "What each head does over annotated corpora, as the glyphs of Roles",
    },
    this.#shown,
    "Known roles",
  );
  signs = make(
    "span",
    { class: "signs soft" },
    make("b", { class: "glyph syntax" }),
    "not here",
    make("s", { class: "syntax" }),
    "further role",
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
    roving(this.kinds);
    this.unmeasured.append(make("button", { type: "button", class: "quiet", onclick }, "Measure them"));
  }

  #turn() {
    rememberRoles(this.#shown.checked);
    this.#stores.stage.change({ roles: this.#shown.checked });
  }

  // Returns the marks for the grid, none while roles are not shown.
  /** @type {(place: (box: HTMLElement, head: number) => HTMLElement) => HTMLElement[]} */
  draw(place) {
    const { read, stage, heads, look, isAlone } = this.#stores;
    const { reading, roles } = read;
    this.unmeasured.hidden = roles.measured || isAlone;
    this.box.hidden = !roles.ofHead.size;
    this.#shown.checked = stage.view.roles;
    this.kinds.hidden = this.signs.hidden = this.box.hidden || !stage.view.roles;
    if (this.kinds.hidden) return [];
    drawKinds(this.kinds, roles, heads.sought, look.heads, (kind) => {
      heads.sought = heads.sought === kind ? null : kind;
      this.#redraw();
    });
    return drawBadges(roles, reading.layers * reading.heads, heads.sought, place, look.heads);
  }
}
