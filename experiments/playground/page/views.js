// Views: a graph, its four augmentations, and what a layer does to one of its nodes.
"use strict";
{
  const kinds = { dropN: "dropN: nodes are dropped", permE: "permE: edges are moved", maskN: "maskN: features become noise", subgraph: "subgraph: a part stays" };
  const color = k => drawn.colours ? drawn.colours[k] || "var(--quiet)" : `var(${["--one", "--two", "--three", "--c3", "--c4", "--c5"][k % 6]})`;
  let drawn = null, place = [], running = 0;

  sections.push(async () => {
    Object.assign(state.defaults, { graph: "1", smiles: "", ratio: "0.2", "view-seed": "0", node: "0" });
    for (const name of ["graph", "smiles", "ratio", "view-seed"]) {
      const input = $("#" + name);
      input.value = state.get(name);
      input.oninput = () => {
        if (name === "graph") { $("#smiles").value = ""; state.set("smiles"); }
        if (name === "graph" || name === "smiles") state.set("node");
        state.set(name, input.value);
        draw();
      };
    }
    $("#node").oninput = () => { state.set("node", $("#node").value); node(); };
    await draw();
  });
  restorers.push(() => {
    for (const name of ["graph", "smiles", "ratio", "view-seed"]) $("#" + name).value = state.get(name);
    return draw();
  });

  // layout places the nodes of a graph that is no molecule by springs along edges and repulsion, the same way every time.
  function layout(n, edges) {
    const p = Array.from({ length: n }, (_, i) => [Math.cos(i * 2.4) * Math.sqrt(i + 1), Math.sin(i * 2.4) * Math.sqrt(i + 1)]);
    for (let round = 0; round < 400; round++) {
      const heat = 0.12 * (1 - round / 400), force = p.map(([x, y]) => [-0.02 * x, -0.02 * y]);
      const push = (i, j, f, dx, dy) => { force[i][0] += f * dx; force[i][1] += f * dy; force[j][0] -= f * dx; force[j][1] -= f * dy; };
      for (let i = 0; i < n; i++) for (let j = 0; j < i; j++) {
        const dx = p[i][0] - p[j][0], dy = p[i][1] - p[j][1];
        push(i, j, 1 / (dx * dx + dy * dy + 0.05), dx, dy);
      }
      for (const [i, j] of edges) {
        const dx = p[i][0] - p[j][0], dy = p[i][1] - p[j][1], d = Math.hypot(dx, dy) + 1e-6;
        push(i, j, -1.6 * (d - 1) / d, dx, dy);
      }
      p.forEach((q, i) => { q[0] += heat * Math.max(-4, Math.min(4, force[i][0])); q[1] += heat * Math.max(-4, Math.min(4, force[i][1])); });
    }
    return p;
  }

  async function draw() {
    const id = ++running;
    for (const name of ["graph", "ratio", "view-seed"]) $(`#${name}-text`).textContent = $("#" + name).value;
    const request = { index: Number($("#graph").value), smiles: $("#smiles").value.trim(), ratio: Number($("#ratio").value), seed: Number($("#view-seed").value) };
    try {
      const all = await Promise.all(Object.keys(kinds).map(policy => engine.call("draw", { ...request, policy })));
      if (id !== running) return;
      drawn = all[0];
      $("#smiles-error").textContent = "";
      $("#smiles").removeAttribute("aria-invalid");
      place = drawn.places ?? layout(drawn.labels.length, drawn.edges ?? []);
      $("#graph-title").textContent = drawn.title[0].toUpperCase() + drawn.title.slice(1);
      $("#graph-legend").replaceChildren(...drawn.names.map((name, k) => element("span", {}, element("i", { style: `background:${color(k)}` }), (request.smiles ? "" : "label ") + name)), element("span", {}, `${drawn.labels.length} nodes, ${drawn.edges?.length ?? 0} edges`));
      $("#node").max = drawn.labels.length - 1;
      $("#node").value = state.get("node");
      $("#four").replaceChildren(...all.map((d, k) => {
        const kept = d.kept.filter(Boolean).length, masked = d.masked.filter(Boolean).length, text = Object.values(kinds)[k];
        return element("figure", { class: "card" }, element("figcaption", {}, text), picture(d, `${text}; ${kept} of ${d.kept.length} nodes stay`, true),
          element("div", { class: "quiet" }, `${kept} of ${d.kept.length} nodes, ${d.view?.length ?? 0} edges` + (masked ? `, ${masked} masked` : "")));
      }));
      node();
    } catch (e) {
      if (id !== running) return;
      $("#smiles").setAttribute("aria-invalid", "true");
      $("#smiles-error").textContent = e.line ? `Column ${e.column}: ${e.message}` : e.message;
    }
  }

  const same = (a, b) => a[0] === b[0] && a[1] === b[1] || a[0] === b[1] && a[1] === b[0];

  // picture draws the graph, or its view over it. A molecule is drawn as chemists do, and its view covers what is gone.
  function picture(d, label, view, chosen) {
    return d.svg ? molecule(d, label, view, chosen) : graph(d, label, view, chosen);
  }

  // states returns the class of each node in the picture, and the neighbours of the chosen one.
  function states(d, view, chosen) {
    const near = new Set((d.edges ?? []).filter(e => e.includes(chosen)).map(e => e[0] === chosen ? e[1] : e[0]));
    return d.labels.map((_, i) => view && !d.kept[i] ? "gone" : view && d.masked[i] ? "masked" : i === chosen ? "on" : near.has(i) ? "near" : "");
  }

  function molecule(d, label, view, chosen) {
    const svg = new DOMParser().parseFromString(d.svg, "image/svg+xml").documentElement;
    svg.setAttribute("aria-label", label);
    const names = states(d, view, chosen), now = d.view ?? [];
    // A line leaves a share of the bond free at both ends, for the letters there.
    const line = ([i, j], name, free) => {
      const along = (k, share) => place[i][k] + (place[j][k] - place[i][k]) * share;
      svg.append(element("line", { x1: along(0, free), y1: along(1, free), x2: along(0, 1 - free), y2: along(1, 1 - free), class: name }));
    };
    if (view) {
      for (const e of d.edges ?? []) if (!now.some(f => same(e, f))) line(e, "gone", 0.2);
      for (const e of now) if (!(d.edges ?? []).some(f => same(e, f))) line(e, "new", 0);
    }
    place.slice(0, d.labels.length).forEach(([x, y], i) => {
      const hover = view ? {} : { onmouseenter: () => hovered(i), onclick: () => hovered(i) };
      svg.append(element("g", { class: "atom " + names[i], ...hover }, element("circle", { cx: x, cy: y, r: view ? 10 : 12 }), names[i] === "masked" && element("text", { x, y: y + 5 }, "~")));
    });
    return svg;
  }

  function graph(d, label, view, chosen, places = place) {
    const xs = places.map(p => p[0]), ys = places.map(p => p[1]), least = [Math.min(...xs), Math.min(...ys)];
    const span = Math.max(Math.max(...xs) - least[0], Math.max(...ys) - least[1], 1), size = view ? 220 : 420, r = view ? 6.5 : 9;
    const at = i => [14 + (xs[i] - least[0]) / span * (size - 28), 14 + (ys[i] - least[1]) / span * (size - 28)];
    const high = 28 + (Math.max(...ys) - least[1]) / span * (size - 28);
    const svg = element("svg", { class: "graph", viewBox: `0 0 ${size} ${high}`, role: "img", "aria-label": label });
    const names = states(d, view, chosen), edges = d.edges ?? [], now = view ? d.view ?? [] : edges;
    const line = ([i, j], name) => {
      const [x1, y1] = at(i), [x2, y2] = at(j);
      svg.append(element("line", { x1, y1, x2, y2, class: name }));
    };
    for (const e of edges) line(e, view && !now.some(f => same(e, f)) ? "gone" : e.includes(chosen) ? "on" : "");
    if (view) for (const e of now) if (!edges.some(f => same(e, f))) line(e, "new");
    d.labels.forEach((k, i) => {
      const [x, y] = at(i), hover = view || chosen === undefined ? {} : { onmouseenter: () => hovered(i), onclick: () => hovered(i) };
      svg.append(element("g", { class: "atom " + names[i], ...hover }, element("circle", { cx: x, cy: y, r, fill: color(k) }), element("text", { x, y: y + 3.5 }, view && d.masked[i] ? "~" : d.names[k])));
    });
    return svg;
  }

  function hovered(i) {
    if (Number($("#node").value) === i) return;
    $("#node").value = i;
    state.set("node", String(i));
    node();
  }

  // stages are what a layer does, one after the other; stage counts those that are shown.
  const stages = ["own label", "messages", "sum", "first half of the MLP", "second half"];
  let stage = stages.length;

  // node shows the layer at the chosen node.
  function node() {
    const i = Number($("#node").value), width = drawn.names.length, l = drawn.layer, edges = drawn.edges ?? [];
    const near = edges.filter(e => e.includes(i)).map(e => e[0] === i ? e[1] : e[0]);
    const own = Array(width).fill(0), others = Array(width).fill(0);
    own[drawn.labels[i]] = 1;
    for (const j of near) others[drawn.labels[j]]++;
    const row = (values, n) => values.slice(i * n, (i + 1) * n), wide = l.out.length / drawn.labels.length;
    $("#node-text").textContent = `${i}, ${drawn.names[drawn.labels[i]]}`;
    $("#graph-picture").replaceChildren(picture(drawn, drawn.title, false, i));
    if (stage === 2) messages(i, near);
    const shown = [
      matrix("x_i, the node's own label", 1, width, own), matrix("the sum over its neighbours", 1, width, others), matrix("their sum, as the engine has it", 1, width, row(l.sum, width)),
      matrix("after Linear and ReLU", 1, wide, row(l.hidden, wide)), matrix("after the second Linear: y_i", 1, wide, row(l.out, wide)),
    ];
    const to = (text, n, name) => element("button", { type: "button", "aria-label": name, disabled: n < 1 || n > stages.length, onclick: () => { stage = n; node(); $(`#node-layer button[aria-label="${name}"]`)?.focus(); } }, text);
    $("#node-layer").replaceChildren(
      element("p", { class: "formula" }, "y_i = MLP((1+ε)·x_i + Σ_{j→i} x_j),  ε = 0"),
      element("p", { class: "quiet" }, near.length ? `Its neighbours are ${near.join(", ")}. A column for each label: ${drawn.names.join(", ")}.` : "It has no neighbours."),
      element("div", { class: "flow", role: "group", "aria-label": "Steps of the layer" }, to("|◀", 1, "First step"), to("◀", stage - 1, "Step back"), to("Step ▶", stage + 1, "Next step"), element("output", {}, `${stage} of ${stages.length}: ${stages[stage - 1]}`)),
      ...shown.slice(0, stage),
      element("p", { class: "quiet" }, "The weights are random, of width 8. Hover over a node, or move the slider."));
  }

  // messages shows dots that travel from the neighbours to the node.
  function messages(i, near) {
    const circles = [...$("#graph-picture").querySelectorAll("g.atom circle")].map(c => [c.getAttribute("cx"), c.getAttribute("cy")]);
    for (const j of near) {
      const dot = element("circle", { class: "message", cx: circles[j][0], cy: circles[j][1], r: 5, style: `--dx:${circles[i][0] - circles[j][0]}px;--dy:${circles[i][1] - circles[j][1]}px` });
      $("#graph-picture svg").append(dot);
    }
  }

  // For lessons.
  window.views = {
    layout,
    draw: d => graph(d, d.title, false, undefined, layout(d.labels.length, d.edges ?? [])),
    drawn: () => drawn, node: hovered,
    choose: i => { $("#graph").value = i; state.set("graph", String(i)); $("#smiles").value = ""; state.set("smiles"); return draw(); },
  };
}
