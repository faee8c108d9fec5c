// The table itself, a page at a time, and why points failed.

const rows_at_once = 100;

// What a point lacks comes last either way.
function compare_keys(a, b, sign) {
  if (a === b) return 0;
  if (a === null || b === null) return a === null ? 1 : -1;
  return a < b ? -sign : sign;
}

function table_columns() {
  const columns = [...axis_columns(), ...metrics.map((metric) => metric_column(metric))];
  if (some_do_not_fit) {
    columns.push({head: 'fits memory', align: 'text', key: (point) => points.fits_memory[point],
                  text: (point) => failures.has(point) ? '' : points.fits_memory[point] ? 'yes' : 'no'});
  }
  if (failures.size) {
    columns.push({head: 'failure', align: 'text long', key: (point) => failures.get(point) ?? null,
                  text: (point) => failures.get(point) ?? ''});
  }
  return columns;
}

function point_table() {
  if (!all_points.length) return;
  const columns = table_columns();
  const scroll = element('div', {className: 'scroll'});
  const controls = element('div', {className: 'controls'});
  const state = {rows: [...all_points], first: 0, sorted_by: null, down: false};
  const sort_by = (column) => {
    state.down = state.sorted_by === column && !state.down;
    state.sorted_by = column;
    state.first = 0;
    const sign = state.down ? -1 : 1;
    state.rows.sort((a, b) => compare_keys(column.key(a), column.key(b), sign) || a - b);
    update();
  };
  const update = () => {
    const mark = (column) => column === state.sorted_by ? (state.down ? ' ▼' : ' ▲') : '';
    const shown = columns.map((column) =>
      ({...column, head: column.head + mark(column), on_click: () => sort_by(column)}));
    const rows = state.rows.slice(state.first, state.first + rows_at_once);
    scroll.replaceChildren(table_of(shown, rows, (point) => points.fits_memory[point] ? '' : 'unfit'));
    scroll.scrollTop = 0;
    const {first, rows: {length}} = state;
    const step = (text, to) => element('button', {
      textContent: text, disabled: to < 0 || to >= length, onclick: () => { state.first = to; update(); }});
    const steps = [step('back', first - rows_at_once), step('on', first + rows_at_once)];
    controls.replaceChildren(...(length > rows_at_once ? steps : []),
      `rows ${first + 1} to ${first + rows.length} of ${length.toLocaleString('en-US')}`);
  };
  update();
  document.querySelector('main').append(
    element('section', {id: 'table'}, [element('h2', {textContent: 'Table'}), controls, scroll]));
}

const most_examples = 10;

// A line per reason, for thousands of points may fail alike.
function failure_list() {
  if (!failures.size) return;
  const by_reason = new Map();
  for (const [point, why] of failures) {
    if (!by_reason.has(why)) by_reason.set(why, []);
    by_reason.get(why).push(point);
  }
  const items = [...by_reason].map(([why, failed]) => {
    const examples = failed.slice(0, most_examples).map((point) => element('li', {textContent: settings_of(point)}));
    const rest = failed.length - examples.length;
    if (rest > 0) examples.push(element('li', {textContent: `and ${rest} more: sort the table by failure`}));
    const head = `${counted(failed.length, 'point', 'points')}: ${why}`;
    return element('li', {textContent: head}, [element('ul', {}, examples)]);
  });
  document.querySelector('main').append(element('section', {id: 'failures'}, [
    element('h2', {textContent: `Failed: ${counted(failures.size, 'point', 'points')}`}), element('ul', {}, items)]));
}
