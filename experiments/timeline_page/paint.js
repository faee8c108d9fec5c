// Draws the timelines. Bars of less than a pixel are drawn once a pixel, so that a million cost no more than a thousand.
class Painter {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext('2d');
  }

  // state: {from, until, rank, show_path, selected: {view, bar} or null}
  paint(state) {
    this.state = state;
    this.colours = palette();
    this.width = this.canvas.clientWidth;
    this.gutter = Math.min(150, Math.round(this.width * 0.24));
    const {rows, height} = rows_of(state.rank, state.show_path);
    this.rows = rows;
    this.fit_canvas(height);
    this.context.fillStyle = this.colours.ground;
    this.context.fillRect(0, 0, this.width, height);
    this.paint_axis(height);
    for (const row of rows) this.paint_row(row);
    this.paint_reason();
    this.paint_labels();
  }

  fit_canvas(height) {
    const ratio = devicePixelRatio;
    this.canvas.style.height = `${height}px`;
    if (this.canvas.width !== Math.round(this.width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(this.width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.textBaseline = 'middle';
  }

  get pixel() { return (this.state.until - this.state.from) / (this.width - this.gutter); }  // ns
  x_of(time) { return this.gutter + (time - this.state.from) / this.pixel; }
  time_at(x) { return this.state.from + (x - this.gutter) * this.pixel; }

  row_at(y) { return this.rows.find(({top, height}) => y >= top && y < top + height); }

  paint_axis(height) {
    const {context, colours} = this;
    const span = this.state.until - this.state.from;
    const least = span / Math.max(2, (this.width - this.gutter) / 90);
    const decade = 10 ** Math.floor(Math.log10(least));
    const step = [1, 2, 5, 10].map((factor) => factor * decade).find((candidate) => candidate >= least);
    const [unit, name] = step >= 5e8 ? [1e9, 's'] : step >= 5e5 ? [1e6, 'ms'] : [1e3, 'us'];
    const decimals = Math.max(0, -Math.floor(Math.log10(step / unit) + 1e-9));
    context.font = '11px system-ui, "DejaVu Sans", sans-serif';
    for (let tick = Math.ceil(this.state.from / step); tick * step <= this.state.until; ++tick) {
      const x = this.x_of(tick * step);
      context.fillStyle = colours.grid;
      context.fillRect(Math.round(x), axis_height - 6, 1, height);
      const text = `${(tick * step / unit).toFixed(decimals)} ${name}`;
      if (x + context.measureText(text).width + 3 > this.width) continue;
      context.fillStyle = colours.faint;
      context.fillText(text, x + 3, axis_height / 2 - 1);
    }
  }

  paint_row(row) {
    if (row.kind === 'title') return;
    this.context.save();
    this.context.beginPath();
    this.context.rect(this.gutter, row.top, this.width - this.gutter, row.height);
    this.context.clip();
    ({band: () => this.paint_band(row), bars: () => this.paint_bars(row), use: () => this.paint_use(row),
      path: () => this.paint_path(row)})[row.kind]();
    this.context.restore();
  }

  paint_band({view, lane, top, height}) {
    let drawn_to = -Infinity;
    const first = first_index(lane.runs.length, (i) => lane.runs[i].end > this.state.from);
    for (let i = first; i < lane.runs.length && lane.runs[i].start < this.state.until; ++i) {
      const {phase, start, end, sent} = lane.runs[i];
      if (phase < 0 || this.x_of(end) < drawn_to) continue;
      const x = this.x_of(start);
      drawn_to = Math.max(this.x_of(end), Math.max(x, drawn_to) + 0.5);
      this.rectangle(x, top, drawn_to - x, height, fill_of(view.phases[phase], sent > 0, this.colours), view.phases[phase]);
      const {name, layer} = view.phases[phase];
      this.label(`${name} ${layer}`, name, x, drawn_to, top + height / 2);
    }
  }

  paint_bars({view, lane, top, height}) {
    const {bars} = view;
    let drawn_to = -Infinity;
    const last = first_starting_at(view, lane, this.state.until);
    for (let i = first_ending_after(lane, this.state.from); i < last; ++i) {
      const bar = lane.bars[i];
      const x = this.x_of(bars.start[bar]);
      if (this.x_of(bars.end[bar]) < drawn_to) continue;
      drawn_to = Math.max(this.x_of(bars.end[bar]), Math.max(x, drawn_to) + 0.5);
      this.paint_bar(view, bar, x, top, drawn_to - x, height);
    }
  }

  paint_bar(view, bar, x, top, width, height) {
    const {context, colours} = this;
    const faded = this.state.show_path && view.path.length > 0 && !view.on_path.has(bar);
    context.globalAlpha = faded ? 0.35 : 1;
    this.rectangle(x, top, width, height, fill_of_bar(view, bar, colours), view.phases[view.bars.phase[bar]]);
    if (kind_of(view, bar).task_class === 'barrier' && width > 4) this.hatch(x, top, width, height);
    const {name} = kind_of(view, bar);
    this.label(name, name.split(' ')[0], x, x + width, top + height / 2);
    context.globalAlpha = 1;
    if (this.state.show_path && view.on_path.has(bar)) {
      context.fillStyle = colours.accent;
      context.fillRect(x, top + height - 3, width, 3);
    }
  }

  // Edges only where they leave something to see between them. An overlapped slot has the colours of both its passes.
  rectangle(x, top, width, height, fill, phase) {
    const {context, colours} = this;
    const inner = width > 3 ? width - 1 : width;
    context.fillStyle = fill;
    context.fillRect(x, top, inner, height);
    if (tint_of(phase) !== 'both') return;
    context.fillStyle = colours.computes.backward;
    context.fillRect(x, top + height / 2, inner, height / 2);
  }

  // A barrier waits, and moves nothing.
  hatch(x, top, width, height) {
    const {context, colours} = this;
    const from = Math.max(x, this.gutter);
    const until = Math.min(x + width - 1, this.width);
    context.save();
    context.beginPath();
    context.rect(from, top, until - from, height);
    context.clip();
    context.strokeStyle = colours.faint;
    context.lineWidth = 0.6;
    context.beginPath();
    for (let start = from - height; start < until; start += 6) {
      context.moveTo(start, top + height);
      context.lineTo(start + height, top);
    }
    context.stroke();
    context.restore();
  }

  // Of the visible part of a bar, the longer text, the shorter one, or nothing.
  label(text, short, from, until, middle) {
    const {context, colours} = this;
    const left = Math.max(from, this.gutter) + 3;
    const room = Math.min(until, this.width) - left - 3;
    if (room < 12) return;
    const fitting = [text, short].find((each) => context.measureText(each).width <= room);
    if (!fitting) return;
    context.fillStyle = colours.label;
    context.fillText(fitting, left, middle + 0.5);
  }

  // A mean for every pixel.
  paint_use({view, use, top, height}) {
    const {context, colours} = this;
    context.fillStyle = colours.row;
    context.fillRect(this.gutter, top, this.width, height);
    context.fillStyle = colours.use;
    const end = Math.min(this.width, this.x_of(view.end));
    for (let x = this.gutter; x < end; ++x) {
      const share = mean_use(use, this.time_at(x), this.time_at(x + 1));
      const size = share > 0 ? Math.max(1, Math.min(1, share) * height) : 0;
      context.fillRect(x, top + height - size, 1.02, size);
    }
  }

  paint_path({view, top, height}) {
    let drawn_to = -Infinity;
    for (const {reason, start, end} of view.path) {
      const right = this.x_of(end);
      const x = this.x_of(start);
      if (right < this.gutter || x > this.width || (right < drawn_to + 0.3 && right > drawn_to)) continue;
      drawn_to = right;
      this.context.fillStyle = this.colours.reasons[reason] ?? this.colours.reasons[0];
      this.context.fillRect(x, top, Math.max(right - x, 0.5), height);
    }
  }

  place_of(view, bar) {
    const row = this.rows.find((each) => each.kind === 'bars' && each.view === view && each.lane === lane_of(view, bar));
    return row && {x: this.x_of(view.bars.start[bar]), end: this.x_of(view.bars.end[bar]), top: row.top, height: row.height};
  }

  // The bar that was clicked, and an arrow to it from what released it.
  paint_reason() {
    if (!this.state.selected) return;
    const {view, bar} = this.state.selected;
    const {context, colours} = this;
    const place = this.place_of(view, bar);
    if (!place) return;
    context.save();
    context.beginPath();
    context.rect(this.gutter, axis_height, this.width, this.canvas.clientHeight);
    context.clip();
    const outline = ({x, end, top, height}, dash) => {
      context.setLineDash(dash);
      context.strokeStyle = colours.text;
      context.lineWidth = 2;
      context.strokeRect(x - 1, top - 1, Math.max(end - x, 2) + 1, height + 2);
    };
    outline(place, []);
    for (const twin of this.places_of_phase(view, view.phases[view.bars.phase[bar]])) outline(twin, []);
    const released = view.bars.released[bar];
    const from = released?.bar === undefined ? null : this.place_of(view, released.bar);
    if (from) {
      outline(from, [3, 2]);
      this.arrow(released.of_start ? from.x : Math.min(from.end, place.x), from.top + from.height / 2, place.x, place.top + place.height / 2);
    }
    context.restore();
  }

  // Where the other side of a comparison has the same phase.
  places_of_phase(but, wanted) {
    const places = [];
    for (const {kind, view, lane, top, height} of this.rows) {
      if (!wanted || kind !== 'band' || view === but) continue;
      for (const {phase, start, end} of lane.runs) {
        const {name, layer, micro_batch} = view.phases[phase] ?? {};
        const same = name === wanted.name && layer === wanted.layer && micro_batch === wanted.micro_batch;
        if (same) places.push({x: this.x_of(start), end: this.x_of(end), top, height});
      }
    }
    return places;
  }

  arrow(x, y, to_x, to_y) {
    const {context, colours} = this;
    context.setLineDash([]);
    context.strokeStyle = context.fillStyle = colours.accent;
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(to_x, to_y);
    context.stroke();
    context.beginPath();
    context.arc(to_x, to_y, 3.5, 0, 7);
    context.fill();
  }

  paint_labels() {
    const {context, colours} = this;
    context.fillStyle = colours.ground;
    context.fillRect(0, 0, this.gutter, this.canvas.clientHeight);
    for (const row of this.rows) {
      const middle = row.top + row.height / 2;
      if (row.kind === 'title') {
        context.font = 'bold 12px system-ui, "DejaVu Sans", sans-serif';
        context.fillStyle = colours.text;
        context.fillText(row.view.name, 4, middle, this.width - 8);
      } else {
        context.font = '11px system-ui, "DejaVu Sans", sans-serif';
        context.fillStyle = row.kind === 'use' ? colours.faint : colours.text;
        this.fitted(row_label(row, this.gutter < 120), middle);
      }
    }
  }

  fitted(text, middle) {
    let shown = text;
    while (shown.length > 4 && this.context.measureText(shown).width > this.gutter - 8) shown = `${shown.slice(0, -2)}…`;
    this.context.fillText(shown, 4, middle);
  }
}
