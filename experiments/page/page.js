// Head, texts and plots, table, failures and sources, in this order.
const main = document.querySelector('main');
main.append(
  element('h1', {textContent: data.title}),
  element('ul', {}, data.summary.map((line) => element('li', {textContent: line}))));
const plot_kinds = {lines: line_plot, heat_map, pareto: pareto_plot};
data.before.forEach(text_section);
for (const spec of data.plots) plot_kinds[spec.kind](spec);
data.after.forEach(text_section);
failure_list();
point_table();
if (data.source.text !== '') {
  const summary = element('summary', {textContent: data.source.title});
  const text = element('pre', {textContent: data.source.text});
  main.append(element('section', {}, [element('details', {}, [summary, text])]));
}
main.append(element('footer', {textContent:
  `Predictions by moeline ${data.version}. Plots by Apache ECharts ${echarts.version} (Apache License 2.0).`}));
