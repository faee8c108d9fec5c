// What lies where on the canvas, from top to bottom: rows of {kind, view, top, height, ...}.
const axis_height = 24;
const few_lanes = 8;  // there is room for higher bars

function rows_of(shown_rank, show_path) {
  const rows = [];
  let top = axis_height;
  const add = (row) => {
    rows.push({...row, top});
    top += row.height + row.gap;
  };
  const lanes = views.flatMap((view) => view.lanes).filter(({rank}) => shown_rank === null || rank === shown_rank);
  const [band, bar] = lanes.length <= few_lanes ? [18, 32] : [14, 20];
  for (const view of views) {
    if (views.length > 1) add({kind: 'title', view, height: 18, gap: 2});
    if (view.path.length && show_path) add({kind: 'path', view, height: 10, gap: 4});
    for (const lane of view.lanes) {
      if (shown_rank !== null && lane.rank !== shown_rank) continue;
      if (lane.has_band) add({kind: 'band', view, lane, height: band, gap: 0});
      add({kind: 'bars', view, lane, height: bar, gap: lane.has_band ? 6 : 2});
    }
    const rank = shown_rank ?? view.ranks[0];
    for (const use of view.uses) {
      if (use.rank === rank) add({kind: 'use', view, use, height: 34, gap: 6});
    }
  }
  return {rows, height: top};
}

// `short`: there is little room.
function row_label({kind, view, lane, use}, short) {
  if (kind === 'path') return 'what the end waited for';
  if (kind === 'title' || kind === 'band') return '';
  const {rank, name} = lane ?? use;
  if (name === 'slots') return `rank ${rank}`;
  if (view.ranks.length === 1) return name;
  return short ? `${rank} ${name}` : `rank ${rank} ${name}`;
}
