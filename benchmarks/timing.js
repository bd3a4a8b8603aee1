// Runs before every measured page. All times are milliseconds of performance.now(), since navigation start.
window.bench = (() => {
  const nextFrame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  const nextTask = () =>
    new Promise((resolve) => {
      const channel = new MessageChannel();
      channel.port1.onmessage = () => resolve(performance.now());
      channel.port2.postMessage(0);
    });
  const bench = {};

  // Resolves when the frame with the current content of the page has been produced: when the second frame begins.
  bench.painted = async () => {
    await nextFrame();
    await nextFrame();
    return performance.now();
  };

  // Resolves with the time when the browser presents everything drawn so far, including rasterising and compositing:
  // a word is added to the page in the same task, and the browser reports when it has shown it.
  bench.presented = () =>
    new Promise((resolve) => {
      const name = `bench-${(bench.marks = (bench.marks ?? 0) + 1)}`;
      new PerformanceObserver((list, observer) => {
        const entry = list.getEntries().find((candidate) => candidate.identifier === name);
        if (!entry) return;
        observer.disconnect();
        mark.remove();
        resolve(entry.renderTime);
      }).observe({ type: "element", buffered: true });
      const mark = document.createElement("p");
      mark.setAttribute("elementtiming", name);
      mark.textContent = name;
      mark.style.cssText = "position:fixed; left:2px; bottom:0; margin:0; font:8px sans-serif; z-index:9999999";
      document.body.append(mark);
    });

  // The page calls `reportDrawn`; `shown` then resolves with the times since navigation, or since `drawAgain` began.
  let resolveShown;
  bench.shown = new Promise((resolve) => {
    resolveShown = resolve;
  });
  bench.reportDrawn = async () => {
    const { began = 0, entered, arrived } = bench;
    const drawn = performance.now();
    const [presented, painted] = await Promise.all([bench.presented(), bench.painted()]);
    const times = { arrived, entered, drawn, painted, presented };
    for (const [name, time] of Object.entries(times)) times[name] = time === undefined ? null : time - began;
    resolveShown(times);
  };

  // Draw new data in an open page, and resolve with the times as `shown` does.
  bench.drawAgain = (draw) => {
    bench.shown = new Promise((resolve) => {
      resolveShown = resolve;
    });
    bench.began = performance.now();
    draw();
    return bench.shown;
  };

  // Return the time of an action in one frame: its handlers, style, layout and paint, without waiting for the screen.
  bench.measureCost = async (act) => {
    await nextFrame();
    const began = performance.now();
    act();
    return (await nextTask()) - began;
  };

  // Record the same time for real pointer moves, which Chromium delivers at the beginning of a frame.
  bench.hovers = [];
  bench.watchHover = () => {
    let began = 0;
    const start = () => {
      if (began) return;
      began = performance.now();
      requestAnimationFrame(async () => {
        const frameStart = performance.now();
        bench.hovers.push((await nextTask()) - began);
        bench.waits = [...(bench.waits ?? []), frameStart - began];
        began = 0;
      });
    };
    for (const type of ["pointerover", "pointerout", "pointermove", "mouseover", "mouseout", "mousemove"]) {
      window.addEventListener(type, start, true);
    }
  };
  return bench;
})();
