// Mouse, touch and keys: what they do to the range that is shown, and which bar they mean.
const zoom_step = 1.6;

class Pointer {
  constructor(canvas, timeline) {
    this.timeline = timeline;
    this.canvas = canvas;
    this.down = new Map();  // pointers that touch, by id: where
    this.moved = false;
    canvas.addEventListener('wheel', (event) => this.wheel(event), {passive: false});
    canvas.addEventListener('pointerdown', (event) => this.press(event));
    canvas.addEventListener('pointermove', (event) => this.move(event));
    canvas.addEventListener('pointerup', (event) => this.release(event));
    canvas.addEventListener('pointercancel', (event) => this.down.delete(event.pointerId));
    canvas.addEventListener('pointerleave', () => this.timeline.hover(null));
    canvas.addEventListener('keydown', (event) => this.key(event));
  }

  wheel(event) {
    event.preventDefault();
    const {timeline} = this;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      timeline.pan((event.deltaX || event.deltaY) * timeline.painter.pixel);
    } else {
      timeline.zoom(Math.exp(-Math.max(-200, Math.min(200, event.deltaY)) / 300), timeline.painter.time_at(event.offsetX));
    }
  }

  press(event) {
    this.down.set(event.pointerId, {x: event.offsetX, y: event.offsetY});
    this.canvas.setPointerCapture(event.pointerId);
    this.moved = this.down.size > 1;
  }

  move(event) {
    const before = this.down.get(event.pointerId);
    if (!before) return this.timeline.hover({x: event.offsetX, y: event.offsetY});
    const now = {x: event.offsetX, y: event.offsetY};
    const {timeline} = this;
    const {painter} = timeline;
    if (this.down.size === 2) {
      const other = [...this.down].find(([id]) => id !== event.pointerId)[1];
      const factor = Math.max(8, Math.abs(now.x - other.x)) / Math.max(8, Math.abs(before.x - other.x));
      timeline.zoom(factor, painter.time_at(other.x));
    } else if (this.moved || Math.abs(now.x - before.x) > 3) {
      this.moved = true;
      timeline.pan((before.x - now.x) * painter.pixel);
    } else {
      return;  // no drag yet
    }
    this.down.set(event.pointerId, now);
    timeline.hover(null);
  }

  release(event) {
    this.down.delete(event.pointerId);
    if (!this.moved) this.timeline.click({x: event.offsetX, y: event.offsetY});
  }

  key(event) {
    const {timeline} = this;
    const span = timeline.until - timeline.from;
    const actions = {
      ArrowLeft: () => timeline.pan(-span / 5),
      ArrowRight: () => timeline.pan(span / 5),
      ArrowUp: () => timeline.zoom(zoom_step),
      ArrowDown: () => timeline.zoom(1 / zoom_step),
      '+': () => timeline.zoom(zoom_step),
      '-': () => timeline.zoom(1 / zoom_step),
      0: () => timeline.fit(),
      Home: () => timeline.fit(),
      n: () => timeline.step(1),
      p: () => timeline.step(-1),
      b: () => timeline.follow_back(),
      Escape: () => timeline.select(null),
    };
    const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }
}
