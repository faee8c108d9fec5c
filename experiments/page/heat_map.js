// A metric over two axes as colours, with the numbers where there is room for them.

const most_labelled = 400;  // cells; with more, the numbers would overlap

function cells_of([x, y], metric, shown, scale) {
  const position = scale === 'log' ? Math.log10 : (value) => value;
  return shown.filter((point) => drawable(metric, scale, point) || failures.has(point)).map((point) => {
    const value = metric.values[point];
    return {point, value: [x.at[point], y.at[point], value === null ? 0 : position(value)],
            text: value === null ? 'failed' : format_number(value)};
  });
}

function range_of(cells, scale) {
  const values = cells.map((cell) => cell.value[2]);
  const low = values.reduce((a, b) => Math.min(a, b), Infinity);
  const high = values.reduce((a, b) => Math.max(a, b), -Infinity);
  return {min: scale === 'from 0' ? Math.min(0, low) : low, max: high};
}

function heat_series(name, cells, labelled, colour) {
  const label = {show: labelled, color: '#666', fontSize: 11, formatter: ({data: cell}) => cell.text};
  const itemStyle = {color: colour, borderColor: '#fff', borderWidth: labelled ? 1 : 0};
  return {type: 'heatmap', name, data: cells, label, itemStyle};
}

function readable_on_ramp(cells, {min, max}) {
  return cells.map((cell) => {
    const bright = (cell.value[2] - min) / (max - min || 1) > 0.55;
    return {...cell, label: {color: bright ? '#000' : '#fff'}};
  });
}

function colour_scale({min, max}, scale, narrow) {
  const number_at = (position) => format_number(scale === 'log' ? 10 ** position : position);
  return {
    type: 'continuous', seriesIndex: 0, dimension: 2, min, max, inRange: {color: ramp},
    ...(narrow ? {orient: 'horizontal', left: 'center', bottom: 0, itemHeight: 160}
               : {right: 24, top: 'middle', itemHeight: 260}),
    text: [number_at(max), number_at(min)],
    formatter: number_at,
  };
}

function heat_axis(axis, gap) {
  return {
    type: 'category', data: axis.values, name: axis.label, ...axis_name, nameGap: gap,
    axisLabel: {hideOverlap: true, width: 150, overflow: 'truncate'},
  };
}

function draw_heat_map(plot, {metric, free: [x, y], scale}, shown) {
  const cells = cells_of([x, y], metric, shown, scale);
  const fitting = cells.filter(({point}) => points.fits_memory[point] && !failures.has(point));
  const unfit = cells.filter(({point}) => !points.fits_memory[point] && !failures.has(point));
  const failed = cells.filter(({point}) => failures.has(point));
  const range = range_of(fitting, scale);
  const labelled = x.values.length * y.values.length <= most_labelled && x.values.length <= 20;
  const widest = Math.min(Math.max(...y.values.map((value) => value.length)), 24);
  plot.chart.style.height = `${Math.min(Math.max(380, 140 + 26 * y.values.length), 900)}px`;
  plot.drawing.resize();
  plot.draw((narrow) => ({
    grid: {left: 50 + 7 * widest, ...(narrow ? {right: 12, bottom: 96} : {right: 130, bottom: 52}), top: 44},
    title: {text: metric_label(metric), left: 0, top: 4, textStyle: {fontSize: 13, fontWeight: 'normal'}},
    tooltip,
    toolbox: {...toolbox, feature: {saveAsImage: toolbox.feature.saveAsImage}},
    visualMap: fitting.length ? colour_scale(range, scale, narrow) : undefined,
    xAxis: heat_axis(x, 32),
    yAxis: heat_axis(y, 20 + 7 * widest),
    series: [
      heat_series('fits memory', readable_on_ramp(fitting, range), labelled),
      heat_series('does not fit memory', unfit, labelled, '#e3e5e8'),
      heat_series('failed', failed, labelled, '#fbe3e0'),
    ],
  }));
}

function heat_map(spec) {
  const plot = plot_section('Heat map', 'heat_map');
  const start = {metric: metric_named(spec.metric), first: axis_named(spec.x), second: axis_named(spec.y),
                 scale: 'fitted'};
  two_axes_plot(plot, start, ['x', 'y'], (chosen, shown) => {
    draw_heat_map(plot, chosen, shown);
    const unfit = some_do_not_fit ? ' Grey: does not fit memory.' : '';
    plot.note.textContent = `${note_of(shown, chosen)}. Empty: no point there.${unfit}`;
  });
}
