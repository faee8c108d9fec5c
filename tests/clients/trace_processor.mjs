// Perfetto's trace processor in node. The engine is made for a browser's worker: it is handed a `self` with the bytes of
// the WebAssembly module, and one end of a message port, which here is a plain function call.
import fs from 'node:fs';
import path from 'node:path';
import vm from 'node:vm';
import {pathToFileURL} from 'node:url';

const edits = [
  // The module is the 32-bit one; newer nodes could run the other, which is not there.
  ['this.useMemory64 = hasMemory64Support();', 'this.useMemory64 = false;'],
  ['locateFile: (s) => s,', 'locateFile: (s) => s, wasmBinary: self.wasm,'],
  ['() => deferredRuntimeInitialized.resolve(),', '() => { deferredRuntimeInitialized.resolve(); self.started(); },'],
];

export async function open_trace_processor(folder) {
  let glue = fs.readFileSync(path.join(folder, 'engine_bundle.node.js'), 'utf8');
  for (const [from, to] of edits) {
    if (!glue.includes(from)) throw new Error(`engine_bundle.node.js has no "${from}"`);
    glue = glue.replace(from, to);
  }
  const self = {wasm: fs.readFileSync(path.join(folder, 'trace_processor.wasm')), location: {href: ''}};
  const started = new Promise((resolve) => { self.started = resolve; });
  const load = vm.runInThisContext(`(function (self, WorkerGlobalScope, process) {${glue}\n})`);
  load(self, function WorkerGlobalScope() {}, undefined);
  await started;
  await new Promise(setImmediate);  // the engine opens its buffer in a promise of its own

  const {EngineBase} = await import(pathToFileURL(path.join(folder, 'engine.mjs')));
  class Engine extends EngineBase {
    mode = 'WASM';
    id = 'trace_processor';
    port = {postMessage: (bytes) => this.onRpcResponseBytes(bytes)};
    rpcSendRequestBytes(data) { this.port.onmessage({data}); }
    async rows(sql) {
      const result = await this.query(sql);
      const rows = [];
      for (const it = result.iter({}); it.valid(); it.next()) {
        const value = (column) => { const v = it.get(column); return typeof v === 'bigint' ? Number(v) : v; };
        rows.push(Object.fromEntries(result.columns().map((column) => [column, value(column)])));
      }
      return rows;
    }
    async load(text) {
      await this.resetTraceProcessor({});
      await this.parse(Buffer.from(text));
      await this.notifyEof();
    }
  }
  const engine = new Engine();
  self.onmessage({data: engine.port});
  return engine;
}
