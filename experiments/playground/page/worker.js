// What runs in the worker, after Go's wasm_exec.js: it starts the engine and hands
// questions to it, in the order in which they come.
"use strict";
self.ready = () => postMessage({ ready: true, bytes: self.memory.buffer.byteLength });
onmessage = async ({ data }) => {
  if (data.wasm) {
    try {
      const go = new Go();
      const packed = Uint8Array.from(atob(data.wasm), c => c.charCodeAt(0));
      const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
      const module = await WebAssembly.instantiate(await new Response(stream).arrayBuffer(), go.importObject);
      self.memory = module.instance.exports.mem;
      go.run(module.instance).then(() => postMessage({ failed: "the engine has ended" }));
    } catch (e) {
      postMessage({ failed: String(e) });
    }
    return;
  }
  const start = performance.now();
  const response = JSON.parse(playground(data.method, data.request));
  postMessage({ id: data.id, response, milliseconds: performance.now() - start, bytes: self.memory.buffer.byteLength });
};
