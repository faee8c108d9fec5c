// A metric over an axis, one line per value of a second one.

// A line is broken where a value of the axis has no point, and where it failed.
function line_of(x, shown, {metric, scale}, colour) {
  const by_place = new Map(shown.map((point) => [x.at[point], point]));
  return x.values.map((name, place) => {
    const at = x.numbers ? x.numbers[place] : name;
    const point = by_place.get(place);
    if (point === undefined || !drawable(metric, scale, point)) return {value: [at, '-']};
    const fill = points.fits_memory[point] ? colour : '#fff';
    return {value: [at, metric.values[point]], point, itemStyle: {color: fill, borderColor: colour, borderWidth: 1.5}};
  });
}

function line_series(shown, chosen) {
  const [x, series] = chosen.free;
  const symbolSize = x.values.length > 40 ? 4 : 7;
  const common = {type: 'line', symbol: 'circle', symbolSize, showAllSymbol: true};
  if (!series) {
    const colour = palette[0];
    return [{...common, name: chosen.metric.name, lineStyle: {color: colour}, itemStyle: {color: colour},
             data: line_of(x, shown, chosen, colour)}];
  }
  const colours = colours_of(series);
  return series.values.map((name, place) => ({
    ...common,
    name,
    lineStyle: {color: colours[place], width: 1.5},
    itemStyle: {color: colours[place]},
    data: line_of(x, shown.filter((point) => series.at[point] === place), chosen, colours[place]),
  }));
}

function line_plot(spec) {
  const plot = plot_section('Lines', 'lines');
  const start = {metric: metric_named(spec.metric), first: axis_named(spec.x), second: axis_named(spec.series),
                 scale: 'from 0'};
  two_axes_plot(plot, start, ['x', 'lines'], (chosen, shown) => {
    const [x, series] = chosen.free;
    plot.draw((narrow) => ({
      ...frame(series, narrow),
      tooltip,
      toolbox,
      xAxis: scenario_axis(x),
      yAxis: metric_axis(chosen.metric, chosen.scale, narrow ? 50 : 62, shown, narrow),
      series: line_series(shown, chosen),
    }));
    const hollow = some_do_not_fit ? ' Hollow: does not fit memory.' : '';
    plot.note.textContent = `${note_of(shown, chosen)}. Gaps: no point there, or it failed.${hollow}`;
  });
}
