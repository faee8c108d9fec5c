// Columns of tables of points: their axes, and their metrics.
const axis_columns = () => axes.map((axis) => ({
  head: axis.label,
  align: axis.numbers ? '' : 'text',
  text: (point) => setting_of(axis, point),
  key: (point) => axis.at[point],
}));

// Decimals by the column's largest number: points stand one below the other. What would be lost in them has its own.
function column_format(metric) {
  const largest = metric.values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const decimals = Math.min(Math.max(4 - Math.floor(Math.log10(largest || 1)), 0), 6);
  const format = new Intl.NumberFormat('en-US', {minimumFractionDigits: decimals, maximumFractionDigits: decimals});
  const is_lost = (value) => value !== 0 && Math.abs(value) < 10 ** (1 - decimals);
  return (value) => is_lost(value) ? format_number(value) : format.format(value);
}

const metric_column = (metric, format = column_format(metric)) => ({
  head: metric.name,
  unit: metric.unit,
  text: (point) => has(metric, point) ? format(metric.values[point]) : '',
  key: (point) => metric.values[point],
});
