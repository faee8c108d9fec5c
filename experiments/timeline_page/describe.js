// What is said of a bar, in words. A piece is a text, or {text, bar}: a bar to go to.
function time_text(ns) {
  const us = ns / 1000;
  const size = Math.abs(us);
  const [value, unit] = size >= 1e6 ? [us / 1e6, 's'] : size >= 1e4 ? [us / 1000, 'ms'] : [us, 'us'];
  return `${value.toFixed(size >= 1e4 ? 3 : size < 10 ? 2 : 1)} ${unit}`;
}

function phase_text(view, phase) {
  if (phase < 0 || view.phases[phase].name === '') return '';
  const {name, layer, micro_batch} = view.phases[phase];
  return is_slot(view.phases[phase]) ? `slot ${name}, chunk ${layer}, micro-batch ${micro_batch}` :
    `${name}, layer ${layer}, micro-batch ${micro_batch}`;
}

const is_slot = (phase) => ['F', 'B', 'W', 'F&B'].includes(phase.name);

const kind_of = (view, bar) => view.kinds[view.bars.kind[bar]];
const lane_of = (view, bar) => view.lanes[view.bars.lane[bar]];
const length_of = (view, bar) => view.bars.end[bar] - view.bars.start[bar];

function lane_text(view, lane) {
  return view.ranks.length > 1 || view.lanes.length > 1 ? `rank ${lane.rank}, ${lane.name}` : lane.name;
}

// Of slots, and of what was measured, nobody knows what they would take alone; of the latter what SMs that
// communication held cost them.
function speed_text(view, bar) {
  const length = length_of(view, bar);
  const slowed = view.bars.slowed[bar];
  const alone = length - slowed;
  const phase = view.phases[view.bars.phase[bar]];
  if (phase && is_slot(phase) && lane_of(view, bar).name === 'slots') return time_text(length);
  if (view.measured) return time_text(length) + (slowed < 1 ? '' : `, ${time_text(slowed)} of it for SMs that communication held`);
  if (view.bars.held[bar] && slowed > 0) return `${time_text(length)}, ${time_text(alone)} of it its own work`;
  if (slowed < 1 || alone <= 0) return `${time_text(length)}, as long as alone`;
  return `${time_text(length)}, alone ${time_text(alone)}: slowed ${(length / alone).toFixed(2)} times`;
}

const bar_piece = (view, bar) => ({text: kind_of(view, bar).name, bar});

// "a, b and 3 more"
function listed(view, neighbours, most, with_time) {
  const pieces = [];
  neighbours.slice(0, most).forEach(({bar, overlap}, i) => {
    pieces.push(i ? ', ' : '', bar_piece(view, bar));
    if (with_time) pieces.push(` (${lane_of(view, bar).name}, ${time_text(overlap)})`);
  });
  if (neighbours.length > most) pieces.push(` and ${neighbours.length - most} more`);
  return pieces;
}

function neighbours_of(view, bar) {
  const {start, end, lane} = view.bars;
  return bars_during(view, lane_of(view, bar).rank, start[bar], end[bar])
    .filter(({bar: other}) => lane[other] !== lane[bar] && !lane_of(view, other).name.startsWith('host'));
}

// What an event is, seen from `when`, at which it let another one happen.
function event_pieces(view, event, when) {
  if (event.text !== undefined) return [event.text];
  const what = event.of_start ? 'the start of ' : view.bars.end[event.bar] > when + 1 ? 'work inside ' : 'the end of ';
  return [what, bar_piece(view, event.bar), ` (${lane_text(view, lane_of(view, event.bar))})`];
}

// Why a bar started when it did: a line each.
function start_reasons(view, bar) {
  const {start, delay, sms_wait, released} = view.bars;
  const released_at = start[bar] - delay[bar] - sms_wait[bar];
  const lines = [];
  if (released[bar]) {
    lines.push([`Released at ${time_text(released_at)} by `, ...event_pieces(view, released[bar], released_at), '.']);
  } else {
    lines.push(previous_pieces(view, bar));
  }
  if (delay[bar] > 0) lines.push([`Then ${time_text(delay[bar])} until it was ready${view.measured ? '' : ': launch gap, latency'}.`]);
  if (sms_wait[bar] > 0) lines.push(sms_pieces(view, bar));
  return lines;
}

// Where no order is known, the bar before it on its lane.
function previous_pieces(view, bar) {
  const {bars} = lane_of(view, bar);
  const position = bars.indexOf(bar);
  if (position === 0) return ['Nothing on this page came before it.'];
  const previous = bars[position - 1];
  const gap = view.bars.start[bar] - view.bars.end[previous];
  return ['Before it on its lane: ', bar_piece(view, previous), `, which ended ${time_text(Math.max(gap, 0))} before.`];
}

function sms_pieces(view, bar) {
  const {start, sms_wait} = view.bars;
  const holders = bars_during(view, lane_of(view, bar).rank, start[bar] - sms_wait[bar], start[bar])
    .filter(({bar: other}) => other !== bar && kind_of(view, other).task_class !== 'host');
  return [`Then it waited ${time_text(sms_wait[bar])} for ${kind_of(view, bar).sms || 'its'} SMs, which were held by `,
          ...listed(view, holders, 3, true), '.'];
}

function end_pieces(view, bar) {
  const event = view.bars.held[bar];
  return event && ['Its end waited for ', ...event_pieces(view, event, view.bars.end[bar]), '.'];
}

function path_text(view, bar) {
  const stretches = view.on_path.get(bar);
  if (!stretches) return '';
  const parts = stretches.map(({reason, start, end}) => `${time_text(end - start)} ${data.reasons[reason] ?? 'in all'}`);
  return `The end waited for it: ${parts.join(', ')}.`;
}

// Label and text of every fact, in order.
function facts_of(view, bar) {
  const kind = kind_of(view, bar);
  const facts = [
    ['phase', phase_text(view, view.bars.phase[bar])],
    ['where', lane_text(view, lane_of(view, bar))],
    ['start', time_text(view.bars.start[bar])],
    ['takes', speed_text(view, bar)],
    ['class', kind.task_class + (kind.sms ? `, ${kind.sms} SMs` : '')],
    [view.measured ? 'kernel' : 'price', kind.detail],
  ];
  return facts.filter(([, text]) => text !== '');
}
