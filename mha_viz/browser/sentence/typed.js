// A field in which a person types while the server reads: what was sent of it, and what the server last answered.

/** @type {(text: string) => string} */
const plain = (text) => text.toWellFormed().replaceAll("\0", "\ufffd");

/** @type {Map<string, { taken: string | undefined, value: string }>} */
const drafts = new Map(); // what was typed and not read yet; another page has other fields

export class TypedField {
  #sent = /** @type {string | null} */ (null); // what was last sent to be read and is not answered yet
  taken = /** @type {string | undefined} */ (undefined); // what the field held when the server last answered

  #name;

  /** @param {HTMLTextAreaElement} area @param {string} name by which the same field of another page is known */
  constructor(area, name = "") {
    this.area = area;
    this.#name = name;
  }

  // Remember what is typed, for the same field of another page.
  keep() {
    if (this.#name) drafts.set(this.#name, { taken: this.taken, value: this.area.value });
  }

  get value() {
    return this.area.value;
  }

  // The answer to what was sent from here leaves the field alone: the link may contain only its beginning, and the user
  // may still be typing. A text from elsewhere (an example, the Back button) replaces it.
  /** @type {(text: string) => void} */
  take(text) {
    const draft = drafts.get(this.#name);
    const sent = this.#sent;
    const answers = sent !== null && plain(sent).startsWith(text) && (text !== "" || sent === "");
    const isNew = this.taken === undefined;
    this.taken = answers ? sent : text;
    if (!answers) this.area.value = isNew && draft?.taken === text ? draft.value : text;
    if (!isNew && !answers) drafts.delete(this.#name); // another text has come
    this.#sent = null;
  }

  send() {
    drafts.delete(this.#name);
    this.#sent = this.area.value;
  }

  // Back, or Forward, before the answer to what was sent: it may never come, since for the server the text is the old
  // one.
  takeBack() {
    if (this.#sent === null) return;
    this.area.value = this.taken ?? "";
    this.#sent = null;
  }
}
