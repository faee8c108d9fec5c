// What is read and not plotted: figures, sentences, tables, commands to copy.
function figure_of({label, value, note}) {
  return element('div', {className: 'figure'}, [
    element('span', {textContent: label}), element('strong', {textContent: value}),
    element('small', {textContent: note})]);
}

// The first row is the head; a letter for each column: l is text.
function text_table({alignment, rows: [head, ...rows]}) {
  const columns = head.cells.map((name, i) => ({
    head: name,
    align: alignment[Math.min(i, alignment.length - 1)] === 'l' ? 'text' : '',
    text: ({cells}) => cells[i] ?? '',
  }));
  return element('div', {className: 'scroll'}, [table_of(columns, rows)]);
}

// Where the browser keeps the clipboard to itself, the text is selected at least.
function commands_of({title, text}) {
  const shown = element('pre', {textContent: text});
  const copy = async () => {
    getSelection().selectAllChildren(shown);
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = 'copied';
    } catch {
      button.textContent = 'selected: copy it';
    }
  };
  const button = element('button', {textContent: 'copy', onclick: copy});
  return element('div', {}, [element('div', {className: 'controls'}, [element('strong', {textContent: title}), button]), shown]);
}

function text_section({title, figures, lines, tables, commands, svg}) {
  const section = element('section', {className: 'read'}, [element('h2', {textContent: title})]);
  if (figures.length) section.append(element('div', {className: 'figures'}, figures.map(figure_of)));
  section.append(...lines.map((line) => element('p', {textContent: line})),
                 ...tables.map(text_table), ...commands.map(commands_of));
  if (svg) section.append(element('div', {className: 'picture', innerHTML: svg}));
  main.append(section);
}
