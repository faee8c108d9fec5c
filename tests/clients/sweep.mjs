// Opens pages of `moeline sweep --html` and `moeline plan --html` in headless Chromium without a network: no errors,
// nothing loaded, every plot has drawn what the table says, whatever is chosen, nothing wider than a telephone's screen or
// a large one, and a screenshot of each on both to look at.
//   node sweep.mjs PLAYWRIGHT_FOLDER SCREENSHOT_FOLDER PAGE...
import path from 'node:path';
import {pathToFileURL} from 'node:url';

const [playwright, screenshots, ...files] = process.argv.slice(2);
const {chromium} = await import(pathToFileURL(path.join(playwright, 'index.mjs')));

// Runs in the page: what each plot drew, against the table by other means.
function look_at_plots() {
  const dominates = (a, b, better) => {
    const signs = better.map((which) => which === 'higher' ? 1 : -1);
    const gains = a.map((value, i) => signs[i] * (value - b[i]));
    return gains.every((gain) => gain >= 0) && gains.some((gain) => gain > 0);
  };
  const inked = (canvas) => {
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', {willReadFrequently: true});
    copy.drawImage(canvas, 0, 0);
    const {data} = copy.getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let i = 0; i < data.length; i += 4) count += data[i + 3] > 0 && data[i] + data[i + 1] + data[i + 2] < 600;
    return count;
  };
  return [...document.querySelectorAll('section[data-kind]')].map((section) => {
    const {kind} = section.dataset;
    const series = echarts.getInstanceByDom(section.querySelector('.chart')).getOption().series;
    const of_table = series.filter(({type}) => kind !== 'pareto' || type === 'scatter');
    const drawn = of_table.flatMap(({data}) => data)
      .filter((item) => item.point !== undefined);
    const said = section.querySelector('.note').textContent;
    const ink = inked(section.querySelector('canvas'));
    const found = {kind, ink, series: of_table.length, drawn: drawn.length, said};
    if (kind !== 'pareto') return found;
    const chosen = [...section.querySelectorAll('.controls select')].map((select) => select.selectedOptions[0].textContent);
    const better = chosen.slice(0, 2).map((text) => text.includes('higher') ? 'higher' : 'lower');
    const apart = axes.find(({label}) => label === chosen[3]);  // the axis with a front for each value
    const rivals = (a, b) => !apart || apart.at[a.point] === apart.at[b.point];
    const fitting = drawn.filter(({point}) => points.fits_memory[point]);
    const expected = fitting.filter((a) => !fitting.some((b) => rivals(a, b) && dominates(b.value, a.value, better)));
    const sorted = (items) => items.map(({point}) => point).sort((a, b) => a - b).join();
    const lines = series.filter(({name}) => name === 'Pareto front' || name.startsWith('front: '));
    const front = sorted(lines.flatMap(({data}) => data));
    return {...found, front, expected_front: sorted(expected), rows: section.querySelectorAll('tbody tr').length};
  });
}

async function check_plots(page, expect) {
  const plots = await page.evaluate(look_at_plots);
  for (const {kind, ink, series, drawn, said, front, expected_front, rows} of plots) {
    expect(`${kind}: ink`, ink > 500, true);
    expect(`${kind}: has series`, series > 0, true);
    // A heat map's failed points are cells, too.
    const failed = kind === 'heat_map' ? Number(/(\d+) failed/.exec(said)?.[1] ?? 0) : 0;
    const counted = Number(/^([\d,]+) point/.exec(said)[1].replaceAll(',', ''));
    expect(`${kind}: points it draws, and says`, drawn - failed, counted);
    expect(`${kind}: front`, front, expected_front);
    if (kind === 'pareto') expect('front, as rows', rows, front === '' ? 0 : front.split(',').length);
  }
  return plots;
}

// Every option of every selector, one after the other.
async function choose_everything(page, expect) {
  for (const kind of ['pareto', 'lines', 'heat_map']) {
    const selects = page.locator(`section[data-kind=${kind}] select`);
    for (let i = 0; i < await selects.count(); ++i) {
      const options = await selects.nth(i).locator('option').count();
      for (let option = 0; option < options; ++option) {
        if (i >= await selects.count()) break;  // another axis may have left fewer
        await selects.nth(i).selectOption({index: option});
        const label = await selects.nth(i).locator('xpath=..').evaluate((element) => element.firstChild.textContent);
        const chosen = `${kind}, ${label} ${option}`;
        await check_plots(page, (what, found, expected) => expect(`${chosen}: ${what}`, found, expected));
      }
    }
  }
}

// No plot, table or text makes the page wider than the screen.
async function look_at_width(page, width, file, expect) {
  await page.setViewportSize({width, height: 900});
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  expect(`width on a screen of ${width} pixels`, await page.evaluate(() => document.documentElement.scrollWidth), width);
  await page.screenshot({path: `${file}_${width}.png`, fullPage: true});
}

// Of a plan: the answer comes first, and every limit that a plot has the metric of is drawn.
async function check_plan(page, expect) {
  if (await page.evaluate(() => data.before.length === 0)) return;
  expect('first section', await page.locator('section').first().evaluate((each) => each.className), 'read');
  expect('figures', await page.locator('.figure').count(), await page.evaluate(() =>
    data.before.concat(data.after).reduce((sum, {figures}) => sum + figures.length, 0)));
  const [limits, drawn] = await page.evaluate(() => {
    if (data.plots.length === 0) return [0, 0];
    const plot = data.plots[0];
    const series = echarts.getInstanceByDom(document.querySelector('.chart')).getOption().series;
    return [plot.limits.filter(({metric}) => metric === plot.x || metric === plot.y).length,
            series.filter(({name}) => name === 'limit').flatMap(({markLine}) => markLine.data).length];
  });
  expect('limits drawn', drawn, limits);
  const button = page.locator('section.read button').first();
  if (await button.count() === 0) return;
  await button.click();
  await page.waitForFunction(() => document.querySelector('section.read button').textContent !== 'copy');
  expect('what is copied', await page.evaluate(() => getSelection().toString().trim()),
         await page.evaluate(() => data.after.at(-1).commands[0].text.trim()));
}

async function check_table(page, expect) {
  const [all, failed] = await page.evaluate(() => [all_points.length, failures.size]);
  const rows = () => page.locator('#table tbody tr').count();
  expect('rows at first', await rows(), Math.min(all, 100));
  const last_cell = () => page.locator('#table tbody tr').first().locator('td').last().textContent();
  expect('listed failures', await page.locator('#failures').count(), failed > 0 ? 1 : 0);
  if (failed === 0) return;
  await page.locator('#table th button').last().click();
  expect('failures come first when sorted by', (await last_cell()) !== '', true);
}

const browser = await chromium.launch({executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu']});
for (const file of files) {
  const wrong = [];
  const expect = (what, found, expected) => {
    if (found !== expected) wrong.push(`${what}: ${found}, expected ${expected}`);
  };
  const context = await browser.newContext({viewport: {width: 1200, height: 900}, offline: true});
  const page = await context.newPage();
  page.on('pageerror', (error) => wrong.push(`error in the page: ${error.message}`));
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) wrong.push(`console: ${message.text()}`);
  });
  page.on('dialog', (dialog) => { wrong.push('a text ran as a script'); dialog.dismiss(); });
  page.on('request', (request) => {
    if (!/^(file|data|blob):/.test(request.url())) wrong.push(`it loads ${request.url()}`);
  });
  const started = Date.now();
  await page.goto(pathToFileURL(path.resolve(file)).href);
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  const ms = Date.now() - started;
  const name = path.basename(file, '.html');
  const plots = await check_plots(page, expect);
  const wanted = await page.evaluate(() => data.plots.map(({kind}) => kind).join());
  expect('plots', plots.map(({kind}) => kind).join(), wanted);
  await check_table(page, expect);
  await check_plan(page, expect);
  for (const width of [420, 1600]) await look_at_width(page, width, path.join(screenshots, name), expect);
  const count = await page.evaluate(() => all_points.length);
  if (count < 1000) await choose_everything(page, expect);
  await context.close();
  const what = `${count} points, ${plots.length} plots, drawn in ${ms} ms`;
  console.log(`sweep page: ${name}: ${wrong.length ? 'FAILED' : 'ok'}, ${what}`);
  for (const line of wrong.slice(0, 20)) console.log(`  ${line}`);
  if (wrong.length) process.exitCode = 1;
}
await browser.close();
