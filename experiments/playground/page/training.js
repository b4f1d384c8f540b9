// Training, step by step, with sliders that act from the next step; and what can be taken
// away from it.
"use strict";
{
  const colors = ["--one", "--two", "--three"], classes = ["house", "butterfly", "K2,3"];
  const knobs = [
    { name: "beta", label: "β, weight of L_G", values: [0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20], start: 0.05 },
    { name: "kappa", label: "κ, sharpness of the threshold", values: [1, 2, 5, 10, 20, 50], start: 10 },
    { name: "p", label: "p, percentile of the threshold", values: [50, 60, 70, 80, 90, 95], start: 80 },
    { name: "tau", label: "τ, temperature of L_C", values: [0.05, 0.1, 0.2, 0.5, 1], start: 0.2 },
    { name: "adjacency", label: "Threshold", options: { sigmoid: "soft: sigmoid", spread: "soft, in units of the spread", hard: "hard: the paper's", ste: "hard, straight-through" }, start: "sigmoid" },
    { name: "batch", label: "Graphs in a batch*", values: [30, 60, 120, 240], start: 60 },
    { name: "seed", label: "Seed*", values: [0, 1, 2, 3, 4], start: 0 },
  ];
  const guides = [
    { title: "1. Hard threshold", settings: { adjacency: "hard", beta: 20 }, text: "The paper joins two graphs if their similarity is above θ, and does not otherwise. A step has no slope, so the gradient of L_G is zero, whatever β is. Train, and then again with β = 0: every curve and every weight is the same." },
    { title: "2. Soft threshold, large β", settings: { adjacency: "sigmoid", beta: 20 }, text: "A sigmoid in place of the step has a slope, and L_G falls to almost nothing. It is a cheat: the spread of the similarities shrinks until every pair has the same weight in both views, while the hard L_G rises and the gradients point against each other. L_C ends near its value for equal embeddings, the logarithm of the number of candidates." },
    { title: "3. Straight-through", settings: { adjacency: "ste", beta: 1 }, text: "Forward takes the hard step, Backward pretends that it was the sigmoid. Nothing is cheated this time, and nothing is matched either: L_G stays where it was. The spread falls to zero within a few steps: all projections collapse to one point." },
  ];
  let guided = null, running = false, generation = 0, busy = null, base = null, history = [], evals = [], last = null, times = [], follow = true;

  const settings = () => Object.fromEntries(knobs.map(k => [k.name, k.options ? state.get(k.name) : Number(state.get(k.name))]));

  sections.push(async () => {
    for (const k of knobs) {
      state.defaults[k.name] = String(k.start);
      const id = "knob-" + k.name, out = element("output", { for: id });
      let input;
      if (k.options) {
        input = element("select", { id }, ...Object.entries(k.options).map(([v, text]) => element("option", { value: v }, text)));
        input.value = state.get(k.name);
        input.onchange = () => { guided = null; state.set(k.name, input.value); changed(); };
      } else {
        input = element("input", { type: "range", id, min: 0, max: k.values.length - 1, step: 1 });
        input.value = Math.max(0, k.values.indexOf(Number(state.get(k.name))));
        const show = () => { out.textContent = " " + k.values[input.value]; input.setAttribute("aria-valuetext", k.values[input.value]); };
        input.oninput = () => { guided = null; show(); state.set(k.name, String(k.values[input.value])); (k.label.endsWith("*") ? reset : changed)(); };
        show();
      }
      k.show = () => { input.value = k.options ? state.get(k.name) : k.values.indexOf(Number(state.get(k.name))); if (!k.options) { out.textContent = " " + state.get(k.name); } };
      $("#sliders").append(element("div", {}, element("label", { for: id }, ...rich(k.label), out), input));
    }
    $("#sliders").append(element("p", { class: "quiet all" }, "All act from the next step, at once; those with * begin anew."));
    guides.forEach((g, i) => $("#guides").append(element("button", { type: "button", onclick: () => guide(i) }, g.title)));
    $("#run").onclick = () => running ? pause() : run();
    $("#one").onclick = () => { pause(); begunStep(); };
    $("#reset").onclick = reset;
    $("#when").oninput = () => { follow = Number($("#when").value) === evals.length - 1; points(); };
    addEventListener("theme", draw);
    addEventListener("resize", draw);
    $("#csv").onclick = async () => save("embeddings.csv", (await results()).csv);
    $("#model").onclick = async () => save("specmatch.safetensors", Uint8Array.from(atob((await results()).model), c => c.charCodeAt(0)));
    $("#command").onclick = async () => {
      const r = await results();
      $("#command-text").hidden = false;
      $("#command-text").replaceChildren(element("code", {}, r.command), element("span", { class: "quiet" }, r.same
        ? " This repeats the run from its beginning; weights agree to rounding." : " Settings have changed on the way, or an epoch is not at its end: this is a whole run with the present ones."));
    };
    // The baselines take a second of the engine: they wait until the section is seen, or a training is taken up.
    if (state.get("guide") || stored().length) begin();
    else new IntersectionObserver((seen, observer) => {
      if (!seen.some(s => s.isIntersecting)) return;
      observer.disconnect();
      begin();
    }).observe($("#training"));
  });
  // begun is fulfilled once there is a training in the engine.
  let begun = null;
  function begin() {
    begun ??= state.get("guide")
      ? guide(Number(state.get("guide")), true)
      : reset().then(() => { if (!log.length) return take(stored()); });
    return begun;
  }
  async function begunStep() {
    await begin();
    return step();
  }
  async function results() {
    await begin();
    return engine.call("results");
  }
  restorers.push(async () => {
    for (const k of knobs) k.show();
    if (!begun || JSON.stringify(settings()) === applied) return;
    const before = JSON.parse(applied), now = settings();
    if (before.seed !== now.seed || before.batch !== now.batch) await reset(); else await changed();
  });

  // What has been trained, as settings and how many steps were taken with them: a reload and a closed lesson take
  // the training up from it, since equal steps give equal weights.
  let log = [], applied = "";
  function stored() {
    try { return JSON.parse(sessionStorage.getItem("training")) ?? []; } catch { return []; }
  }
  function note(now = JSON.stringify(settings())) {
    if (log.at(-1)?.settings === now) log.at(-1).steps++; else log.push({ settings: now, steps: 1 });
    try { sessionStorage.setItem("training", JSON.stringify(log)); } catch { /* see the theme */ }
  }

  // take takes up a training: the steps that were noted, with the settings that they had.
  async function take(noted) {
    if (JSON.stringify(noted) === JSON.stringify(log)) return;
    const last = JSON.parse(noted.at(-1)?.settings ?? "{}"), now = settings();
    if (noted.length && (last.seed !== now.seed || last.batch !== now.batch)) return;
    await reset();
    const id = generation;
    for (const part of noted) {
      if (id !== generation) return;
      await engine.call("set", JSON.parse(part.settings));
      for (let n = 0; n < part.steps && id === generation; n++) await step(part.settings);
    }
    if (id === generation) await changed();
  }

  // guide chooses a guided setting, or none: that of the beginning.
  async function guide(i, keep) {
    const g = guides[i];
    if (!keep) for (const k of knobs) state.set(k.name, String(g?.settings[k.name] ?? k.start));
    state.set("guide", g && String(i));
    for (const k of knobs) k.show();
    $("#guide").hidden = !g;
    $("#guide").replaceChildren(...rich(g?.text ?? ""));
    guided = null;
    await reset();
    if (base && !keep) guided = i ?? -1;
  }

  // train takes a guided setting to so many steps: on from where it is, if it is on the way.
  async function train(i, steps) {
    pause();
    await busy;
    if (guided !== (i ?? -1) || history.length > steps) await guide(i);
    for (let n = steps - history.length; n > 0; n--) await step();
  }

  async function changed() {
    if (!begun) return;
    applied = JSON.stringify(settings());
    try { await engine.call("set", settings()); } catch (e) { fail(e); }
  }
  function fail(e) { pause(); $("#training-error").textContent = e.message; }

  // reset begins anew; what is under way in the worker comes to its end unseen.
  async function reset() {
    const id = ++generation;
    begun ??= Promise.resolve();
    pause();
    log = [];
    applied = JSON.stringify(settings());
    history = []; evals = []; times = []; last = base = null; follow = true;
    $("#training-error").textContent = "";
    draw();
    try {
      const b = await engine.call("start", settings());
      if (id !== generation) return;
      base = b;
      evals = [b.untrained];
      draw();
    } catch (e) { if (id === generation) fail(e); }
  }

  async function step(replayed) {
    const id = generation;
    if (busy) return busy;
    busy = engine.call("step");
    try {
      const r = await busy;
      if (id !== generation) return;
      times.push(r.milliseconds);
      history.push(r);
      note(replayed);
      last = r;
      if (r.eval) evals.push(r.eval);
      draw();
    } catch (e) { if (id === generation) fail(e); } finally { busy = null; }
  }

  async function run() {
    await begin();
    running = true;
    const id = generation;
    label();
    while (running && id === generation) await step();
  }
  function pause() { running = false; label(); pair(); }
  function label() { $("#run").textContent = running ? "Stop ■" : "Train ▶"; }

  function draw() {
    const recent = times.slice(-8), ms = recent.reduce((a, b) => a + b, 0) / recent.length;
    $("#progress").textContent = last ? `step ${last.step}, epoch ${last.epoch}, ${ms.toFixed(0)} ms a step` : base ? "initial weights" : "preparing …";
    const line = (name, color, f, more) => ({ name, color: `var(${color})`, values: history.map(r => f(r) ?? NaN), ...more });
    const opt = { x: "step", from: 1 };
    $("#loss-c").replaceChildren(plot("Contrastive loss", [line("L_C", "--one", r => r.loss_c)], opt));
    $("#loss-g").replaceChildren(plot("L_G", [line("as trained", "--one", r => r.loss_g), line("hard threshold", "--two", r => r.loss_hard, { dash: "5 3" })], { ...opt, low: 0 }));
    $("#spread").replaceChildren(plot("Spread", [line("standard deviation of the cosines", "--one", r => r.spread)], { ...opt, low: 0, high: Math.max(0.4, ...history.map(r => r.spread)) }));
    const flat = history.length && history.at(-1).cosine === null;
    $("#cosine").replaceChildren(plot("Cosine", [line(flat ? "none: the gradient of L_G is zero" : "cosine", "--one", r => r.cosine), { name: "0", color: "var(--line)", values: history.map(() => 0) }], { ...opt, low: -1, high: 1 }));
    const flatLine = (name, v, color, dash) => ({ name: `${name} ${v.toFixed(1)} %`, color: `var(${color})`, values: Array(Math.max(2, evals.length)).fill(v), dash });
    $("#accuracy").replaceChildren(base ? plot("Accuracy", [
      { name: "trained" + (evals.length > 1 ? ` ${evals.at(-1).accuracy.toFixed(1)} %` : ""), color: "var(--one)", values: evals.map(e => e.accuracy) },
      flatLine("untrained", base.untrained.accuracy, "--two", "6 3"),
      flatLine("untrained, after batch norm has seen the data", base.statistics, "--three", "6 3"),
      flatLine("counted labels", base.labels, "--quiet", "2 3"),
    ], { low: 25, high: 90, x: "epoch", height: 190 }) : "");
    $("#when").max = Math.max(0, evals.length - 1);
    if (follow) $("#when").value = evals.length - 1;
    points();
    similarity();
    if (!running) pair();
  }

  const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  function canvas(c, ratio) {
    const width = c.clientWidth || 200, scale = devicePixelRatio || 1;
    c.width = width * scale;
    c.height = width * ratio * scale;
    c.style.height = width * ratio + "px";
    const g = c.getContext("2d");
    g.scale(scale, scale);
    return [g, width, width * ratio];
  }

  function points() {
    const [g, width, height] = canvas($("#points"), 0.62);
    const e = evals[Number($("#when").value)];
    $("#when-text").textContent = $("#when").value;
    $("#points-legend").replaceChildren(...classes.map((c, i) => element("span", {}, element("i", { style: `background:var(${colors[i]})` }), c)));
    if (!e) return;
    const bounds = k => {
      const v = e.points.filter((_, i) => i % 2 === k).sort((a, b) => a - b);
      return [v[Math.floor(v.length * 0.005)], v[Math.ceil(v.length * 0.995) - 1]];
    };
    const [x0, x1] = bounds(0), [y0, y1] = bounds(1);
    e.classes.forEach((c, i) => {
      const x = 8 + (e.points[2 * i] - x0) / (x1 - x0 || 1) * (width - 16), y = 8 + (y1 - e.points[2 * i + 1]) / (y1 - y0 || 1) * (height - 16);
      g.fillStyle = css(colors[c]);
      g.globalAlpha = 0.75;
      g.beginPath();
      // Classes differ in shape too, not in color alone.
      if (c === 0) g.arc(x, y, 3.4, 0, 7);
      else if (c === 1) g.rect(x - 3, y - 3, 6, 6);
      else { g.moveTo(x, y - 4); g.lineTo(x + 4, y + 3); g.lineTo(x - 4, y + 3); }
      g.fill();
    });
  }

  function similarity() {
    const v = last?.views, host = $("#similarity");
    if (host.childElementCount === 0) {
      for (const name of ["view 1", "view 2", "difference"]) host.append(element("div", {}, element("canvas", { role: "img", "aria-label": "Similarity graph: " + name }), element("span", {}, name)));
    }
    const [a, b] = v ? v.edges : ["", ""];
    let differ = 0;
    host.querySelectorAll("canvas").forEach((c, k) => {
      const [g, width] = canvas(c, 1), n = v?.n ?? 1, cell = width / n;
      g.strokeStyle = css("--line");
      g.strokeRect(0.5, 0.5, width - 1, width - 1);
      if (!v) return;
      let at = 0;
      for (let i = 0; i < n; i++) {
        for (let j = i + 1; j < n; j++, at++) {
          const one = a[at] === "1", two = b[at] === "1";
          const color = k === 0 ? one && "--one" : k === 1 ? two && "--two" : one !== two && (one ? "--one" : "--two");
          if (!color) continue;
          if (k === 2) differ++;
          g.fillStyle = css(color);
          g.fillRect(i * cell, j * cell, Math.max(1, cell - 0.5), Math.max(1, cell - 0.5));
          g.fillRect(j * cell, i * cell, Math.max(1, cell - 0.5), Math.max(1, cell - 0.5));
        }
      }
      g.fillStyle = css("--quiet");
      for (let i = 1; i < n; i++) if (v.classes[i] !== v.classes[i - 1]) { g.fillRect(i * cell - 0.5, 0, 1, width); g.fillRect(0, i * cell - 0.5, width, 1); }
    });
    if (v) host.lastChild.lastChild.textContent = `difference: ${differ} of ${a.length} pairs`;
    $("#spectra").replaceChildren(plot("Spectra", v ? v.spectra.map((s, k) => ({ name: "view " + (k + 1), color: `var(${colors[k]})`, values: s ?? [], dash: k ? "5 3" : undefined })) : [], { low: 0, x: "eigenvalue", from: 1 }));
  }

  // pair shows two graphs of the batch, and whether the views join them.
  let shown = "";
  async function pair() {
    const v = last?.views;
    if (!v) { shown = ""; return void $("#pair").replaceChildren(); }
    for (const name of ["#pair-a", "#pair-b"]) $(name).max = v.n - 1;
    const [i, j] = [Number($("#pair-a").value), Number($("#pair-b").value)].sort((a, b) => a - b), at = i * v.n - i * (i + 1) / 2 + j - i - 1;
    const joined = k => i === j ? "the same graph" : v.edges[k][at] === "1" ? "joined" : "apart";
    const key = `${v.samples[i]} ${v.samples[j]}`, said = element("p", {}, `view 1: ${joined(0)}; view 2: ${joined(1)}`);
    if (key === shown && $("#pair").lastChild) return void $("#pair").lastChild.replaceWith(said);
    shown = key;
    const drawings = await Promise.all([i, j].map(k => engine.call("draw", { index: v.samples[k], policy: "dropN", ratio: 0 })));
    if (key !== shown) return;
    $("#pair").replaceChildren(...drawings.map(d => element("figure", {}, element("figcaption", { class: "quiet" }, d.title), views.draw(d))), said);
  }
  for (const name of ["#pair-a", "#pair-b"]) $(name).oninput = pair;
  $("#similarity").onclick = e => {
    if (e.target.tagName !== "CANVAS" || !last) return;
    const box = e.target.getBoundingClientRect(), n = last.views.n, cell = (p, size) => Math.max(0, Math.min(n - 1, Math.floor(p / size * n)));
    $("#pair-a").value = cell(e.clientX - box.left, box.width);
    $("#pair-b").value = cell(e.clientY - box.top, box.height);
    pair();
  };

  function save(name, data) {
    const url = URL.createObjectURL(new Blob([data]));
    element("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  }

  // For lessons.
  window.training = { log: () => structuredClone(log), take, begin, step: begunStep, reset, guide, train, evals: () => evals, base: () => base, history: () => history };
}
