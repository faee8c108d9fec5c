// The table that all plots show, and how its numbers and names are written.
const data = JSON.parse(document.getElementById('data').textContent);
const {axes, metrics, points} = data;  // axis.at and metric.values have an entry per point; null is none
const all_points = points.fits_memory.map((_, point) => point);
const failures = new Map(points.failures.map(({point, why}) => [point, why]));
const some_do_not_fit = points.fits_memory.includes(0);

const axis_named = (label) => axes.find((axis) => axis.label === label);
const metric_named = (name) => metrics.find((metric) => metric.name === name);
const has = (metric, point) => metric.values[point] !== null;

function direction_of(metric) {
  return metric.better === 'neither' ? '' : `${metric.better} is better`;
}

function metric_label(metric) {
  const facts = [metric.unit, direction_of(metric)].filter((text) => text !== '');
  return facts.length ? `${metric.name} (${facts.join(', ')})` : metric.name;
}

// Large and small numbers alike at a glance; `digits` of those that matter.
function format_number(value, digits = 4) {
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e7 || size < 1e-3)) return value.toExponential(2);
  const whole = size >= 10 ** (digits - 1);
  return value.toLocaleString('en-US', whole ? {maximumFractionDigits: 0} : {maximumSignificantDigits: digits});
}

const counted = (number, one, many) => `${number.toLocaleString('en-US')} ${number === 1 ? one : many}`;
const format_value = (metric, value) => `${format_number(value, 6)} ${metric.unit}`.trim();

const setting_of = (axis, point) => axis.values[axis.at[point]];

// "parallelism.ep = 8, workload.batch_size = 16"
function settings_of(point) {
  return axes.map((axis) => `${axis.label} = ${setting_of(axis, point)}`).join(', ');
}
