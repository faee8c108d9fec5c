// Loads traces into Perfetto's trace processor: no errors, and everything that was written is there.
//   node perfetto.mjs TRACE_PROCESSOR_FOLDER TRACE...
import {check_traces, tenths} from './trace.mjs';
import {open_trace_processor} from './trace_processor.mjs';

const [folder, ...files] = process.argv.slice(2);
const engine = await open_trace_processor(folder);

// A launch and what it launches carry the same correlation: a flow that was bound to a neighbour is none of these.
const launches = `
  select count(*) as count from flow join slice a on slice_out = a.id join slice b on slice_in = b.id
  where a.category like 'cuda_%'
    and extract_arg(a.arg_set_id, 'args.correlation') = extract_arg(b.arg_set_id, 'args.correlation')`;

await check_traces('perfetto', files, async (trace, written, expect) => {
  await engine.load(trace.text);
  const errors = await engine.rows(
    "select name, value from stats where severity in ('error', 'data_loss') and value > 0");
  expect('errors', errors, []);
  const [orphans] = await engine.rows("select value from stats where name = 'flow_end_without_start'");
  expect('flow ends that found no start', orphans.value, written.flows.ends_without_start);

  // Instants have no category in Kineto's traces.
  const categories = await engine.rows(
    'select category, count(*) as count, sum(dur) as ns from slice where category is not null group by category');
  const slices = Object.fromEntries(categories.map(({category, count, ns}) => [category, {count, ns}]));
  expect('slices', slices, written.slices);

  const [flow] = await engine.rows('select count(*) as count from flow');
  expect('flows', flow.count, written.flows.pairs);
  const [launch] = await engine.rows(launches);
  const elsewhere = written.flows.launches - launch.count;
  expect('flows that miss their launch or its kernel', elsewhere, trace.known.perfetto_flows_elsewhere ?? 0);

  const [counter] = await engine.rows('select count(*) as count, ifnull(sum(value), 0) as sum from counter');
  expect('counters', {count: counter.count, sum: tenths(counter.sum)}, written.counters);
});
