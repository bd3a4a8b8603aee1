// Runs before Streamlit's page: reports when a new picture is complete, for this app or the Plotly app.
(() => {
  const bench = window.bench;
  const drawings = ["grid", "links", "heat"];
  const finishedDrawings = new Set(); // since the current wait began
  let resolveWait = null; // null while nothing waits
  let picture = null; // the source of the last heatmap in the Plotly app

  const wait = () =>
    new Promise((resolve) => {
      finishedDrawings.clear();
      resolveWait = resolve;
    });
  bench.first = wait();
  bench.expectPicture = () => {
    bench.next = wait();
  };

  function reportComplete() {
    const resolve = resolveWait;
    resolveWait = null;
    queueMicrotask(async () => {
      // all drawing happens in one task, after which this runs
      const { began = 0, sent = null, heard = null } = bench;
      const drawn = performance.now();
      const presented = await bench.presented();
      resolve({ took: presented - began, sent: sent - began, heard: heard - began, drawn: drawn - began });
    });
  }

  for (const name of ["clearRect", "putImageData", "drawImage"]) {
    const original = CanvasRenderingContext2D.prototype[name];
    CanvasRenderingContext2D.prototype[name] = function (...args) {
      if (resolveWait) {
        const drawing = drawings.find((name) => this.canvas.closest(`.${name}`));
        if (drawing) finishedDrawings.add(drawing);
        if (finishedDrawings.size === drawings.length) reportComplete();
      }
      return original.apply(this, args);
    };
  }

  new MutationObserver(() => {
    const image = document.querySelector(".js-plotly-plot .heatmaplayer image");
    const source = image && (image.getAttribute("href") || image.getAttribute("xlink:href"));
    if (!resolveWait || !source || source === picture) return;
    picture = source;
    reportComplete();
  }).observe(document, { subtree: true, childList: true, attributes: true, attributeFilter: ["href", "xlink:href"] });

  // Times start at the key or click itself.
  window.addEventListener(
    "keydown",
    (event) => {
      if (event.key === "Enter") bench.began = event.timeStamp;
    },
    true,
  );
  window.addEventListener(
    "click",
    (event) => {
      bench.began = event.timeStamp;
      bench.opened = (async () => {
        // the handlers run now; then the frame is produced
        await null;
        return (await bench.presented()) - event.timeStamp;
      })();
    },
    true,
  );

  // Record when the request was sent, and when the last answer before the picture arrived.
  window.WebSocket = class extends WebSocket {
    constructor(...args) {
      super(...args);
      this.addEventListener("message", () => {
        bench.heard = performance.now();
      });
    }
    send(...args) {
      bench.sent = performance.now();
      super.send(...args);
    }
  };
})();
