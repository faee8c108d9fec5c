// Pieces of the page. Texts are set as text, never as HTML: they may hold anything.
function element(name, properties = {}, children = []) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// A labelled choice among `options`, each shown by `text_of`.
function choice(label, options, chosen, text_of, on_change) {
  const select = element('select', {}, options.map((option) => element('option', {textContent: text_of(option)})));
  select.selectedIndex = options.indexOf(chosen);
  select.addEventListener('change', () => on_change(options[select.selectedIndex]));
  return element('label', {textContent: label}, [select]);
}

// Columns: {head, unit, text(row), align: 'text' or nothing, on_click}.
function table_of(columns, rows, class_of = () => '') {
  const head = columns.map(({head: text, unit, align, on_click}) => {
    const title = on_click ? element('button', {textContent: text, onclick: on_click}) : text;
    return element('th', {className: align ?? ''}, [title, element('small', {textContent: unit ?? ''})]);
  });
  const body = rows.map((row) => element('tr', {className: class_of(row)}, columns.map((column) =>
    element('td', {className: column.align ?? '', textContent: column.text(row)}))));
  return element('table', {}, [element('thead', {}, [element('tr', {}, head)]), element('tbody', {}, body)]);
}
