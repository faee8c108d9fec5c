// Beside the timeline: what is said of the bar that was clicked, and tables.
class Panel {
  constructor(go_to) {
    this.go_to = go_to;
    this.section = element('section', {id: 'selected'});
    this.section.setAttribute('aria-live', 'polite');
    this.clear();
  }

  clear() {
    this.section.replaceChildren(
      element('h2', {textContent: 'Why did it start when it did?'}),
      element('p', {className: 'note', textContent: 'Click a bar, or reach one by the keys below the timeline.'}));
  }

  show(view, bar) {
    const facts = facts_of(view, bar).flatMap(([label, text]) =>
      [element('dt', {textContent: label}), element('dd', {textContent: text})]);
    const title = element('h2', {textContent: kind_of(view, bar).name});
    this.section.replaceChildren(title, element('dl', {}, facts), ...this.reasons(view, bar));
  }

  reasons(view, bar) {
    const parts = [this.heading('Why it started then'), ...start_reasons(view, bar).map((line) => this.line(view, line))];
    const end = end_pieces(view, bar);
    if (end) parts.push(this.heading('Why it lasted so long'), this.line(view, end));
    if (view.on_path.has(bar)) parts.push(this.line(view, [path_text(view, bar)]));
    const {note} = view.phases[view.bars.phase[bar]] ?? {note: ''};
    if (note !== '') parts.push(this.heading('How the two sides differ'), this.line(view, [note]));
    const neighbours = neighbours_of(view, bar);
    if (neighbours.length) {
      parts.push(this.heading('Beside it'), this.line(view, listed(view, neighbours, 6, true)));
    }
    return parts;
  }

  heading(text) { return element('h3', {textContent: text}); }

  line(view, pieces) {
    return element('p', {}, pieces.map((piece) => typeof piece === 'string' ? piece :
      element('button', {className: 'link', textContent: piece.text, onclick: () => this.go_to(view, piece.bar)})));
  }
}

function table_section({title, alignment, header, rows}) {
  const columns = header.map((head, i) => ({
    head,
    align: (alignment[i] ?? alignment.at(-1)) === 'l' ? 'text' : '',
    text: (row) => row[i],
  }));
  const scroll = element('div', {className: 'scroll'}, [table_of(columns, rows)]);
  return element('section', {className: 'table'}, [element('h2', {textContent: title}), scroll]);
}

// Colours of the phases that the page has, and of the reasons of its path.
function legend() {
  const has = (tint) => views.some((view) => view.phases.some((phase) => tint_of(phase) === tint));
  const passes = ['backward', 'weight', 'both'].some(has);
  const names = passes ? {forward: 'forward', backward: 'backward', weight: 'weight gradients'} :
    {forward: has('second') ? 'first micro-batch' : 'phases', second: 'second micro-batch'};
  const swatch = (fill, text) => {
    const sample = element('i');
    sample.style.background = fill;
    return element('span', {}, [sample, text]);
  };
  const entries = () => {
    const colours = palette();
    const tints = Object.entries(names).filter(([tint]) => has(tint));
    const items = tints.map(([tint, name]) => swatch(colours.computes[tint], name));
    if (views.some((view) => view.kinds.some(({communicates}) => communicates))) {
      items.push(swatch(colours.communicates[tints[0]?.[0] ?? 'none'], 'paler: communication'));
    }
    const used = new Set(views.flatMap((view) => view.path.map(({reason}) => reason)));
    const reasons = data.reasons.map((name, i) => [name, i]).filter(([, i]) => used.has(i));
    return [...items, ...(reasons.length ? ['what the end waited for:'] : []),
            ...reasons.map(([name, i]) => swatch(colours.reasons[i], name))];
  };
  const line = element('p', {className: 'legend note'}, entries());
  dark_scheme.addEventListener('change', () => line.replaceChildren(...entries()));
  return line;
}
