// Colours as in the papers: forward orange, backward green, weight gradients blue; communication paler. Phases of
// inference have no pass and go by micro-batch.
const dark_scheme = matchMedia('(prefers-color-scheme: dark)');
const palettes = {
  light: {
    ground: '#ffffff', row: '#f4f5f7', grid: '#dfe2e6', text: '#1c1e21', faint: '#5f6670', accent: '#c2185b', use: '#8fa8c4',
    label: '#1c1e21',
    computes: {none: '#b8bcc2', forward: '#f5a742', backward: '#63b463', weight: '#6aa5dc', second: '#b08ad6'},
    communicates: {none: '#e0e3e7', forward: '#ffd9a8', backward: '#bfe3bf', weight: '#c5ddf3', second: '#e0d0f0'},
    reasons: ['#4c78a8', '#e45756', '#b279a2', '#9aa0a6', '#eeca3b', '#d67195'],
  },
  dark: {
    ground: '#1b1e23', row: '#23272d', grid: '#353a42', text: '#e6e8eb', faint: '#9aa3ad', accent: '#ff5c97', use: '#4d6a8a',
    label: '#ffffff',
    computes: {none: '#6b727b', forward: '#c9741a', backward: '#3c8a45', weight: '#3a74b0', second: '#8659b8'},
    communicates: {none: '#40454d', forward: '#6e4a20', backward: '#2b5631', weight: '#284664', second: '#503a69'},
    reasons: ['#6f9bd1', '#f07a78', '#c795b8', '#7b838c', '#d8b530', '#c4608a'],
  },
};
const palette = () => dark_scheme.matches ? palettes.dark : palettes.light;

// As tint.hpp has it.
function tint_of(phase) {
  if (!phase || phase.name === '') return 'none';
  const {name, micro_batch} = phase;
  const is = (slot) => name === slot || name.endsWith(`(${slot})`);
  if (is('F&B')) return 'both';
  if (is('F')) return 'forward';
  if (is('B')) return 'backward';
  if (is('W')) return 'weight';
  return micro_batch % 2 === 0 ? 'forward' : 'second';
}

function fill_of(phase, communicates, colours) {
  const tint = tint_of(phase);
  return (communicates ? colours.communicates : colours.computes)[tint === 'both' ? 'forward' : tint];
}

function fill_of_bar(view, bar, colours) {
  const kind = kind_of(view, bar);
  return fill_of(kind.task_class === 'host' ? null : view.phases[view.bars.phase[bar]], kind.communicates, colours);
}
