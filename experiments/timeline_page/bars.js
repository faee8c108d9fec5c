// The timelines, unpacked into columns of numbers by bar. Times are in ns; those of a view count from its start.
const data = JSON.parse(document.getElementById('data').textContent);

function running_sums(differences) {
  let sum = 0;
  return Float64Array.from(differences, (difference) => sum += difference);
}

// The first index in [0, count) for which `holds`, which stays true from there on; `count`: none.
function first_index(count, holds) {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle; else low = middle + 1;
  }
  return low;
}

// What the starts or ends waited for: by bar null, {bar, of_start} or {text}.
function events_of(codes, elsewhere, texts) {
  let next = 0;
  return codes.map((code, bar) => {
    if (code === 0) return null;
    if (code === 1) return {text: texts[elsewhere[next++]]};
    const of_start = code % 2 !== 0;
    return {bar: bar - (code - (of_start ? 1 : 0)) / 2, of_start};
  });
}

// Bars of one phase that follow each other on a lane. They communicate if most of their time does.
function phase_runs(lane, bars, kinds) {
  const runs = [];
  for (const bar of lane.bars) {
    const length = bars.end[bar] - bars.start[bar];
    const sent = kinds[bars.kind[bar]].communicates ? length : -length;
    const last = runs.at(-1);
    if (last && last.phase === bars.phase[bar]) {
      last.end = Math.max(last.end, bars.end[bar]);
      last.sent += sent;
    } else {
      runs.push({phase: bars.phase[bar], start: bars.start[bar], end: bars.end[bar], sent});
    }
  }
  return runs;
}

function unpack_lanes(view, bars, kinds) {
  const lanes = view.lanes.map(([rank, name]) => ({rank, name, bars: []}));
  bars.lane.forEach((lane, bar) => lanes[lane].bars.push(bar));
  for (const lane of lanes) {
    let latest = -Infinity;
    lane.latest_end = Float64Array.from(lane.bars, (bar) => latest = Math.max(latest, bars.end[bar]));
    lane.runs = phase_runs(lane, bars, kinds);
    const of_host = lane.bars.some((bar) => kinds[bars.kind[bar]].task_class === 'host');
    lane.has_band = !of_host && lane.runs.length < 0.8 * lane.bars.length;
  }
  return lanes;
}

// `area`: what was taken until each step, so that means over any time are two look-ups.
function unpack_use(use, view) {
  const at = running_sums(use.at).map((time) => time - view.start);
  const area = new Float64Array(at.length);
  for (let i = 1; i < at.length; ++i) area[i] = area[i - 1] + use.taken[i - 1] * (at[i] - at[i - 1]);
  return {...use, at, area};
}

function unpack(view) {
  const {bars: packed, texts} = view;
  const start = running_sums(packed.start).map((time) => time - view.start);
  const bars = {
    ...packed,
    start,
    end: start.map((time, bar) => time + packed.length[bar]),
    phase: running_sums(packed.phase),
    released: events_of(packed.released, packed.released_elsewhere, view.elsewhere),
    held: events_of(packed.held, packed.held_elsewhere, view.elsewhere),
  };
  const path_start = running_sums(view.path.start).map((time) => time - view.start);
  const path = view.path.bar.map((bar, i) =>
    ({bar, reason: view.path.reason[i], start: path_start[i], end: path_start[i] + view.path.length[i]}));
  const on_path = new Map();
  for (const stretch of path) on_path.set(stretch.bar, [...on_path.get(stretch.bar) ?? [], stretch]);
  const kinds = view.kinds.map(([name, task_class, detail, sms, communicates]) =>
    ({name: texts[name], task_class: texts[task_class], detail: texts[detail], sms, communicates: communicates === 1}));
  return {
    name: view.name,
    measured: view.measured,
    ranks: view.ranks,
    end: view.end - view.start,
    window: {...view.window, from: view.window.from - view.start, until: view.window.until - view.start},
    left_out: view.left_out,
    kinds,
    phases: view.phases.map(([name, layer, micro_batch, note]) =>
      ({name: texts[name], layer, micro_batch, note: note === undefined ? '' : texts[note]})),
    bars,
    lanes: unpack_lanes(view, bars, kinds),
    path,
    on_path,
    uses: view.uses.map((use) => unpack_use(use, view)),
  };
}

const views = data.views.map(unpack);
const longest = Math.max(...views.map((view) => view.end));
const earliest = Math.min(0, ...views.map((view) => view.bars.start[0] ?? 0));

// Of a lane, the position of the first bar that ends after `time`, or of the first that starts at it or later.
const first_ending_after = (lane, time) => first_index(lane.bars.length, (i) => lane.latest_end[i] > time);
const first_starting_at = (view, lane, time) => first_index(lane.bars.length, (i) => view.bars.start[lane.bars[i]] >= time);

// Bars of a view that run during [start, end), on the lanes of one rank, longest beside it first.
function bars_during(view, rank, start, end) {
  const found = [];
  for (const lane of view.lanes) {
    if (lane.rank !== rank) continue;
    const last = first_starting_at(view, lane, end);
    for (let i = first_ending_after(lane, start); i < last; ++i) {
      const bar = lane.bars[i];
      const overlap = Math.min(end, view.bars.end[bar]) - Math.max(start, view.bars.start[bar]);
      if (overlap > 0) found.push({bar, overlap});
    }
  }
  return found.sort((a, b) => b.overlap - a.overlap);
}

// The mean of what is taken of a resource over a time, as a share of it.
function mean_use(use, start, end) {
  const until = (time) => {
    const i = first_index(use.at.length, (step) => use.at[step] > time) - 1;
    return i < 0 ? 0 : use.area[i] + use.taken[i] * (time - use.at[i]);
  };
  return end > start ? (until(end) - until(start)) / (end - start) / 1000 : 0;
}
