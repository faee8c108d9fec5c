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

function pareto_series(candidates, unfit, front, colour_axis) {
  const on_front = new Set(front.map(({point}) => point));
  const item = ({x, y, point}) => ({value: [x, y], point, symbolSize: on_front.has(point) ? 11 : 7});
  const line = {
    type: 'line', name: 'Pareto front', data: front.map(item), symbol: 'none', silent: true, z: 1,
    lineStyle: {color: '#333', width: 1.5}, itemStyle: {color: '#333'},
  };
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
  return [...fitting, ...(unfit.length ? [hollow] : []), line];
}

function draw_pareto(plot, {x, y, colour, scale}) {
  const shown = all_points.filter((point) => drawable(x, scale, point) && drawable(y, scale, point))
    .map((point) => ({point, x: x.values[point], y: y.values[point]}));
  const drawn = shown.map(({point}) => point);
  const candidates = shown.filter(({point}) => points.fits_memory[point]);
  const unfit = shown.filter(({point}) => !points.fits_memory[point]);
  const front = pareto_front(candidates, x.better, y.better);
  plot.draw({
    grid: {left: 84, right: 220, top: 40, bottom: 52},
    title: series_title(colour),
    legend: series_legend(),
    tooltip,
    toolbox,
    xAxis: metric_axis(x, scale, 32, drawn),
    yAxis: metric_axis(y, scale, 62, drawn),
    series: pareto_series(candidates, unfit, front, colour),
  });
  const absent = all_points.length - shown.length - failures.size;
  const parts = [counted(shown.length, 'point', 'points'), `${front.length} on the front`];
  if (unfit.length) parts.push(`${unfit.length} do not fit memory (hollow, not on the front)`);
  if (failures.size) parts.push(`${failures.size} failed and are not drawn`);
  if (absent > 0) parts.push(`${absent} lack a ${scale === 'log' ? 'positive ' : ''}metric and are not drawn`);
  const caveat = 'The line joins the front; what lies between its points was not simulated.';
  plot.note.textContent = `${parts.join('; ')}. ${caveat}`;
  const columns = [...axis_columns(), metric_column(x), metric_column(y)];
  plot.front.replaceChildren(table_of(columns, front.map(({point}) => point)));
}

const most_colours = 16;

function pareto_plot(spec) {
  const plot = plot_section('Pareto front', 'pareto');
  plot.front = element('div', {className: 'scroll front'});
  plot.section.append(plot.front);
  const directed = metrics.filter((metric) => metric.better !== 'neither');
  const colourable = axes.filter((axis) => axis.values.length <= most_colours);
  const chosen = {x: metric_named(spec.x), y: metric_named(spec.y), colour: colourable[0], scale: 'fitted'};
  const update = () => {
    const pick = (label, key, options, text_of) =>
      choice(label, options, chosen[key], text_of, (option) => { chosen[key] = option; update(); });
    plot.controls.replaceChildren(
      pick('x', 'x', directed, metric_label),
      pick('y', 'y', directed, metric_label),
      pick('colour', 'colour', [undefined, ...colourable], (axis) => axis?.label ?? 'none'),
      pick('scale', 'scale', value_scales, (scale) => scale));
    draw_pareto(plot, chosen);
  };
  update();
}
