// Two metrics against each other, and the points that no other beats in both.

// Of {x, y}, those that none dominates: none is as good in both and better in one. Equal points are all on the front.
// Best x first.
function pareto_front(candidates, x_better, y_better) {
  const sign = (better) => better === 'higher' ? 1 : -1;
  const x = (point) => sign(x_better) * point.x;
  const y = (point) => sign(y_better) * point.y;
  const front = [];
  for (const point of [...candidates].sort((a, b) => x(b) - x(a) || y(b) - y(a))) {
    const last = front.at(-1);
    if (!last || y(point) > y(last) || (point.x === last.x && point.y === last.y)) front.push(point);
  }
  return front;
}

// A front for each value of the axis that has any, of all points where there is none.
function pareto_fronts(candidates, x, y, axis) {
  if (!axis) return [{name: 'Pareto front', colour: '#333', of: pareto_front(candidates, x.better, y.better)}];
  return axis.values.map((name, place) => ({
    name: `front: ${name}`,
    colour: colours_of(axis)[place],
    of: pareto_front(candidates.filter(({point}) => axis.at[point] === place), x.better, y.better),
  })).filter(({of}) => of.length > 0);
}

// Where a metric must stay, across the plot. The invisible points keep the lines inside of it.
function limit_series(limits, x, y, candidates) {
  if (!candidates.length) return [];
  const across = limits.flatMap(({metric, value, label}) =>
    metric === x.name ? [{xAxis: value, label, at: [value, candidates[0].y]}] :
    metric === y.name ? [{yAxis: value, label, at: [candidates[0].x, value]}] : []);
  if (!across.length) return [];
  const data = across.map(({label, at, ...place}) =>
    ({...place, label: {formatter: () => label, position: place.xAxis === undefined ? 'insideEndTop' : 'end', color: '#b3261e'}}));
  return [{
    type: 'line', name: 'limit', data: across.map(({at}) => at), symbol: 'none', silent: true, z: 1,
    lineStyle: {opacity: 0}, itemStyle: {color: '#b3261e'},
    markLine: {data, symbol: 'none', silent: true, lineStyle: {color: '#b3261e', type: 'dashed', width: 1.5}},
  }];
}

function pareto_series(candidates, unfit, fronts, colour_axis) {
  const on_front = new Set(fronts.flatMap(({of}) => of.map(({point}) => point)));
  const item = ({x, y, point}) => ({value: [x, y], point, symbolSize: on_front.has(point) ? 11 : 7});
  const lines = fronts.map(({name, colour, of}) => ({
    type: 'line', name, data: of.map(item), symbol: 'none', silent: true, z: 1,
    lineStyle: {color: colour, width: 1.5}, itemStyle: {color: colour},
  }));
  const hollow = {
    type: 'scatter', name: 'does not fit memory', data: unfit.map(item), z: 2,
    itemStyle: {color: 'transparent', borderColor: grey, borderWidth: 1.2},
  };
  const scatter = (name, colour, of) => ({
    type: 'scatter', name, data: of.map(item), itemStyle: {color: colour, borderColor: '#fff', borderWidth: 0.5}, z: 3,
  });
  const fitting = colour_axis
    ? colours_of(colour_axis).map((colour, place) => scatter(colour_axis.values[place], colour,
      candidates.filter(({point}) => colour_axis.at[point] === place)))
    : [scatter('points', palette[0], candidates)];
  return [...fitting, ...(unfit.length ? [hollow] : []), ...lines];
}

function answer_series(shown, answer) {
  const found = shown.filter(({point}) => point === answer);
  return found.map(({x, y}) => ({
    type: 'scatter', name: 'the answer', data: [[x, y]], symbolSize: 20, silent: true, z: 4,
    itemStyle: {color: 'transparent', borderColor: '#000', borderWidth: 2},
    label: {show: true, formatter: 'the answer', position: 'right', fontWeight: 'bold', color: '#000'},
  }));
}

function draw_pareto(plot, {x, y, colour, scale, front_per}, {limits, answer}) {
  const shown = all_points.filter((point) => drawable(x, scale, point) && drawable(y, scale, point))
    .map((point) => ({point, x: x.values[point], y: y.values[point]}));
  const drawn = shown.map(({point}) => point);
  const candidates = shown.filter(({point}) => points.fits_memory[point]);
  const unfit = shown.filter(({point}) => !points.fits_memory[point]);
  const fronts = pareto_fronts(candidates, x, y, front_per);
  const front = fronts.flatMap(({of}) => of);
  plot.draw((narrow) => ({
    ...frame(colour ?? {label: ''}, narrow),
    tooltip,
    toolbox,
    xAxis: metric_axis(x, scale, 32, drawn, narrow),
    yAxis: metric_axis(y, scale, narrow ? 50 : 62, drawn, narrow),
    series: [...pareto_series(candidates, unfit, fronts, colour), ...limit_series(limits, x, y, candidates),
             ...answer_series(candidates, answer)],
  }));
  const absent = all_points.length - shown.length - failures.size;
  const parts = [counted(shown.length, 'point', 'points'),
                 `${front.length} on ${fronts.length > 1 ? `${fronts.length} fronts` : 'the front'}`];
  if (unfit.length) parts.push(`${unfit.length} do not fit memory (hollow, not on the front)`);
  if (failures.size) parts.push(`${failures.size} failed and are not drawn`);
  if (absent > 0) parts.push(`${absent} lack a ${scale === 'log' ? 'positive ' : ''}metric and are not drawn`);
  const caveat = 'A line joins a front; what lies between its points was not simulated.';
  plot.note.textContent = `${parts.join('; ')}. ${caveat}`;
  const columns = [...axis_columns(), metric_column(x), metric_column(y)];
  plot.front.replaceChildren(table_of(columns, front.map(({point}) => point)));
}

const most_colours = 16;

function pareto_plot(spec) {
  const plot = plot_section(spec.title, 'pareto');
  if (spec.about !== '') plot.controls.before(element('p', {textContent: spec.about}));
  plot.front = element('div', {className: 'scroll front'});
  plot.section.append(plot.front);
  const directed = metrics.filter((metric) => metric.better !== 'neither');
  const colourable = axes.filter((axis) => axis.values.length <= most_colours);
  const front_per = axis_named(spec.front_per);
  const chosen = {x: metric_named(spec.x), y: metric_named(spec.y), colour: front_per ?? colourable[0], scale: 'fitted',
                  front_per};
  const update = () => {
    const pick = (label, key, options, text_of) =>
      choice(label, options, chosen[key], text_of, (option) => { chosen[key] = option; update(); });
    plot.controls.replaceChildren(
      pick('x', 'x', directed, metric_label),
      pick('y', 'y', directed, metric_label),
      pick('colour', 'colour', [undefined, ...colourable], (axis) => axis?.label ?? 'none'),
      pick('front for each', 'front_per', [undefined, ...colourable], (axis) => axis?.label ?? 'none'),
      pick('scale', 'scale', value_scales, (scale) => scale));
    draw_pareto(plot, chosen, spec);
  };
  update();
}
