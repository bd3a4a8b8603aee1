// Store the server's answers about the links of heads. The components of a page share one store: the explorer asks,
// and another component sends its questions.

/**
 * Why the links of a head are strong, and what its keys write. `codes` [query, key]: the number of a group, from 1,
 * plus 16 times that of a second one; `words` of each key. Either is null if the model cannot tell.
 *
 * @typedef {{ groups: string[], codes: Uint8Array | null, words: string[][] | null }} Reasons
 */

/** @typedef {(question: { key: string, head: string }) => void} Ask asks about a head of a reading */

export const CHANGED = "mha-reasons"; // the event on the document when an answer has arrived, or can be asked for
const AGAIN = 4000; // milliseconds after which an unanswered question is asked again: a click may have ended its run
const WAIT = 50; // further milliseconds, because timers may be early
const TRIES = 5; // how often it is asked while nobody points at anything else
const MOST = 100; // maximum number of stored answers

class ReasonStore {
  #ask = /** @type {Ask | null} */ (null); // null while nothing can be asked
  #answers = /** @type {Map<string, Reasons>} */ (new Map());
  #asked = { name: "", at: 0, tries: 0 };

  /** @type {(ask: Ask) => void} */
  open(ask) {
    this.#ask = ask;
    document.dispatchEvent(new Event(CHANGED));
  }

  /** @type {(ask: Ask) => void} */
  close(ask) {
    if (this.#ask === ask) this.#ask = null;
  }

  // Return the reasons of a head; null, and ask the server, if they are not here.
  /** @type {(key: string, head: string, now?: number) => Reasons | null} */
  find(key, head, now = performance.now()) {
    const name = `${key} ${head}`;
    const answer = this.#answers.get(name);
    if (answer) return answer;
    const isAsked = this.#asked.name === name && now < this.#asked.at + AGAIN;
    if (this.#ask && !isAsked) {
      const tries = this.#asked.name === name ? this.#asked.tries + 1 : 1;
      this.#asked = { name, at: now, tries };
      this.#ask({ key, head });
      if (tries < TRIES) setTimeout(() => this.#remind(name), AGAIN + WAIT);
    }
    return null;
  }

  // Let whoever still waits for an answer ask again.
  /** @type {(name: string) => void} */
  #remind(name) {
    if (this.#asked.name === name && !this.#answers.has(name)) document.dispatchEvent(new Event(CHANGED));
  }

  /** @type {(key: string, head: string, reasons: Reasons) => void} */
  put(key, head, reasons) {
    const name = `${key} ${head}`;
    if (this.#answers.has(name)) return;
    this.#answers.set(name, reasons);
    const [oldest] = this.#answers.keys();
    if (this.#answers.size > MOST) this.#answers.delete(oldest);
    document.dispatchEvent(new Event(CHANGED));
  }
}

const page = /** @type {{ mhaVizReasons?: ReasonStore }} */ (globalThis);

// Return the store of the page.
/** @type {() => ReasonStore} */
export const openReasonStore = () => (page.mhaVizReasons ??= new ReasonStore());

/** @type {(data: { groups: string[], codes: string | null, words: string[][] | null }) => Reasons} */
export const parseReasons = ({ groups, codes, words }) => ({
  groups,
  codes: codes === null ? null : Uint8Array.from(atob(codes), (byte) => byte.charCodeAt(0)),
  words,
});
