// What the text of a trace says, counted without any of the clients, and the loop that both node clients share.
import fs from 'node:fs';
import path from 'node:path';
import zlib from 'node:zlib';

const peculiarities = JSON.parse(fs.readFileSync(new URL('peculiarities.json', import.meta.url)));

function read_trace(file) {
  const bytes = fs.readFileSync(file);
  const text = (file.endsWith('.gz') ? zlib.gunzipSync(bytes) : bytes).toString();
  const name = path.basename(file);
  return {name, text, events: JSON.parse(text).traceEvents, known: peculiarities[name] ?? {}};
}

// Slices by category: how many, and the sum of their durations in ns.
export function slices(trace) {
  const sums = {};
  for (const {ph, cat, dur} of trace.events) if (ph === 'X') add_slice(sums, cat, Math.round(dur * 1000));
  return sums;
}

export function add_slice(sums, category, ns) {
  sums[category] ??= {count: 0, ns: 0};
  sums[category].count += 1;
  sums[category].ns += ns;
}

// A flow needs both ends: Kineto writes many of which the other one was not recorded.
export function flows(trace) {
  const ids = (ph) => trace.events.filter((event) => event.ph === ph).map((event) => `${event.cat} ${event.id}`);
  const [starts, ends] = [ids('s'), ids('f')];
  const [started, ended] = [new Set(starts), new Set(ends)];
  const pairs = ends.filter((id) => started.has(id));
  return {
    pairs: pairs.length,
    launches: pairs.filter((id) => id.startsWith('ac2g ')).length,
    ends_without_start: ends.filter((id) => !started.has(id)).length,
    starts_without_end: starts.filter((id) => !ended.has(id)).length,
  };
}

export function counters(trace) {
  const values = trace.events.filter((event) => event.ph === 'C').flatMap((event) => Object.values(event.args));
  return {count: values.length, sum: tenths(values.reduce((sum, value) => sum + value, 0))};
}

// The writer's counters have one decimal.
export const tenths = (value) => Math.round(value * 10) / 10;

const sorted_text = (value) => JSON.stringify(value, (_, inner) =>
  inner?.constructor === Object ? Object.fromEntries(Object.entries(inner).sort()) : inner);

// Lets `check(trace, expect)` look at each trace; `expect(what, found, wanted)` notes what differs.
export async function check_traces(client, files, check) {
  for (const file of files) {
    const wrong = [];
    const expect = (what, found, wanted) => {
      const [a, b] = [found, wanted].map(sorted_text);
      if (a !== b) wrong.push(`${what}: ${a}, not ${b}`);
    };
    try {
      const trace = read_trace(file);
      const written = {slices: slices(trace), flows: flows(trace), counters: counters(trace)};
      const {ends_without_start, starts_without_end} = written.flows;
      expect('flow ends without a start', ends_without_start, trace.known.flow_ends_without_start ?? 0);
      expect('flow starts without an end', starts_without_end, trace.known.flow_starts_without_end ?? 0);
      await check(trace, written, expect);
      const count = Object.values(written.slices).reduce((sum, {count}) => sum + count, 0);
      const what = `${count} slices, ${written.flows.pairs} flows, ${written.counters.count} counter values`;
      console.log(`${client}: ${trace.name}: ${wrong.length ? 'FAILED' : 'ok'}, ${what}`);
    } catch (error) {
      wrong.push(error.stack ?? error);
      console.log(`${client}: ${path.basename(file)}: FAILED`);
    }
    for (const line of wrong) console.log(`  ${line}`);
    if (wrong.length) process.exitCode = 1;
  }
}
