"""What is painted on canvases, noted by a page."""

from __future__ import annotations

# Of each canvas since it was last cleared: the place of its cells, and the middle of the small letters of each
# text, in pixels of the canvas.
NOTE = """() => {
  const pen = CanvasRenderingContext2D.prototype;
  const { clearRect, fillText, drawImage } = pen;
  pen.clearRect = function (...place) {
    this.canvas.painted = { texts: [] };
    return clearRect.apply(this, place);
  };
  pen.fillText = function (text, x, y, ...more) {
    const { actualBoundingBoxAscent: up, actualBoundingBoxDescent: down } = this.measureText("x");
    const turn = this.getTransform();
    const middle = turn.transformPoint({ x, y: y + (down - up) / 2 });
    this.canvas.painted?.texts.push({ text: text.slice(1, -1), upright: turn.b === 0, x: middle.x, y: middle.y });
    return fillText.call(this, text, x, y, ...more);
  };
  pen.drawImage = function (picture, x, y, width, height) {
    const [from, to] = [[x, y], [x + width, y + height]].map(([x, y]) => this.getTransform().transformPoint({ x, y }));
    if (this.canvas.painted) this.canvas.painted.cells = { from, to, n: picture.width };
    return drawImage.apply(this, arguments);
  };
}"""
