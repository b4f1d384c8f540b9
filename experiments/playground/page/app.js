// What all sections have in common: the engine in its worker, the state in the URL, the
// theme, and small drawings.
"use strict";

const $ = selector => document.querySelector(selector);

// element makes an element: attributes, then children (text or elements).
function element(name, attributes = {}, ...children) {
  const e = name === "svg" || element.svg.has(name)
    ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== false) e.setAttribute(key, value === true ? "" : value);
  }
  e.append(...children.filter(c => c !== undefined && c !== null && c !== false));
  return e;
}
element.svg = new Set(["g", "path", "line", "circle", "rect", "text", "polyline", "title"]);

// The engine: one worker that answers questions in turn.
const engine = {
  operators: {}, pending: new Map(), next: 0, bytes: 0, worker: null,
  start() { document.head.append(element("script", { src: "engine.js" })); },
  call(method, request = {}) {
    return new Promise((resolve, reject) => {
      const id = this.next++;
      this.pending.set(id, { resolve, reject });
      this.worker.postMessage({ id, method, request: JSON.stringify(request) });
    });
  },
  receive({ data }) {
    if (data.bytes) this.bytes = data.bytes;
    if (data.failed) return void ($("#status").textContent = "The engine does not run here: " + data.failed);
    if (data.ready) return void this.ready();
    const { resolve, reject } = this.pending.get(data.id);
    this.pending.delete(data.id);
    const { error, value } = data.response;
    if (error) reject(error); else resolve(Object.assign(value ?? {}, { milliseconds: data.milliseconds }));
  },
  async ready() {
    $("#status").textContent = "The engine is ready.";
    for (const f of sections) await f();
    state.go();
    document.documentElement.dataset.ready = Math.round(performance.now());
    keepOffline();
  },
};
function engineLoaded({ worker, wasm, operators }) {
  engine.operators = operators;
  engine.worker = new Worker(URL.createObjectURL(new Blob([worker], { type: "text/javascript" })));
  engine.worker.onmessage = m => engine.receive(m);
  engine.worker.onerror = e => engine.receive({ data: { failed: e.message } });
  engine.worker.postMessage({ wasm });
}

// sections are what is run once the engine is ready; scripts of sections add to it.
const sections = [];

// state is what a link holds, by name, after the section: #tape?text=x.Sum(). What is as at
// the beginning is left out. It is in the fragment, which a page from a file may change too.
const state = {
  defaults: {}, values: {}, section: "",
  only: null, // what a link holds instead while a lesson sets the page
  get(name) { return this.values[name] ?? this.defaults[name]; },
  set(name, value) {
    if (value === this.defaults[name] || value === undefined) delete this.values[name]; else this.values[name] = String(value);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.write(), 250);
  },
  fragment() {
    const query = new URLSearchParams(this.only ?? this.values).toString();
    return "#" + this.section + (query && "?" + query);
  },
  write() {
    history.replaceState(null, "", this.fragment());
  },
  read() {
    const [section, ...rest] = location.hash.slice(1).split("?");
    this.section = section;
    this.values = Object.fromEntries(new URLSearchParams(rest.join("?")));
  },
  go() { document.getElementById(this.section)?.scrollIntoView(); },
  // push is write for a step that Back undoes.
  push(section) {
    this.write();
    this.section = section;
    history.pushState(null, "", this.fragment());
  },
  // restore shows the state of a link: that of the address, or values that were kept.
  async restore(values) {
    clearTimeout(this.timer);
    if (values) this.values = values; else this.read();
    for (const f of restorers) await f();
    this.go();
  },
};
// restorers make the sections what the state says; scripts of sections add to it.
const restorers = [];
state.read();
// Back, forward, and a link that is put into the address bar.
addEventListener("popstate", () => state.restore());
for (const a of document.querySelectorAll("nav a, .skip")) {
  a.addEventListener("click", e => {
    e.preventDefault();
    state.push(a.hash.slice(1));
    state.go();
    const title = $(a.hash + " h1");
    title.tabIndex = -1;
    title.focus({ preventScroll: true });
  });
}

// number writes a value with three digits or so.
function number(v) {
  v = Number(v);
  if (!Number.isFinite(v)) return Number.isNaN(v) ? "NaN" : v > 0 ? "∞" : "−∞";
  if (v === 0) return "0";
  const a = Math.abs(v);
  const text = a >= 1e4 || a < 5e-4 ? v.toExponential(1) : v.toFixed(a < 10 ? 3 : a < 100 ? 2 : 1);
  return text.replace("-", "−");
}

// rich returns text with the indices of L_C and L_G set as such.
function rich(text) {
  return text.split(/(L_[CG])/).map(part => /^L_[CG]$/.test(part) ? element("span", {}, "L", element("sub", {}, part[2])) : part);
}

// matrix draws a matrix as a heat map with numbers: orange above 0, blue below.
function matrix(caption, rows, cols, values, attributes = {}) {
  const most = Math.max(1e-12, ...values.map(v => Math.abs(Number(v))).filter(Number.isFinite));
  const table = element("table");
  for (let i = 0; i < rows; i++) {
    const tr = element("tr");
    for (let j = 0; j < cols; j++) {
      const v = Number(values[i * cols + j]);
      const share = Number.isFinite(v) ? Math.abs(v) / most : 0;
      tr.append(element("td", { style: `background:rgb(var(${v > 0 ? "--plus" : "--minus"}) / ${(0.42 * share).toFixed(2)})`, title: String(v) }, number(v)));
    }
    table.append(tr);
  }
  return element("div", { class: "matrix", tabindex: cols > 5 ? 0 : undefined, role: "group", "aria-label": caption, ...attributes }, element("span", { class: "caption" }, caption), table);
}

// plot draws series, {name, color, values, dash}, over their index, or over x where they have it.
function plot(title, series, { height = 150, width = 340, low, high, x = "", from = 0 } = {}) {
  const all = series.flatMap(s => s.values.map(Number)).filter(Number.isFinite);
  const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title + ": " + series.map(s => `${s.name} ${s.values.length ? number(s.values.at(-1)) : "none"}`).join(", "), style: "width:100%;height:auto;display:block" });
  const least = low ?? Math.min(...all), most = high ?? Math.max(...all), span = most - least || 1;
  const count = Math.max(2, ...series.map(s => s.values.length));
  const px = i => 40 + i / (count - 1) * (width - 48), py = v => height - 18 - (v - least) / span * (height - 28);
  svg.append(element("path", { class: "axis", d: `M40 8V${height - 18}H${width - 6}` }));
  if (all.length) {
    for (const v of [least, most]) svg.append(element("text", { x: 36, y: py(v) + 4, "text-anchor": "end" }, number(v)));
    svg.append(element("text", { x: width - 6, y: height - 4, "text-anchor": "end" }, x ? `${x} ${count - 1 + from}` : ""));
  }
  for (const s of series) {
    const d = s.values.map(Number).map((v, i) => Number.isFinite(v) ? `${px(i).toFixed(1)} ${py(Math.max(least, Math.min(most, v))).toFixed(1)}` : null).filter(Boolean);
    if (d.length === 0) continue;
    if (d.length === 1) svg.append(element("circle", { cx: d[0].split(" ")[0], cy: d[0].split(" ")[1], r: 2.5, fill: s.color }));
    svg.append(element("path", { d: "M" + d.join("L"), fill: "none", stroke: s.color, "stroke-width": 2, "stroke-dasharray": s.dash }));
  }
  return element("div", {}, svg, element("div", { class: "legend" }, ...series.map(s => element("span", {}, element("i", { style: `background:${s.color}` }), ...rich(s.name)))));
}

// The theme is the system's until it is chosen.
{
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let stored = null;
  try { stored = localStorage.getItem("theme"); } catch { /* a page from a file may have no storage */ }
  const show = () => document.documentElement.dataset.theme = stored ?? (dark.matches ? "dark" : "light");
  dark.addEventListener("change", show);
  show();
  $("#theme").onclick = () => {
    stored = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("theme", stored); } catch { /* see above */ }
    show();
    dispatchEvent(new Event("theme"));
  };
}
$("#share").onclick = async () => {
  state.write();
  let text = "Link copied";
  try { await navigator.clipboard.writeText(location.href); } catch { text = "Link is in the address bar"; }
  $("#share").textContent = text;
  setTimeout(() => $("#share").textContent = "Copy link", 2000);
};

requestAnimationFrame(() => setTimeout(() => engine.start())); // after the first paint

// Once the engine is there, a worker of the browser keeps the page's files for a reload without a network.
async function keepOffline() {
  if (!navigator.serviceWorker || !/^https?:$/.test(location.protocol)) return;
  try {
    await navigator.serviceWorker.register("offline.js");
    const { active } = await navigator.serviceWorker.ready, channel = new MessageChannel();
    channel.port1.onmessage = () => document.documentElement.dataset.offline = "kept";
    const own = [...document.querySelectorAll("script[src], link[rel=stylesheet]")].map(e => e.src || e.href);
    active.postMessage([location.href.split("#")[0], ...own], [channel.port2]);
  } catch { /* a page without it works, but not offline */ }
}
