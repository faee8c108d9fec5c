// What all plots share: a section with controls, a chart and a note; axes, colours and tooltips.
function plot_section(title, kind) {
  const controls = element('div', {className: 'controls'});
  const chart = element('div', {className: 'chart'});
  const note = element('p', {className: 'note'});
  const section = element('section', {}, [element('h2', {textContent: title}), controls, chart, note]);
  section.dataset.kind = kind;
  document.querySelector('main').append(section);
  const drawing = echarts.init(chart);
  const is_narrow = () => chart.clientWidth < 640;
  let drawn = {make: () => ({}), narrow: is_narrow()};
  // `make(narrow)`: the chart's option, on a page that is as narrow as a telephone's or not.
  const draw = (make) => {
    drawn = {make, narrow: is_narrow()};
    drawing.setOption({animation: false, ...make(drawn.narrow)}, {notMerge: true});
  };
  new ResizeObserver(() => {
    drawing.resize();
    if (is_narrow() !== drawn.narrow) draw(drawn.make);
  }).observe(chart);
  return {section, controls, chart, note, draw, drawing};
}

const grey = '#9aa0a6';
const ramp = ['#440154', '#414487', '#2a788e', '#22a884', '#7ad151', '#fde725'];  // viridis: ordered in print, too
const palette = ['#2a5db0', '#d9730d', '#2e8b57', '#b03060', '#6a51a3', '#8c6d31', '#17859b', '#636363'];

// Numbers in the order of a ramp without its brightest end, which is lost on white; names in distinct colours.
function colours_of(axis) {
  const last = Math.max(axis.values.length - 1, 1);
  return axis.values.map((_, i) =>
    axis.numbers ? echarts.color.lerp(i / last * 0.88, ramp) : palette[i % palette.length]);
}

const axis_name = {nameLocation: 'middle', nameTextStyle: {color: '#333', fontSize: 13}};

// Values of the study where they lie as numbers; names one beside the other.
function scenario_axis(axis) {
  if (!axis.numbers) return {type: 'category', data: axis.values, name: axis.label, ...axis_name, nameGap: 32};
  const ticks = axis.values.length <= 16 ? axis.numbers : axis.log ? log_ticks(axis.numbers) : undefined;
  const text_of = (number) => axis.values[axis.numbers.indexOf(number)] ?? format_number(number);
  return {
    type: axis.log ? 'log' : 'value',
    min: axis.numbers[0],
    max: axis.numbers.at(-1),
    name: axis.log ? `${axis.label} (log scale)` : axis.label,
    ...axis_name,
    nameGap: 32,
    axisLabel: {formatter: text_of, hideOverlap: true, customValues: ticks},
    axisTick: {customValues: ticks},
    splitLine: {show: false},
  };
}

// 1, 2 and 5 times powers of ten, from the last below the numbers to the first above: an axis of whole decades would
// leave most of a plot empty.
function log_ticks(numbers) {
  const low = numbers.reduce((a, b) => Math.min(a, b), Infinity);
  const high = numbers.reduce((a, b) => Math.max(a, b), 0);
  const ticks = [];
  for (let decade = Math.floor(Math.log10(low)); decade <= Math.ceil(Math.log10(high)); ++decade) {
    for (const step of [1, 2, 5]) ticks.push(Number(`${step}e${decade}`));
  }
  const first = ticks.findLastIndex((tick) => tick <= low);
  const last = ticks.findIndex((tick) => tick >= high);
  return ticks.slice(first, last + 1);
}

function log_axis(metric, shown) {
  const numbers = shown.filter((point) => drawable(metric, 'log', point)).map((point) => metric.values[point]);
  const ticks = numbers.length ? log_ticks(numbers) : [1, 10];
  return {type: 'log', min: ticks[0], max: ticks.at(-1), axisTick: {customValues: ticks},
          axisLabel: {customValues: ticks}};
}

const value_scales = ['from 0', 'fitted', 'log'];

function metric_axis(metric, scale, gap, shown, narrow) {
  const axis = scale === 'log' ? log_axis(metric, shown) : {type: 'value', scale: scale !== 'from 0'};
  const axisLabel = {...axis.axisLabel, formatter: (value) => format_number(value), hideOverlap: true};
  const label = narrow ? `${metric.name} (${metric.unit})` : metric_label(metric);
  const name = scale === 'log' ? `${label}, log scale` : label;
  return {...axis, name, ...axis_name, nameGap: gap, axisLabel};
}

// A log scale has no place for 0.
const drawable = (metric, scale, point) => has(metric, point) && (scale !== 'log' || metric.values[point] > 0);

// Right of the plot, below the name of the axis whose values it has.
const beside_plot = {right: 16, textStyle: {fontSize: 12, width: 150, overflow: 'truncate'}};
const series_title = (axis) => axis && {...beside_plot, left: 'right', text: axis.label, top: 40};
const series_legend = () => ({...beside_plot, type: 'scroll', orient: 'vertical', itemWidth: 20, itemHeight: 10, align: 'left', left: 'right', top: 62,
                              bottom: 40, tooltip: {show: true}});

// Where the plot and the names of its series lie: beside each other, on narrow pages one above the other.
function frame(axis, narrow) {
  if (!narrow) return {grid: {left: 84, right: axis ? 220 : 40, top: 40, bottom: 52}, title: series_title(axis),
                       legend: axis ? series_legend() : undefined};
  return {grid: {left: 66, right: 12, top: axis ? 64 : 40, bottom: 52},
          legend: axis ? {type: 'scroll', top: 28, left: 0, right: 0, itemWidth: 16, itemHeight: 8} : undefined};
}

const toolbox = {
  right: 8,
  top: 0,
  feature: {dataZoom: {title: {zoom: 'zoom into a rectangle', back: 'zoom back'}}, saveAsImage: {title: 'save as PNG'}},
};

// All that the table has of a point.
function describe(point) {
  const lines = axes.map((axis) => `${axis.label} = ${setting_of(axis, point)}`);
  for (const metric of metrics) {
    if (has(metric, point)) lines.push(`${metric.name}: ${format_value(metric, metric.values[point])}`);
  }
  if (!points.fits_memory[point]) lines.push('does not fit memory');
  if (failures.has(point)) lines.push(`failed: ${failures.get(point)}`);
  const texts = lines.map((line) => element('div', {textContent: line}));
  texts.slice(0, axes.length).forEach((text) => { text.style.fontWeight = 'bold'; });
  return element('div', {}, texts);
}

const tooltip = {
  confine: true,
  textStyle: {fontSize: 12},
  extraCssText: 'max-width: 480px; white-space: normal; line-height: 1.3;',
  formatter: ({data: item}) => item?.point === undefined ? '' : describe(item.point),
};
