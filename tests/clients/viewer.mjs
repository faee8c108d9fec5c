// Imports traces into the Chrome trace viewer in headless Chromium: no import warnings, everything that was written is
// there, and a screenshot of each to look at.
//   node viewer.mjs VIEWER_FOLDER PLAYWRIGHT_FOLDER SCREENSHOT_FOLDER TRACE...
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import {pathToFileURL} from 'node:url';
import {add_slice, check_traces, tenths} from './trace.mjs';

const [viewer, playwright, screenshots, ...files] = process.argv.slice(2);
const {chromium} = await import(pathToFileURL(path.join(playwright, 'index.mjs')));

const page_text = `<!DOCTYPE html>
<style>html, body, #viewer { margin: 0; width: 100%; height: 100%; }</style>
<script src="webcomponents.min.js"></script>
<link rel="import" href="trace_viewer_full.html">
<link rel="icon" href="data:,">
<body></body>`;

let trace_text = '';
const server = http.createServer((request, response) => {
  const name = path.basename(request.url);
  const send = (type, body) => response.setHeader('Content-Type', type).end(body);
  if (name === '') return send('text/html', page_text);
  if (name === 'trace') return send('application/json', trace_text);
  const file = path.join(viewer, name);
  if (!fs.existsSync(file)) return response.writeHead(404).end();
  send(name.endsWith('.js') ? 'text/javascript' : 'text/html', fs.readFileSync(file));
});
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));

// Runs in the page: shows the trace and returns what the viewer's model holds of it.
async function show_trace() {
  const text = await (await fetch('trace')).text();
  const model = new tr.Model();
  await new tr.importer.Import(model, new tr.importer.ImportOptions()).importTracesWithProgressDialog([text]);

  const container = document.createElement('track-view-container');
  container.id = 'track_view_container';
  const view = document.createElement('tr-ui-timeline-view');
  view.id = 'viewer';
  view.track_view_container = container;
  Polymer.dom(view).appendChild(container);
  Polymer.dom(document.body).appendChild(view);
  view.model = model;

  const processes = Object.values(model.processes);
  const slices = processes.flatMap((process) => Object.values(process.threads).flatMap((t) => t.sliceGroup.slices));
  const series = processes.flatMap((process) => Object.values(process.counters).flatMap((c) => c.series));
  return {
    warnings: model.importWarnings.map((warning) => warning.type),
    slices: slices.map(({category, duration}) => ({category, ns: Math.round(duration * 1e6)})),
    flows: model.flowEvents.map(({startSlice: a, endSlice: b}) =>
      ({launch: a.category.startsWith('cuda_'), from: a.args.correlation, to: b.args.correlation})),
    counters: series.flatMap((one) => one.samples.map((sample) => sample.value)),
  };
}

const browser = await chromium.launch({executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu']});
await check_traces('trace viewer', files, async (trace, written, expect) => {
  trace_text = trace.text;
  const page = await browser.newPage({viewport: {width: 1800, height: 1000}});
  page.on('pageerror', (error) => expect('error in the page', error.message, ''));
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  await page.waitForFunction(() => window.tr?.importer?.Import);
  const found = await page.evaluate(show_trace);
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  await page.screenshot({path: path.join(screenshots, `${trace.name.split('.')[0]}.png`)});
  await page.close();

  const warnings = {};
  for (const type of found.warnings) warnings[type] = (warnings[type] ?? 0) + 1;
  expect('import warnings', warnings, trace.known.viewer_warnings ?? {});
  const slices = {};
  for (const {category, ns} of found.slices) add_slice(slices, category, ns);
  expect('slices', slices, written.slices);
  expect('flows', found.flows.length, written.flows.pairs);
  const elsewhere = written.flows.launches - found.flows.filter(({launch, from, to}) => launch && from === to).length;
  expect('flows that miss their launch or its kernel', elsewhere, trace.known.viewer_flows_elsewhere ?? 0);
  const sum = tenths(found.counters.reduce((total, value) => total + value, 0));
  expect('counters', {count: found.counters.length, sum}, written.counters);
}).finally(() => browser.close());
server.close();
