// What runs in each worker, after Go's wasm_exec.js: it starts the engine and hands questions to it, one by one.
"use strict";
let current = 0; // the question that is being answered
self.ready = () => postMessage({ ready: true });
self.progress = share => postMessage({ id: current, share });
onmessage = async ({ data }) => {
  if (data.module) {
    try {
      const go = new Go();
      const instance = await WebAssembly.instantiate(data.module, go.importObject);
      self.memory = instance.exports.mem;
      go.run(instance).then(() => postMessage({ failed: "the engine has ended" }));
    } catch (e) {
      postMessage({ failed: String(e) });
    }
    return;
  }
  current = data.id;
  let response;
  try {
    response = laboratory(data.method, data.request, data.bytes);
  } catch (e) {
    return postMessage({ failed: String(e) });
  }
  if (response === undefined) return; // the engine has ended, and says so itself
  postMessage({ id: data.id, response: JSON.parse(response), bytes: self.memory.buffer.byteLength });
};
