// The engine in its workers: several that predict, and a desk that has the whole file.
"use strict";

const $ = selector => document.querySelector(selector);

// element makes an element: attributes, then children (text or elements).
function element(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== false) e.setAttribute(key, value === true ? "" : value);
  }
  e.append(...children.filter(c => c !== undefined && c !== null && c !== false));
  return e;
}

// drawing makes an element of a drawing of the engine, whose texts are escaped.
function drawing(svg) {
  const e = element("div", { class: "drawing" });
  e.innerHTML = svg;
  return e;
}

// Engine is a worker that answers questions in turn. restarted is called when it knows nothing any more.
class Engine {
  constructor(restarted) {
    this.restarted = restarted;
    this.pending = new Map();
    this.next = 1;
    this.bytes = 0;
    this.start();
  }
  start() {
    const worker = this.worker = new Worker(pool.url);
    let isReady = false;
    this.started = new Promise((resolve, reject) => {
      const fail = message => {
        if (worker !== this.worker) return; // it has been stopped meanwhile
        if (!isReady) return reject(new Error(message)); // it would not start a second time either
        this.stop(new Error(`An engine has failed and is started again; once more, or with fewer molecules, it may work (${message})`));
      };
      worker.onmessage = ({ data }) => {
        if (data.failed) return fail(data.failed);
        if (!data.ready) return this.receive(data);
        isReady = true;
        resolve();
      };
      worker.onerror = e => fail(e.message);
    });
    worker.postMessage({ module: pool.module });
  }
  receive({ id, share, response, bytes }) {
    const question = this.pending.get(id);
    if (!question) return;
    if (share !== undefined) return question.progress?.(share);
    this.bytes = bytes;
    this.pending.delete(id);
    if (response.error) question.reject(new Error(response.error)); else question.resolve(response.value);
  }
  call(method, request = {}, { bytes, progress } = {}) {
    return new Promise((resolve, reject) => {
      const id = this.next++;
      this.pending.set(id, { resolve, reject, progress });
      this.started.then(() => this.worker.postMessage({ id, method, request: JSON.stringify(request), bytes }), reject);
    });
  }
  // stop ends what the worker computes, with all that it knows; reason is what its questions are answered with.
  stop(reason = new Cancelled()) {
    this.worker.terminate();
    for (const { reject } of this.pending.values()) reject(reason);
    this.pending.clear();
    this.start();
    this.restarted(this);
  }
}

class Cancelled extends Error {
  constructor() { super("cancelled"); }
}

const pool = {
  module: null, url: "", desk: null, predictors: [], files: new Map(), // models from files, by name
  async open({ worker, wasm }) {
    const text = atob(wasm);
    const packed = new Uint8Array(text.length); // Uint8Array.from makes a list of all characters first
    for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    // Streaming, so that the unpacked engine is never held as a whole.
    this.module = await WebAssembly.compileStreaming(new Response(stream, { headers: { "Content-Type": "application/wasm" } }));
    this.url = URL.createObjectURL(new Blob([worker], { type: "text/javascript" }));
    this.desk = new Engine(() => { data.stale = true; });
    const count = Math.max(1, Math.min(navigator.hardwareConcurrency || 2, 8));
    const reload = engine => { // without a file, a question says that it is to be dropped again
      for (const [name, bytes] of this.files) engine.call("load", { model: name }, { bytes }).catch(() => {});
    };
    this.predictors = Array.from({ length: count }, () => new Engine(reload));
    const shares = this.predictors.map(() => 0);
    const answers = await Promise.all(this.predictors.map((engine, k) => engine.call("load", { model: "admet" }, {
      progress: share => {
        shares[k] = share;
        say(`The engine is starting: ${Math.round(100 * Math.min(...shares))} %`);
      },
    })));
    return answers[0];
  },
  get bytes() { return [this.desk, ...this.predictors].reduce((sum, engine) => sum + engine.bytes, 0); },
  // load gives all workers a model file, and returns its columns.
  async load(name, bytes) {
    const answers = await Promise.all(this.predictors.map(engine => engine.call("load", { model: name }, { bytes })));
    this.files.set(name, bytes);
    return answers[0];
  },
  // each calls a method for each request, on any predictor, and use with each answer as it comes. It ends with the
  // first failure, or when it is cancelled, and then uses no later answer.
  async each(method, requests, signal, use) {
    let next = 0, isOver = false;
    const answer = async engine => {
      while (next < requests.length && !isOver) {
        const k = next++;
        const value = await engine.call(method, requests[k]);
        if (!isOver) use(value, k);
      }
    };
    const cancelled = new Promise((_, reject) => {
      const cancel = () => reject(new Cancelled());
      if (signal.aborted) cancel();
      signal.addEventListener("abort", cancel, { once: true });
    });
    try {
      await Promise.race([cancelled, Promise.all(this.predictors.map(answer))]);
    } finally {
      isOver = true;
    }
  },
};

function say(text) { $("#status").textContent = text; }
