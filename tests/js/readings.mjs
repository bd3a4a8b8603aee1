// Make readings and packets for tests, with the fields and the byte layout of figures/layout/packet.py.

// Make a reading of "[CLS] did|n't it [SEP]" and, if `pair` is set, "so [SEP]".
export function reading({ layers = 2, heads = 3, pair = false, ...more } = {}) {
  const tokens = ["[CLS]", "did", "n't", "it", "[SEP]", ...(pair ? ["so", "[SEP]"] : [])];
  const n = tokens.length;
  const data = {
    key: "k",
    layers,
    heads,
    n,
    tokens,
    segments: tokens.map((_, i) => (i > 4 ? 1 : 0)),
    special: tokens.map((t) => (t.startsWith("[") ? 1 : 0)),
    groups: [[0], [1, 2], [3], [4], ...(pair ? [[5], [6]] : [])],
    words: ["[CLS]", "didn't", "it", "[SEP]", ...(pair ? ["so", "[SEP]"] : [])],
    full: Array.from({ length: layers * heads }, (_, i) => i),
    start: { head: "L0H0", pin: null },
    matrices: new Map(),
    ...more,
  };
  for (const head of data.full) data.matrices.set(head, matrix(n, head));
  return data;
}

// Make a matrix of rows that sum to 1: weights proportional to 1, 2, 3 …, rotated by `shift`.
export function matrix(n, shift = 0) {
  const cells = new Float32Array(n * n);
  const total = (n * (n + 1)) / 2;
  for (let q = 0; q < n; q++) for (let k = 0; k < n; k++) cells[q * n + k] = (1 + ((k + q + shift) % n)) / total;
  return cells;
}

// Return the bytes of a packet with this header and body.
export function makePacket(header, ...parts) {
  let text = JSON.stringify(header);
  while (new TextEncoder().encode(text).length % 4) text += " ";
  const headerBytes = new TextEncoder().encode(text);
  const chunks = [
    new Uint8Array(new Uint32Array([headerBytes.length]).buffer),
    headerBytes,
    ...parts.map((p) => new Uint8Array(p.buffer)),
  ];
  const bytes = new Uint8Array(chunks.reduce((sum, p) => sum + p.length, 0));
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.length;
  }
  return bytes;
}

// Return a generator of reproducible random numbers in [0, 1).
export function makeRandom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}
