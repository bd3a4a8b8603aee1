// Store the server's answers about the links of heads. The components of a page share one store: the explorer asks
// questions, and another component sends them.

/**
 * Reasons for the links of a head, and the words that its keys write. `codes` [query, key]: the number of a group,
 * from 1, plus 16 times that of a second group; `words` [key]. Either is null if it is unknown for this model.
 *
 * @typedef {{ groups: string[], codes: Uint8Array | null, words: string[][] | null }} Reasons
 */

/** @typedef {(question: { key: string, head: string }) => void} Ask asks about a head of a reading */

export const CHANGE_EVENT = "mha-reasons"; // document event: an answer has arrived, or questions can now be asked
const RETRY_AFTER = 4000; // milliseconds before an unanswered question is asked again: a click may have ended its run
const TIMER_SLACK = 50; // milliseconds; timers may fire early
const MAX_TRIES = 5; // of the same question in a row
const MAX_ANSWERS = 100; // stored answers

class ReasonStore {
  #ask = /** @type {Ask | null} */ (null); // null while nothing can be asked
  #answers = /** @type {Map<string, Reasons>} */ (new Map());
  #lastQuestion = { name: "", askedAt: 0, tries: 0 };

  /** @type {(ask: Ask) => void} */
  open(ask) {
    this.#ask = ask;
    document.dispatchEvent(new Event(CHANGE_EVENT));
  }

  /** @type {(ask: Ask) => void} */
  close(ask) {
    if (this.#ask === ask) this.#ask = null;
  }

  // Return the stored reasons of a head. If there are none, ask the server and return null.
  /** @type {(key: string, head: string, now?: number) => Reasons | null} */
  find(key, head, now = performance.now()) {
    const name = `${key} ${head}`;
    const answer = this.#answers.get(name);
    if (answer) return answer;
    const isAsked = this.#lastQuestion.name === name && now < this.#lastQuestion.askedAt + RETRY_AFTER;
    if (this.#ask && !isAsked) {
      const tries = this.#lastQuestion.name === name ? this.#lastQuestion.tries + 1 : 1;
      this.#lastQuestion = { name, askedAt: now, tries };
      this.#ask({ key, head });
      if (tries < MAX_TRIES) setTimeout(() => this.#announceRetry(name), RETRY_AFTER + TIMER_SLACK);
    }
    return null;
  }

  // If a question is still unanswered, dispatch the event so that it is asked again.
  /** @type {(name: string) => void} */
  #announceRetry(name) {
    if (this.#lastQuestion.name === name && !this.#answers.has(name)) document.dispatchEvent(new Event(CHANGE_EVENT));
  }

  /** @type {(key: string, head: string, reasons: Reasons) => void} */
  put(key, head, reasons) {
    const name = `${key} ${head}`;
    if (this.#answers.has(name)) return;
    this.#answers.set(name, reasons);
    const [oldest] = this.#answers.keys();
    if (this.#answers.size > MAX_ANSWERS) this.#answers.delete(oldest);
    document.dispatchEvent(new Event(CHANGE_EVENT));
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
