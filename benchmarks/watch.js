// Runs before the pages of Streamlit: reports when a new picture is complete, for this app or the Plotly app.
(() => {
  const bench = window.bench;
  const drawings = ["grid", "links", "heat"];
  const fresh = new Set(); // pictures drawn since the current wait began
  let waiting = null;
  let picture = null; // the source of the last heatmap in the Plotly app

  const wait = () =>
    new Promise((done) => {
      fresh.clear();
      waiting = done;
    });
  bench.first = wait();
  bench.again = () => {
    bench.next = wait();
  };

  function whole() {
    const done = waiting;
    waiting = null;
    queueMicrotask(async () => {
      // all drawing happens in one task, after which this runs
      const { began = 0, sent = null, heard = null } = bench;
      const drawn = performance.now();
      const presented = await bench.presented();
      done({ took: presented - began, sent: sent - began, heard: heard - began, drawn: drawn - began });
    });
  }

  for (const name of ["clearRect", "putImageData", "drawImage"]) {
    const plain = CanvasRenderingContext2D.prototype[name];
    CanvasRenderingContext2D.prototype[name] = function (...given) {
      if (waiting) {
        const around = drawings.find((one) => this.canvas.closest(`.${one}`));
        if (around) fresh.add(around);
        if (fresh.size === drawings.length) whole();
      }
      return plain.apply(this, given);
    };
  }

  new MutationObserver(() => {
    const image = document.querySelector(".js-plotly-plot .heatmaplayer image");
    const source = image && (image.getAttribute("href") || image.getAttribute("xlink:href"));
    if (!waiting || !source || source === picture) return;
    picture = source;
    whole();
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
        // its handlers run now, then the frame is made
        await null;
        return (await bench.presented()) - event.timeStamp;
      })();
    },
    true,
  );

  // When the request was sent to the server, and when its last answer before the picture arrived.
  window.WebSocket = class extends WebSocket {
    constructor(...given) {
      super(...given);
      this.addEventListener("message", () => {
        bench.heard = performance.now();
      });
    }
    send(...given) {
      bench.sent = performance.now();
      super.send(...given);
    }
  };
})();
