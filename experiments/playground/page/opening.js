// The opening: a graph, two views of it, points that separate, and what that is worth. It moves by itself, once.
"use strict";
{
  const length = 10, still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const { graph, views: pair, classes, frames } = recorded;
  const colors = ["--one", "--two", "--three"];
  const place = views.layout(graph.labels.length, graph.edges);
  const clamp = v => Math.max(0, Math.min(1, v));
  const ease = v => clamp(v) ** 2 * (3 - 2 * clamp(v));
  let time = still ? length : 0, running = !still, before = 0;

  // sketch draws the graph, or a view of it, in a square of 200 whose corner is at x.
  function sketch(x, name, view) {
    const xs = place.map(p => p[0]), ys = place.map(p => p[1]), span = Math.max(Math.max(...xs) - Math.min(...xs), Math.max(...ys) - Math.min(...ys));
    const at = i => [x + 15 + (xs[i] - Math.min(...xs)) / span * 170, 15 + (ys[i] - Math.min(...ys)) / span * 170];
    const g = element("g");
    const same = (a, b) => a[0] === b[0] && a[1] === b[1] || a[0] === b[1] && a[1] === b[0];
    for (const e of view ? view.view : graph.edges) {
      const [x1, y1] = at(e[0]), [x2, y2] = at(e[1]);
      g.append(element("line", { x1, y1, x2, y2, class: graph.edges.some(f => same(e, f)) ? "" : "new" }));
    }
    graph.labels.forEach((k, i) => {
      const [cx, cy] = at(i);
      g.append(element("g", { class: view && !view.kept[i] ? "gone" : "" },
        element("circle", { cx, cy, r: 9, fill: `var(${["--one", "--two", "--three", "--c3", "--c4", "--c5"][k % 6]})` }), element("text", { x: cx, y: cy + 4 }, graph.names[k])));
    });
    g.append(element("text", { class: "name", x: x + 100, y: 222 }, name));
    return g;
  }
  const scene = element("svg", { viewBox: "0 0 420 235", role: "img", "aria-label": "A graph and two random views of it" });
  const original = sketch(110, "a graph"), first = sketch(0, "view 1: nodes dropped", pair[0]), second = sketch(220, "view 2: edges moved", pair[1]);
  scene.append(original, first, second);
  $("#scene").append(scene);

  const dots = classes.map(c => {
    const dot = [element("circle", { r: 9 }), element("rect", { x: -8, y: -8, width: 16, height: 16 }), element("path", { d: "M0-10L10 8H-10Z" })][c];
    dot.setAttribute("fill", `var(${colors[c]})`);
    dot.setAttribute("opacity", ".75");
    return dot;
  });
  $("#opening-points").append(...dots);
  $("#opening-command").textContent = recorded.command;

  const bar = (name, kind) => {
    const fill = element("i"), value = element("span");
    $("#bars").append(element("div", { class: "bar-row " + kind }, element("span", {}, name), element("div", {}, fill), value));
    return v => { fill.style.width = v + "%"; value.textContent = v.toFixed(1) + " %"; };
  };
  const trained = bar("trained", "");
  bar("untrained", "baseline")(recorded.untrained);
  bar("counted labels", "baseline")(recorded.labels);
  $("#bars").append(element("p", { class: "quiet" }, "Guessing has 33.3 %."));

  function draw() {
    const apart = ease((time - 1.5) / 1.5);
    original.setAttribute("opacity", 1 - apart);
    for (const [g, way] of [[first, 110], [second, -110]]) {
      g.setAttribute("opacity", apart);
      g.setAttribute("transform", `translate(${(1 - apart) * way} 0)`);
    }
    $("#opening-said").textContent = time < 1.5 ? "A graph. Its label is not used."
      : time < 4 ? "Two random views of it: training makes their embeddings agree," : "and keeps those of other graphs apart.";
    const at = clamp((time - 4) / (length - 4.5)) * (frames.length - 1), k = Math.min(Math.floor(at), frames.length - 2), share = ease(at - k);
    const mix = (a, b) => a + (b - a) * share;
    dots.forEach((dot, i) => {
      const x = mix(frames[k].points[2 * i], frames[k + 1].points[2 * i]), y = 600 - 0.6 * mix(frames[k].points[2 * i + 1], frames[k + 1].points[2 * i + 1]);
      dot.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
    });
    trained(mix(frames[k].accuracy, frames[k + 1].accuracy));
    $("#opening-time").value = time;
    $("#opening-run").textContent = running ? "Pause" : time >= length ? "Again" : "Go on";
  }

  function tick(now) {
    if (!running) return;
    time = Math.min(length, time + Math.min(0.1, (now - before) / 1000));
    before = now;
    if (time >= length) running = false;
    draw();
    if (running) requestAnimationFrame(tick);
  }
  function go() {
    running = true;
    before = performance.now();
    requestAnimationFrame(tick);
  }
  $("#opening-run").onclick = () => {
    if (running) running = false;
    else {
      if (time >= length) time = 0;
      go();
    }
    draw();
  };
  $("#opening-time").oninput = () => {
    running = false;
    time = Number($("#opening-time").value);
    draw();
  };
  draw();
  if (running) go();
  window.opening = { time: () => time, seek(t) { running = false; time = t; draw(); } };
}
