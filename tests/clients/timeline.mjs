// Opens pages of timelines in headless Chromium without a network, wide and on a phone: no errors, nothing loaded,
// nothing beyond the screen; zooms, pans, hovers, clicks and follows what released a bar, and checks what is said. A
// screenshot of each to look at.
//   node timeline.mjs PLAYWRIGHT_FOLDER SCREENSHOT_FOLDER PAGE...
import path from 'node:path';
import {pathToFileURL} from 'node:url';

const [playwright, screenshots, ...files] = process.argv.slice(2);
const {chromium} = await import(pathToFileURL(path.join(playwright, 'index.mjs')));
const slowest_ms = 3000;

// Runs in the page: a bar in the middle of what is shown that is wide enough to hit, where it is, and what is known of
// it from the data alone.
function pick_bar() {
  const {painter} = timeline;
  let best = null;
  for (const row of painter.rows.filter(({kind}) => kind === 'bars')) {
    const {view, lane} = row;
    for (const bar of lane.bars) {
      const from = Math.max(painter.x_of(view.bars.start[bar]), painter.gutter);
      const until = Math.min(painter.x_of(view.bars.end[bar]), painter.width);
      const released = view.bars.released[bar]?.bar !== undefined;
      const score = until - from + (released ? 1000 : 0);
      if (until - from > 4 && (!best || score > best.score)) {
        best = {score, x: (from + until) / 2, y: row.top + row.height / 2, view: views.indexOf(view), bar};
      }
    }
  }
  if (!best) return null;
  const {kinds, bars} = data.views[best.view];
  const name = data.views[best.view].texts[kinds[bars.kind[best.bar]][0]];
  return {...best, name, released: views[best.view].bars.released[best.bar]};
}

const range = (page) => page.evaluate(() => ({from: timeline.from, until: timeline.until}));
const span = async (page) => {
  const {from, until} = await range(page);
  return until - from;
};
const drawn = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
const selected = (page) => page.locator('#selected').innerText();

async function check_range(page, box, expect) {
  await page.locator('button', {hasText: /^all$/}).click();
  const whole = await span(page);
  await page.mouse.move(box.x + box.width * 0.6, box.y + 40);
  for (let i = 0; i < 8; ++i) await page.mouse.wheel(0, -200);
  await drawn(page);
  const zoomed = await range(page);
  expect('the wheel zooms', zoomed.until - zoomed.from < whole / 20, true);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.4, box.y + 40, {steps: 4});
  await page.mouse.up();
  const panned = await range(page);
  expect('dragging goes on in time', panned.from > zoomed.from, true);
  expect('and does not zoom', Math.abs((panned.until - panned.from) / (zoomed.until - zoomed.from) - 1) < 1e-9, true);
  await page.locator('canvas').focus();
  await page.keyboard.press('ArrowDown');
  expect('arrow down zooms out', await span(page) > panned.until - panned.from, true);
  await page.keyboard.press('0');
  expect('0 shows all', await span(page), whole);
}

// By touch, as Chromium would send it.
async function check_pinch(page, box, expect) {
  const before = await span(page);
  await page.evaluate(({width}) => {
    const canvas = document.querySelector('canvas');
    const send = (type, pointerId, x) => canvas.dispatchEvent(new PointerEvent(type,
      {pointerId, pointerType: 'touch', clientX: canvas.getBoundingClientRect().left + x, clientY: 60, bubbles: true}));
    canvas.setPointerCapture = () => {};
    send('pointerdown', 11, width * 0.5);
    send('pointerdown', 12, width * 0.6);
    send('pointermove', 12, width * 0.9);
    send('pointerup', 11, width * 0.5);
    send('pointerup', 12, width * 0.9);
  }, box);
  expect('two fingers zoom', await span(page) < before / 2, true);
  await page.locator('button', {hasText: /^all$/}).click();
}

async function check_bar(page, expect) {
  const window_button = page.locator('.controls button').nth(5);
  if (await window_button.count()) await window_button.click();
  await drawn(page);
  let found = await page.evaluate(pick_bar);
  for (let i = 0; i < 12 && !found?.released; ++i) {
    await page.locator('button', {hasText: /^\+$/}).click();
    await drawn(page);
    found = await page.evaluate(pick_bar);
  }
  expect('a bar to click', found !== null, true);
  if (!found) return;
  await page.locator('canvas').scrollIntoViewIfNeeded();
  await page.locator('canvas').hover({position: {x: found.x, y: found.y}});
  const tip = await page.locator('.tip').innerText();
  expect('the tip names the bar', tip.slice(0, found.name.length), found.name);
  expect('the tip says how long it takes', /takes: [\d.]+ (us|ms|s)/.test(tip), true);
  await page.locator('canvas').click({position: {x: found.x, y: found.y}});
  const said = await selected(page);
  expect('a click names the bar', said.slice(0, found.name.length), found.name);
  expect('and says why it started', /Released at|Before it on its lane|Nothing on this page/.test(said), true);
  if (found.released?.bar === undefined) return;
  const before = await page.evaluate(({view, released}) => kind_of(views[view], released.bar).name, found);
  await page.locator('canvas').focus();
  await page.keyboard.press('b');
  expect('b follows to what released it', (await selected(page)).slice(0, before.length), before);
}

async function check_path(page, expect) {
  const box = page.locator('#path');
  if (!await box.count()) return;
  await box.check();
  await drawn(page);
  const covered = await page.evaluate(() => views.every((view) => view.path.every(({bar, start, end}) =>
    start <= end && bar < view.bars.start.length)));
  expect('stretches of the path are of bars', covered, true);
}

async function check_ranks(page, expect) {
  const ranks = page.locator('.controls select');
  if (!await ranks.count()) return;
  await ranks.selectOption({index: 1});
  await drawn(page);
  const shown = await page.evaluate(() => new Set(timeline.painter.rows.flatMap(({lane}) => lane ? [lane.rank] : [])).size);
  expect('a chosen rank is alone', shown, 1);
  await ranks.selectOption({index: 0});
}

// How much of the canvas is not its ground.
function ink() {
  const canvas = document.querySelector('canvas');
  const {data: pixels} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let i = 0; i < pixels.length; i += 4) count += Math.abs(pixels[i] - pixels[0]) + Math.abs(pixels[i + 2] - pixels[2]) > 40;
  return count / (canvas.width * canvas.height);
}

async function check_file(browser, file, {width, height, colorScheme}) {
  const wrong = [];
  const expect = (what, found, expected) => {
    if (found !== expected) wrong.push(`${what}: ${found}, expected ${expected}`);
  };
  const context = await browser.newContext({viewport: {width, height}, colorScheme, offline: true});
  const page = await context.newPage();
  page.on('pageerror', (error) => wrong.push(`error in the page: ${error.message}`));
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) wrong.push(`console: ${message.text()}`);
  });
  page.on('dialog', (dialog) => { wrong.push('a text ran as a script'); dialog.dismiss(); });
  page.on('request', (request) => {
    if (!/^(file|data):/.test(request.url())) wrong.push(`it loads ${request.url()}`);
  });
  const started = Date.now();
  await page.goto(pathToFileURL(path.resolve(file)).href);
  await drawn(page);
  const ms = Date.now() - started;
  expect(`opens within ${slowest_ms} ms`, ms <= slowest_ms, true);
  expect('ink', await page.evaluate(ink) > 0.02, true);
  const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  expect('pixels beyond the screen', await overflow(), 0);
  const box = await page.locator('canvas').boundingBox();
  await check_range(page, box, expect);
  await check_pinch(page, box, expect);
  await check_ranks(page, expect);
  await check_bar(page, expect);
  await check_path(page, expect);
  expect('pixels beyond the screen, with a bar selected', await overflow(), 0);
  const name = path.basename(file, '.html');
  await page.screenshot({path: path.join(screenshots, `${name}_${width}.png`), fullPage: true});
  const bars = await page.evaluate(() => views.reduce((sum, view) => sum + view.bars.start.length, 0));
  await context.close();
  console.log(`timeline page: ${name} at ${width}: ${wrong.length ? 'FAILED' : 'ok'}, ${bars} bars, drawn in ${ms} ms`);
  for (const line of wrong.slice(0, 20)) console.log(`  ${line}`);
  if (wrong.length) process.exitCode = 1;
}

const browser = await chromium.launch({executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu']});
for (const file of files) {
  await check_file(browser, file, {width: 1600, height: 1000, colorScheme: 'light'});
  await check_file(browser, file, {width: 420, height: 900, colorScheme: 'dark'});
}
await browser.close();
