// The tape: an expression's entries as a list with arcs, Backward step by step, and VJPs
// that can be broken.
"use strict";
{
  let trace = null, examples = [], position = 0, running = 0;
  const names = { stored: "stored as it is: the input owns it now", lent: "lent: it is dy itself, shared and not copied", added: "added to what has arrived: the input owns the sum", replaced: "replaces what has arrived before" };
  const title = k => {
    const n = trace.nodes[k];
    return n.name || `${entryNumber(k)} ${n.op}`;
  };
  const entryNumber = k => "#" + (trace.nodes.slice(0, k + 1).filter(n => n.op).length - 1);
  const fields = ["text", "x", "w", "b"];

  // The break is held as the number of the variable and the kind.
  const broken = () => {
    const [node, kind] = (state.get("break") || "").split(".");
    return kind ? { node: Number(node), kind } : null;
  };

  sections.push(async () => {
    ({ examples } = await engine.call("examples"));
    $("#example").append(...examples.map((e, i) => element("option", { value: i }, e.title)), element("option", { value: "own" }, "An expression of your own"));
    const chosen = examples[state.get("example") ?? 0] ?? examples[0];
    Object.assign(state.defaults, { example: "0", text: chosen.text, x: chosen.X, w: chosen.W, b: chosen.B, break: "", position: "0" });
    $("#example").value = state.values.text ? "own" : state.get("example");
    for (const f of fields) $("#" + f).value = state.get(f);
    $("#example").onchange = () => choose(examples[$("#example").value], $("#example").value);
    for (const f of fields) {
      $("#" + f).oninput = () => {
        if (f === "text") $("#example").value = "own";
        state.set(f, $("#" + f).value);
        state.set("break");
        state.set("position");
        run();
      };
    }
    $("#first").onclick = () => move(0);
    $("#back").onclick = () => move(position - 1);
    $("#forth").onclick = () => move(position + 1);
    $("#end").onclick = () => move(trace?.steps.length ?? 0);
    $("#position").oninput = () => move(Number($("#position").value));
    for (const r of document.querySelectorAll("[name=break]")) {
      r.onchange = () => {
        const step = trace?.steps[position - 1];
        if (!step) return;
        state.set("break", r.value && `${step.node}.${r.value}`);
        run();
      };
    }
    addEventListener("resize", arcs);
    position = Number(state.get("position"));
    await run();
  });
  restorers.push(() => {
    const chosen = examples[state.get("example")] ?? examples[0];
    Object.assign(state.defaults, { text: chosen.text, x: chosen.X, w: chosen.W, b: chosen.B });
    $("#example").value = state.values.text ? "own" : state.get("example");
    for (const f of fields) $("#" + f).value = state.get(f);
    position = Number(state.get("position"));
    return run();
  });

  function choose(e, index) {
    if (!e) return;
    Object.assign(state.defaults, { text: e.text, x: e.X, w: e.W, b: e.B });
    for (const f of [...fields, "break", "position"]) state.set(f);
    state.set("example", index);
    for (const f of fields) $("#" + f).value = state.get(f);
    position = 0;
    return run();
  }

  // run asks for the trace of what stands in the fields; an answer that is late is dropped.
  async function run() {
    const id = ++running, text = $("#text").value;
    $("#text").rows = Math.max(3, text.split("\n").length);
    const rate = examples.find(e => e.text === text)?.rate ?? 0.05;
    try {
      const t = await engine.call("trace", { text, x: $("#x").value, w: $("#w").value, b: $("#b").value, break: broken(), rate, descent: 40 });
      if (id !== running) return;
      trace = t;
      trace.steps ??= [];
      $("#text-error").textContent = "";
      $("#text").removeAttribute("aria-invalid");
      position = Math.min(position, trace.steps.length);
      draw();
    } catch (e) {
      if (id !== running) return;
      const line = text.split("\n")[e.line - 1] ?? "";
      $("#text").setAttribute("aria-invalid", "true");
      $("#text-error").replaceChildren(e.line ? `Line ${e.line}, column ${e.column}: ${e.message}` : e.message,
        ...e.line ? [element("pre", { "aria-hidden": "true" }, line + "\n" + " ".repeat(e.column - 1) + "^")] : []);
    }
  }

  function move(to) {
    position = Math.max(0, Math.min(trace?.steps.length ?? 0, to));
    state.set("position", position);
    if (trace) draw(); // there is none after a link with a mistake
  }

  // draw shows the tape when Backward has passed so many entries.
  function draw() {
    const steps = trace.steps, now = steps[position - 1];
    const grads = new Map(), passed = new Set();
    if (steps.length) grads.set(steps[0].node, [1]);
    for (const s of steps.slice(0, position)) {
      passed.add(s.node);
      for (const g of s.given) grads.set(g.node, g.after);
    }
    const next = steps[position]?.node;
    $("#entries").replaceChildren(...trace.nodes.map((n, k) => n.op && row(n, k)).filter(Boolean));
    function row(n, k) {
      const grad = grads.get(k), done = position === steps.length && steps.length;
      const args = n.args?.map(a => a.number !== undefined ? number(a.number) : title(a.node)).join(", ");
      const badge = [];
      if (!n.entry) badge.push(n.name ? "" : "a constant: no gradient passes");
      else if (passed.has(k)) badge.push("passed on, freed");
      else if (k === next) badge.push("next");
      const check = grad && (passed.has(k) || done) && n.numeric ? element("span", { class: n.ok ? "good" : "bad", title: `largest difference from central differences: ${n.off.toExponential(1)}` }, n.ok ? "✓ checked" : "✗ wrong by " + number(n.off)) : null;
      return element("li", { class: `entry${now?.node === k ? " on" : ""}${now?.given.some(g => g.node === k) ? " got" : ""}${n.entry ? "" : " constant"}`, "data-node": k },
        element("div", {}, element("button", { type: "button", class: "op", title: "What the operator does", onclick: () => explain(k) }, n.name ? `${n.name} (leaf)` : `${entryNumber(k)} ${n.op}`),
          args && element("span", { class: "of" }, "of " + args), element("span", { class: "shape" }, `${n.rows} × ${n.cols}`)),
        matrix("value", n.rows, n.cols, n.values),
        grad ? matrix("gradient", n.rows, n.cols, grad, passed.has(k) ? { class: "matrix pass" } : {}) : element("span"),
        element("div", { class: "badge" }, ...badge.map(b => element("div", { class: "quiet" }, b)), check));
    }
    $("#position").max = steps.length;
    $("#position").value = position;
    $("#position-text").textContent = steps.length ? `${position} of ${steps.length}` : "";
    $("#back").disabled = $("#first").disabled = position === 0;
    $("#forth").disabled = $("#end").disabled = position === steps.length;
    explainStep(now);
    breaks(now);
    descent();
    arcs();
  }

  // arcs connect entries with their inputs, in the margin.
  function arcs() {
    const svg = $("#arcs"), wide = svg.getBoundingClientRect().width, top = svg.getBoundingClientRect().top;
    const middle = new Map([...document.querySelectorAll(".entry")].map(e => {
      const r = e.getBoundingClientRect();
      return [Number(e.dataset.node), r.top + Math.min(r.height / 2, 26) - top];
    }));
    const now = trace?.steps[position - 1]?.node;
    svg.replaceChildren();
    for (const [k, y] of middle) {
      for (const a of trace.nodes[k].args ?? []) {
        if (a.number !== undefined) continue;
        const y0 = middle.get(a.node), bend = Math.min(wide - 4, 8 + Math.sqrt(Math.abs(y - y0)) * wide / 28);
        svg.append(element("path", { class: now === k ? "on" : "", d: `M${wide - 2} ${y0}C${wide - bend * 1.3} ${y0} ${wide - bend * 1.3} ${y} ${wide - 2} ${y}` }));
      }
    }
  }

  // source returns the comment, the formula and the code of an operator.
  function source(op) {
    const o = engine.operators[op];
    if (!o) return [];
    return [
      o.vjp && element("p", { class: "formula" }, o.vjp),
      element("details", {}, element("summary", {}, `${o.file}:${o.line}`), element("pre", { tabindex: 0 }, o.source)),
    ];
  }

  function explain(k) {
    const n = trace.nodes[k], o = engine.operators[n.op];
    $("#step").replaceChildren(element("h2", {}, title(k)), element("p", {}, n.name ? "A leaf: a matrix whose gradient is wanted. It keeps what arrives." : o?.doc ?? ""), ...source(n.op));
    if (innerWidth < 960) $("#step").scrollIntoView({ block: "nearest" });
  }

  function explainStep(s) {
    if (!s) {
      const n = trace.nodes.at(-1);
      $("#step").replaceChildren(element("h2", {}, "Forward is done"), element("p", {}, trace.message && !trace.steps.length ? trace.message
        : `The tape has ${trace.nodes.filter(n => n.entry).length} entries; the loss is ${number(n.values[0])}. Backward starts at the last with the gradient 1.`));
      return;
    }
    const n = trace.nodes[s.node], given = s.given.map(g => {
      const to = trace.nodes[g.node];
      return element("div", {}, element("p", {}, `to ${title(g.node)}: `, element("span", { class: "quiet" }, names[g.how])),
        element("div", { class: "flow" }, matrix("from the VJP", to.rows, to.cols, g.values), !g.ok && matrix("by differences", to.rows, to.cols, g.numeric)));
    });
    $("#step").replaceChildren(element("h2", {}, `Backward at ${title(s.node)}`), ...source(n.op), matrix("dy, the gradient of its value", n.rows, n.cols, s.dy), ...given,
      element("p", { class: s.ok ? "good" : "bad" }, s.ok ? "✓ This VJP agrees with central differences of the operator" : "✗ This VJP disagrees with central differences of the operator"));
  }

  function breaks(s) {
    const b = broken(), here = s && b?.node === s.node;
    for (const r of document.querySelectorAll("[name=break]")) {
      r.disabled = !s || r.value !== "" && !s.breaks.includes(r.value) && !(here && b.kind === r.value);
      r.checked = here ? r.value === b.kind : r.value === "";
    }
    $("#breaks legend").textContent = s ? `Break the VJP of ${title(s.node)}` : "Break a VJP: go to its entry first";
    const text = [];
    if (b) {
      const what = { factor: "half of every gradient", transpose: "without its transpose", accumulation: "forgets to add" }[b.kind];
      text.push(`${title(b.node)} is broken: ${what}. `);
      if (trace.message) text.push(trace.message + ". ");
      else if (trace.caught) text.push(`The gradient check catches it: wrong at ${trace.caught.join(", ")}.`);
      else text.push("The gradient check sees no difference here.");
    }
    $("#verdict").className = b ? "bad" : "";
    $("#verdict").replaceChildren(...text, b && !here ? element("button", { type: "button", onclick: () => { state.set("break"); run(); } }, "Mend it") : "");
  }

  function descent() {
    const right = trace.right ?? [], broken = trace.broken ?? [];
    $("#descent").hidden = !right.length;
    if (!right.length) return;
    const series = [{ name: "right", color: "var(--one)", values: right }];
    if (broken.length) series.push({ name: broken.length < right.length ? "broken: it stops" : "broken", color: "var(--two)", values: broken, dash: "5 3" });
    $("#descent").replaceChildren(element("figcaption", {}, `Loss while ${trace.moved} follows its gradient`), plot("Loss", series, { x: "step" }));
  }

  // For lessons.
  window.tape = {
    move, trace: () => trace, choose: i => choose(examples[i], String(i)),
    breakAt: (node, kind) => { state.set("break", `${node}.${kind}`); return run(); },
    async values(i, b) {
      await choose(examples[i], String(i));
      $("#b").value = b;
      state.set("b", b);
      return run();
    },
  };
}
