// A field in which a person types while the server reads: what was sent of it, and what the server last answered.

/** @type {(text: string) => string} */
const plain = (text) => text.toWellFormed().replaceAll("\0", "\ufffd");

export class TypedField {
  #sent = /** @type {string | null} */ (null); // what was last sent to be read and is not answered yet
  taken = /** @type {string | undefined} */ (undefined); // what the field held when the server last answered

  /** @param {HTMLTextAreaElement} area */
  constructor(area) {
    this.area = area;
  }

  get value() {
    return this.area.value;
  }

  // The answer to what was sent from here leaves the field alone: the link may contain only its beginning, and the user
  // may still be typing. A text from elsewhere (an example, the Back button) replaces it.
  /** @type {(text: string) => void} */
  take(text) {
    const sent = this.#sent;
    const answers = sent !== null && plain(sent).startsWith(text) && (text !== "" || sent === "");
    this.taken = answers ? sent : text;
    if (!answers) this.area.value = text;
    this.#sent = null;
  }

  send() {
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
