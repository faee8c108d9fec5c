const most_lanes = 200;  // at once: canvases have a largest height

// The page: head, timeline with its controls, what was clicked, tables, sources.
class TimelineElement {
  constructor() {
    this.canvas = element('canvas', {tabIndex: 0});
    this.canvas.setAttribute('role', 'application');
    this.canvas.setAttribute('aria-label', 'Timeline. Arrows pan and zoom, n and p go from bar to bar, b to what released it.');
    this.tip = element('div', {className: 'tip', hidden: true});
    this.painter = new Painter(this.canvas);
    this.panel = new Panel((view, bar) => this.select({view, bar}));
    this.show_path = false;
    this.selected = null;
    this.from = earliest;
    this.until = longest;
    this.frame = element('div', {className: 'frame'}, [this.canvas, this.tip]);
    this.section = element('section', {id: 'timeline'}, [this.controls(), this.frame, this.help()]);
    new Pointer(this.canvas, this);
    new ResizeObserver(() => this.draw()).observe(this.frame);
    dark_scheme.addEventListener('change', () => this.draw());
    if (views.length > 1) this.show_window();
  }

  draw() {
    this.wanted ??= requestAnimationFrame(() => {
      this.wanted = null;
      const {from, until, rank, show_path, selected} = this;
      this.painter.paint({from, until, rank, show_path, selected});
    });
  }

  // Never beyond the timeline, nor closer than a few ns.
  show(from, until) {
    const whole = longest - earliest;
    const span = Math.min(Math.max(until - from, 20), whole);
    this.from = Math.min(Math.max(from, earliest), longest - span);
    this.until = this.from + span;
    this.draw();
  }

  fit() { this.show(earliest, longest); }
  show_window() {
    const windows = views.map(({window}) => window).filter(({name}) => name !== '');
    if (windows.length === 0) return this.fit();
    const from = Math.min(...windows.map((window) => window.from));
    const until = Math.max(...windows.map((window) => window.until));
    const margin = 0.02 * (until - from);
    this.show(from - margin, until + margin);
  }
  pan(time) { this.show(this.from + time, this.until + time); }
  zoom(factor, around = (this.from + this.until) / 2) {
    this.show(around - (around - this.from) / factor, around + (this.until - around) / factor);
  }

  // The smallest bar there, or one a few pixels beside: a finger is wide.
  bar_at({x, y}) {
    const row = x >= this.painter.gutter ? this.painter.row_at(y) : undefined;
    if (row?.kind === 'path') return this.bar_on_path(row.view, this.painter.time_at(x));
    if (row?.kind !== 'bars') return null;
    const {view, lane} = row;
    const reach = 3 * this.painter.pixel;
    const time = this.painter.time_at(x);
    const distance = (bar) => Math.max(view.bars.start[bar] - time, time - view.bars.end[bar], 0);
    let found = null;
    const last = first_starting_at(view, lane, time + reach);
    for (let i = first_ending_after(lane, time - reach); i < last; ++i) {
      const bar = lane.bars[i];
      if (distance(bar) > reach) continue;
      const nearer = found === null ? -1 : distance(bar) - distance(found) || length_of(view, bar) - length_of(view, found);
      if (nearer < 0) found = bar;
    }
    return found === null ? null : {view, bar: found};
  }

  bar_on_path(view, time) {
    const stretch = view.path.findLast(({start, end}) => start <= time && time < end);
    return stretch ? {view, bar: stretch.bar} : null;
  }

  hover(place) {
    const lines = place ? this.tip_lines(place) : null;
    this.tip.hidden = !lines;
    this.canvas.style.cursor = lines ? 'pointer' : 'default';
    if (!lines) return;
    this.tip.replaceChildren(...lines.map((text) => element('div', {textContent: text})));
    const {clientWidth: width, clientHeight: height} = this.frame;
    this.tip.style.left = `${Math.max(0, Math.min(place.x + 14, width - this.tip.offsetWidth - 2))}px`;
    const below = place.y + 18;
    this.tip.style.top = `${below + this.tip.offsetHeight > height ? Math.max(0, place.y - this.tip.offsetHeight - 10) : below}px`;
  }

  tip_lines(place) {
    const row = this.painter.row_at(place.y);
    if (row?.kind === 'use' && place.x >= this.painter.gutter) {
      const time = this.painter.time_at(place.x);
      const share = mean_use(row.use, time, time + this.painter.pixel);
      const of = row.use.capacity === 1 ? '' : ` (${Math.round(share * row.use.capacity)} of ${row.use.capacity})`;
      return [`${row_label(row)} at ${time_text(time)}: ${(100 * share).toFixed(1)} %${of}`];
    }
    const found = this.bar_at(place);
    if (!found) return null;
    const {view, bar} = found;
    const beside = neighbours_of(view, bar).slice(0, 3)
      .map(({bar: other, overlap}) => `${kind_of(view, other).name} (${time_text(overlap)})`);
    const facts = facts_of(view, bar).map(([label, text]) => `${label}: ${text}`);
    const {note} = view.phases[view.bars.phase[bar]] ?? {note: ''};
    return [kind_of(view, bar).name, ...facts, ...(beside.length ? [`beside it: ${beside.join(', ')}`] : []),
            ...(path_text(view, bar) ? [path_text(view, bar)] : []), ...(note ? [note] : [])];
  }

  click(place) { this.select(this.bar_at(place)); }

  select(found) {
    this.selected = found;
    this.hover(null);
    if (found) {
      const {view, bar} = found;
      const {rank} = lane_of(view, bar);
      if (this.rank !== null && this.rank !== rank) this.choose_rank(this.ranks[0] === null ? null : rank);
      this.reveal(view.bars.start[bar], view.bars.end[bar]);
      this.panel.show(view, bar);
    } else {
      this.panel.clear();
    }
    this.draw();
  }

  reveal(start, end) {
    if (start >= this.from && end <= this.until) return;
    const span = Math.max(this.until - this.from, 1.5 * (end - start));
    this.show((start + end - span) / 2, (start + end + span) / 2);
  }

  // To the next bar of its lane; from nowhere to the first bar that is shown.
  step(by) {
    const view = this.selected?.view ?? views[0];
    const lane = this.selected ? lane_of(view, this.selected.bar) :
      view.lanes.find(({rank, bars}) => bars.length && (this.rank === null || rank === this.rank));
    const position = this.selected ? lane.bars.indexOf(this.selected.bar) + by : first_ending_after(lane, this.from);
    if (position >= 0 && position < lane.bars.length) this.select({view, bar: lane.bars[position]});
  }

  follow_back() {
    const released = this.selected?.view.bars.released[this.selected.bar];
    if (released?.bar !== undefined) this.select({view: this.selected.view, bar: released.bar});
  }

  choose_rank(rank) {
    this.rank = rank;
    if (this.rank_choice) this.rank_choice.querySelector('select').selectedIndex = this.ranks.indexOf(rank);
    this.draw();
  }

  controls() {
    const button = (text, title, onclick) => element('button', {textContent: text, title, onclick});
    const controls = element('div', {className: 'controls'}, [
      button('+', 'zoom in (wheel, or arrow up)', () => this.zoom(zoom_step)),
      button('−', 'zoom out (wheel, or arrow down)', () => this.zoom(1 / zoom_step)),
      button('◀', 'to the left (drag, or arrow left)', () => this.pan((this.from - this.until) / 3)),
      button('▶', 'to the right (drag, or arrow right)', () => this.pan((this.until - this.from) / 3)),
      button('all', 'the whole timeline (0)', () => this.fit()),
    ]);
    if (views[0].window.name !== '') controls.append(button(views[0].window.name, 'a part of it', () => this.show_window()));
    if (views.some((view) => view.path.length)) controls.append(this.path_box());
    const lanes = views.flatMap((view) => view.lanes);
    this.ranks = [...new Set(lanes.map(({rank}) => rank))];
    if (lanes.length <= most_lanes) this.ranks.unshift(null);
    this.rank = this.ranks[0];
    if (this.ranks.length > 2) {
      this.rank_choice = choice('ranks', this.ranks, this.rank, (rank) => rank ?? 'all', (rank) => this.choose_rank(rank));
      controls.append(this.rank_choice);
    }
    return controls;
  }

  path_box() {
    const box = element('input', {type: 'checkbox', id: 'path'});
    box.addEventListener('change', () => {
      this.show_path = box.checked;
      this.draw();
    });
    return element('label', {}, [box, ' what the end waited for']);
  }

  help() {
    const left_out = views.flatMap((view) =>
      view.left_out.map((text) => element('p', {className: 'note', textContent: text})));
    return element('div', {}, [legend(), ...left_out, element('p', {className: 'note', textContent:
      'Wheel or two fingers zoom, dragging pans. Keys, once the timeline is clicked: arrows, 0 for all, n and p for the ' +
      'next and previous bar, b for what released it.'})]);
  }
}

function source_section({title, text}, i) {
  const summary = element('summary', {textContent: title});
  return element('section', {className: 'source'}, [element('details', {open: i === 0}, [summary, element('pre', {textContent: text})])]);
}

const few_columns = 3;  // of a table that fits beside the timeline
const wide = ({header}) => header.length > few_columns;
const tables_that = (fit) => data.tables.filter(fit).map(table_section);
const main = document.querySelector('main');
const timeline = new TimelineElement();
main.append(
  element('h1', {textContent: data.title}),
  element('ul', {}, data.summary.map((line) => element('li', {textContent: line}))),
  element('div', {className: 'sides'}, [
    element('div', {}, [timeline.section, ...tables_that(wide), ...data.sources.map(source_section)]),
    element('div', {className: 'beside'}, [timeline.panel.section, ...tables_that((table) => !wide(table))])]),
  element('footer', {textContent: `By moeline ${data.version}.`}));
