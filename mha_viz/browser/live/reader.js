// The worker of a page that works without a server. It fetches the model when the user begins to type, and answers each
// sentence with a reading. It contacts no other host, and sends no part of a sentence anywhere.
import { splitCodePoints, strip } from "./characters.js";
import { groupTokens } from "./grouping.js";
import { MEASURES } from "./measures.js";
import { Reader } from "./tokenizer.js";
/** @import { Metric, Reading } from "../reading.js" */
/** @import { Rules } from "./tokenizer.js" */

/**
 * The model as data (figures/live.py): the data common to all readings, and the tokenizer.
 *
 * @typedef {object} Model
 * @property {Pick<Reading, "model" | "cited" | "layers" | "heads" | "together" | "themes"> & {
 *   metrics: (Metric & { name: string })[] }} common
 * @property {number} bytes of the weights
 * @property {string[]} parts the files of the weights, in order
 * @property {object} tokenizer
 * @property {Rules} rules
 */

/** @typedef {{ common: Model["common"], reader: Reader, session: any, ort: any, limit: number }} LoadedModel */

/**
 * A message from the worker: how much of the model has been fetched; or a reading with its weights, [layer, head,
 * query, key], and a note if the text was cut; or the reason why there is none.
 *
 * @typedef {{ loaded?: number, total?: number, reading?: any, weights?: Float32Array, note?: string, refusal?: string,
 *   failed?: boolean, large?: boolean }}
 *   Message
 */

/** @type {(message: Message, transfer?: Transferable[]) => void} */
const send = (message, transfer = []) => /** @type {any} */ (self).postMessage(message, transfer);
// Filled in when the page is written (figures/files/live.py): the addresses of files, which change with their content.
const FILES = /** @type {Record<string, string>} */ ({});
/** @type {(name: string) => string} */
const resolveAddress = (name) => new URL(FILES[name], self.location.href).href;

const RUNTIME = "ort-wasm-simd-threaded";
// Further optimization doubles the start-up time without speeding up runs.
const WASM = { executionProviders: ["wasm"], graphOptimizationLevel: "basic" };

/** @type {Promise<LoadedModel> | null} */
let modelPromise = null;

/** @type {(name: string) => Promise<Response>} */
async function fetchFile(name) {
  const response = await fetch(resolveAddress(name));
  if (!response.ok) throw new Error(`${name}: ${response.status}`);
  return response;
}

// Fetch consecutive files into one array, reporting progress on the way.
/** @type {(names: string[], total: number) => Promise<Uint8Array>} */
async function fetchWeights(names, total) {
  const bytes = new Uint8Array(total);
  let offset = 0;
  for (const name of names) {
    const stream = /** @type {ReadableStream<Uint8Array>} */ ((await fetchFile(name)).body).getReader();
    for (let part = await stream.read(); !part.done; part = await stream.read()) {
      bytes.set(part.value, offset);
      offset += part.value.length;
      send({ loaded: offset, total });
    }
  }
  return bytes;
}

/** @type {() => Promise<LoadedModel>} */
async function load() {
  const [ort, { Tokenizer }, model] = await Promise.all([
    import(resolveAddress("ort.wasm.min.mjs")),
    import(resolveAddress("tokenizers.min.mjs")),
    fetchFile("model.json").then((response) => /** @type {Promise<Model>} */ (response.json())),
  ]);
  ort.env.wasm.numThreads = 1; // more threads need headers that a static host may not send
  ort.env.wasm.wasmPaths = { mjs: resolveAddress(`${RUNTIME}.mjs`), wasm: resolveAddress(`${RUNTIME}.wasm`) };
  const warmUp = ort.InferenceSession.create(new Uint8Array(), WASM).catch(() => {}); // compile while the model loads
  const bytes = await fetchWeights(model.parts, model.bytes);
  await warmUp;
  const session = await ort.InferenceSession.create(bytes, WASM);
  const { common, rules } = model;
  return { common, reader: new Reader(new Tokenizer(model.tokenizer, {}), rules), session, ort, limit: rules.limit };
}

/** @type {(text: string, loaded: LoadedModel) => Promise<Message>} */
async function read(text, { common, reader, session, ort, limit }) {
  const characters = splitCodePoints(text);
  if (!strip(characters).length) return { refusal: "Type a sentence first." };
  const { pieces, count } = reader.read(characters);
  if (!pieces.some(({ word, end }) => word !== null || end)) {
    return { refusal: "The model’s tokenizer drops all of this text. Type at least one word." };
  }
  const n = pieces.length;
  const ids = new ort.Tensor(
    "int64",
    BigInt64Array.from(pieces, ({ id }) => BigInt(id)),
    [1, n],
  );
  const { attention } = await session.run({ ids });
  const { marks, ...axis } = groupTokens(characters, pieces);
  const keys = { n, special: axis.special, marks };
  const heads = Array.from({ length: common.layers * common.heads }, (_, head) => head);
  const matrices = heads.map((head) => attention.data.subarray(head * n * n, (head + 1) * n * n));
  const metrics = common.metrics
    .filter(({ name }) => Object.hasOwn(MEASURES, name)) // skip measures that only Python has
    .map((metric) => ({ ...metric, values: matrices.map((matrix) => MEASURES[metric.name](matrix, keys)) }));
  const isCut = count > n;
  const note = isCut ? `${common.model} reads at most ${limit} tokens; the rest of the text is cut.` : "";
  return { reading: { ...common, ...axis, key: text, of: text, full: heads, metrics }, weights: attention.data, note };
}

// Answer a message; null means that the user has begun to type.
/** @type {(event: MessageEvent<string | null>) => Promise<void>} */
async function answer({ data }) {
  try {
    modelPromise ??= load();
    const loaded = await modelPromise;
    if (data === null) return;
    const message = await read(data, loaded);
    send(message, message.weights ? [message.weights.buffer] : []);
  } catch (error) {
    console.error(error);
    const isLarge = error instanceof RangeError || /memory|bad_alloc|allocat/i.test(String(error));
    send({ failed: true, large: isLarge });
  }
}

let queue = Promise.resolve(); // one sentence at a time
self.addEventListener("message", (event) => {
  queue = queue.then(() => answer(event));
});
