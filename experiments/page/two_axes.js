// Plots of a metric over two axes, at fixed values of the others: their controls, and the points they show.

// The values of the other axes at which most points have the metric, of equals the first: with conditions in a study,
// others may have none.
function fullest_values(metric, free) {
  const others = axes.filter((axis) => !free.includes(axis));
  const counts = new Map();
  for (const point of all_points) {
    const key = others.map((axis) => axis.at[point]).join();
    const entry = counts.get(key) ?? {point, count: 0};
    entry.count += has(metric, point) ? 1 : 0;
    counts.set(key, entry);
  }
  const {point} = [...counts.values()].reduce((a, b) => b.count > a.count ? b : a);
  return new Map(others.map((axis) => [axis, axis.at[point]]));
}

function points_at(fixed) {
  return all_points.filter((point) => [...fixed].every(([axis, place]) => axis.at[point] === place));
}

// `roles`: what the two axes are called; `draw(chosen)` is called at first and after every change.
function two_axes_plot(plot, {metric, first, second, scale}, roles, draw) {
  const chosen = {metric, scale, free: [first, second]};
  const choose_axis = (role, axis) => {
    const other = 1 - role;
    if (chosen.free[other] === axis) chosen.free[other] = chosen.free[role];
    chosen.free[role] = axis;
    start();
  };
  const start = () => {
    chosen.fixed = fullest_values(chosen.metric, chosen.free);
    update();
  };
  const update = () => {
    const pick = (label, options, value, text_of, set) =>
      choice(label, options, value, text_of, (option) => { set(option); update(); });
    plot.controls.replaceChildren(
      pick('metric', metrics, chosen.metric, metric_label, (option) => { chosen.metric = option; }),
      ...roles.slice(0, axes.length).map((role, i) =>
        choice(role, axes, chosen.free[i], (axis) => axis.label, (axis) => choose_axis(i, axis))),
      pick('scale', value_scales, chosen.scale, (option) => option, (option) => { chosen.scale = option; }),
      ...[...chosen.fixed].map(([axis, place]) => pick(`${axis.label} =`, axis.values.map((_, i) => i), place,
        (i) => axis.values[i], (option) => { chosen.fixed.set(axis, option); })));
    draw(chosen, points_at(chosen.fixed));
  };
  start();
}

// What a plot does not show, in words.
function note_of(shown, {metric, scale}) {
  const drawn = shown.filter((point) => drawable(metric, scale, point));
  const parts = [counted(drawn.length, 'point', 'points')];
  const failed = shown.filter((point) => failures.has(point)).length;
  if (failed > 0) parts.push(`${failed} failed`);
  const without = shown.length - drawn.length - failed;
  if (without > 0) parts.push(`${without} without ${scale === 'log' ? 'a positive ' : ''}${metric.name}`);
  return parts.join(', ');
}
