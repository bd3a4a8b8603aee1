// The roles of one head as short labels that link to its card.
import { closedByEscape, make } from "../dom.js";
import { headName } from "../reading.js";
import { colourOf } from "./roles.js";
/** @import { Stores } from "./explorer.js" */
/** @import { Role } from "./roles.js" */

export class Chips {
  box = make("div", { class: "chips" });
  #name;
  #stores;
  #drawn = ""; // the roles that the labels are of

  /** @param {string} name @param {Stores} stores */
  constructor(name, stores) {
    this.#name = name;
    this.#stores = stores;
  }

  // Labels that stay keep the keyboard focus.
  /** @type {(head: number) => void} */
  draw(head) {
    const list = this.#stores.heads.roles(head);
    const key = JSON.stringify([list, this.#stores.look.theme]);
    if (this.#drawn === key) return;
    this.#drawn = key;
    this.box.replaceChildren(...list.map((role, i) => this.#chipOf(role, `${this.#name}_${i}`)));
  }

  // A label with an explanation that also has the tag of a relation: by pointer, keyboard focus or a first tap.
  /** @type {(role: Role, id: string) => HTMLElement} */
  #chipOf(role, id) {
    const { read, stage, look, isAlone } = this.#stores;
    const hint = isAlone ? [] : [make("i", {}, " Tap again for its card.")];
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
          if (isAlone)
            box.classList.toggle("open"); // there are no cards
          else if (isTouch && !box.classList.contains("open")) box.classList.add("open");
          else stage.send("card", headName(read.reading, role.head));
        },
        onblur: () => box.classList.remove("open", "shut"),
      },
      make("s", { class: role.active ? "active" : "" }),
      make("b", {}, role.name.replace(/ \(.*/, "")),
      make("span", { class: "soft" }, role.standing),
    );
    closedByEscape(
      button,
      button,
      () => !box.classList.contains("shut"),
      () => (box.className = "chip shut"),
    );
    box.onpointerleave = () => box.classList.remove("shut");
    box.append(button, tip);
    box.style.setProperty("--colour", colourOf(read.roles, role.role, look.heads));
    return box;
  }
}
