// What looks at the whole file: atom colours, search, clusters, picks, the map, and models of one's own columns.
"use strict";

const tools = {
  similarity: null, clusters: null, picks: null, map: null, // by the number of a record
  fitted: null, // the last model file of a column

  reset() {
    Object.assign(this, { similarity: null, clusters: null, picks: null, map: null, fitted: null, row: null });
    $("#map").hidden = true;
    $("#chosen-body").hidden = true;
    $("#chosen-hint").hidden = false;
    $("#fit-result").textContent = "";
    $("#save-model").hidden = true;
    const columns = data.columns.filter(name => !data.source.id || name !== data.source.id);
    $("#fit-body").hidden = columns.length === 0;
    $("#fit-hint").textContent = columns.length ? "A linear model of descriptors, fingerprints and the encoder's vector, with 5-fold cross-validation." :
      "Your file needs a column of measured values: drop a CSV or an SD file with one.";
    $("#target").replaceChildren(...columns.map(name => element("option", {}, name)));
    this.models();
  },

  // models fills the lists of predicted columns.
  models() {
    const options = () => data.models.flatMap(m => m.columns.map(c => element("option", { value: JSON.stringify([m.name, c.name]) }, c.title)));
    const explained = $("#explained").value, colour = $("#colour").value;
    $("#explained").replaceChildren(...options());
    $("#colour").replaceChildren(element("option", { value: "cluster" }, "cluster"), ...options(),
      ...data.columns.filter(name => name !== data.source?.id).map(name => element("option", { value: JSON.stringify(["", name]) }, `${name} (your column)`)));
    for (const [id, old] of [["#explained", explained], ["#colour", colour]]) if ([...$(id).options].some(o => o.value === old)) $(id).value = old;
    if (!colour && $("#colour").options.length > 5) $("#colour").selectedIndex = 5;
  },

  // columns are what the tools found for each molecule.
  columns() {
    const list = [];
    const { similarity, clusters, picks, map } = this;
    if (similarity) list.push({ name: "similarity", of: row => similarity.get(row.number), shown: true });
    if (clusters) list.push({ name: "cluster", of: row => clusters.get(row.number), shown: true });
    if (picks) list.push({ name: "pick", of: row => picks.get(row.number), shown: true });
    if (map) list.push({ name: "map_x", of: row => map.get(row.number)?.[0] }, { name: "map_y", of: row => map.get(row.number)?.[1] });
    return list;
  },

  // choose shows a molecule in the panel and on the map.
  choose(row) {
    this.row = row;
    $("#chosen-hint").hidden = true;
    $("#chosen-body").hidden = false;
    $("#neighbours").replaceChildren();
    this.explain();
    this.paint();
  },

  // explain shows what the atoms contribute; the last question wins.
  async explain() {
    const { row } = this;
    if (!row) return;
    const [model, column] = JSON.parse($("#explained").value);
    const described = data.models.find(m => m.name === model).columns.find(c => c.name === column);
    $("#nearest").hidden = !described.domain;
    $("#explanation").setAttribute("aria-busy", "true");
    $("#explanation-text").textContent = `${row.id}: colouring the atoms …`;
    try {
      const answer = await pool.predictors[0].call("explain", { model, column, smiles: row.smiles });
      if (this.row !== row || $("#explained").value !== JSON.stringify([model, column])) return;
      $("#explanation").replaceChildren(drawing(answer.svg));
      $("#explanation-text").textContent = `${row.id}: ${described.title}, ${described.unit || column} ${brief(value(row, data.models.find(m => m.name === model), described))}. ` +
        `Vermillion atoms raise the prediction, blue ones lower it${answer.mean === undefined ? "" : `, compared with the mean of the training molecules, ${brief(answer.mean)}`}.`;
    } catch (e) {
      $("#explanation-text").textContent = e.message;
    }
    $("#explanation").removeAttribute("aria-busy");
  },

  async nearest() {
    const { row } = this;
    if (!row) return;
    const [model, column] = JSON.parse($("#explained").value);
    await work("Reading the training molecules …", async () => {
      const found = await pool.predictors[0].call("nearest", { model, column, smiles: row.smiles });
      $("#neighbours").replaceChildren(
        element("p", {}, found.Reasons?.length ? `Outside of the model's domain: ${found.Reasons.join("; ")}.` : "Inside the model's domain."),
        ...(found.Nearest ?? []).map(n => element("figure", {}, drawing(n.SVG),
          element("figcaption", {}, `similarity ${brief(n.Similarity)}, measured ${n.Values.join(", ")}`))));
      say("The nearest training molecules are below the drawing.");
    });
  },

  search() {
    const text = $("#search-text").value, kind = $("#search-kind").value;
    return work("Searching …", async (signal, progress) => {
      const { hits } = await ask("search", { text, kind, top: 50 }, signal, progress);
      this.similarity = kind === "similar" ? new Map(hits.map(h => [h.number, h.similarity])) : null;
      const why = kind === "similar" ? `most similar to ${text}` : `with ${text}`;
      table.only(hits.map(h => h.number), why);
      this.paint();
      say(hits.length ? `${hits.length} molecules ${why}. “Show all” brings the others back.` : `No molecule ${why}.`);
    });
  },

  cluster() {
    const least = Number($("#least").value);
    return work("Finding clusters …", async (signal, progress) => {
      const { clusters } = await ask("cluster", { least }, signal, progress);
      this.clusters = new Map(clusters.flatMap((members, k) => members.map(n => [n, k + 1])));
      table.only(clusters.flat(), `in ${clusters.length} clusters, the largest first`);
      $("#colour").value = "cluster";
      this.paint();
      say(`${clusters.length} clusters (Butina); the largest has ${clusters[0].length} molecules.`);
    });
  },

  pick() {
    const count = Math.round(Number($("#picks").value));
    return work("Picking …", async (signal, progress) => {
      const { hits } = await ask("pick", { count, seed: 0 }, signal, progress);
      this.picks = new Map(hits.map((h, k) => [h.number, k + 1]));
      table.only(hits.map(h => h.number), "picked, each as different as possible from those before (MaxMin)");
      this.paint();
      say(`${hits.length} diverse molecules are picked.`);
    });
  },

  project() {
    return work("Computing the map …", async (signal, progress) => {
      const { numbers, xy, ratios } = await ask("map", {}, signal, progress);
      this.map = new Map(numbers.map((n, k) => [n, xy[k]]));
      $("#map").hidden = false;
      this.paint();
      say(`The axes have ${ratios.map(r => (100 * r).toFixed(0)).join(" and ")} % of the variance of the fingerprints. Click a point.`);
    });
  },

  // colours returns the colour of each row by the chosen column, and says what it means.
  colours() {
    const choice = $("#colour").value;
    let of = row => this.clusters?.get(row.number);
    let classes = choice === "cluster";
    if (!classes) {
      const [model, name] = JSON.parse(choice);
      const m = data.models.find(x => x.name === model);
      of = m ? row => value(row, m, m.columns.find(c => c.name === name)) : row => ownValue(row, name);
    }
    const values = data.rows.filter(r => r && !r.error).map(of).filter(v => typeof v === "number");
    if (classes) {
      $("#legend").textContent = this.clusters ? "The eight largest clusters have colours." : "Find clusters first, or choose another column.";
      return row => of(row) <= 8 ? palette[of(row) - 1] : null;
    }
    const low = Math.min(...values.slice(0, 5e4)), high = Math.max(...values.slice(0, 5e4));
    $("#legend").textContent = values.length ? `purple ${brief(low)} … yellow ${brief(high)}` : "This column has no numbers.";
    return row => typeof of(row) === "number" ? viridis((of(row) - low) / (high - low || 1)) : null;
  },

  // place returns where the points are on the canvas.
  place() {
    const canvas = $("#points"), points = [...this.map];
    const bound = k => points.reduce(([low, high], [, at]) => [Math.min(low, at[k]), Math.max(high, at[k])], [Infinity, -Infinity]);
    const [x0, x1] = bound(0), [y0, y1] = bound(1), edge = 14;
    return points.map(([number, [x, y]]) => ({
      number, x: edge + (canvas.width - 2 * edge) * (x - x0) / (x1 - x0 || 1), y: canvas.height - edge - (canvas.height - 2 * edge) * (y - y0) / (y1 - y0 || 1),
    }));
  },

  paint() {
    if (!this.map) return;
    const canvas = $("#points"), c = canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
    const colour = this.colours(), shown = table.filter && new Set(table.filter);
    c.clearRect(0, 0, canvas.width, canvas.height);
    const points = this.place();
    for (const { number, x, y } of points) {
      const row = data.rows[number - 1];
      if (!row) continue;
      c.globalAlpha = shown && !shown.has(number) ? 0.12 : 0.8;
      c.fillStyle = colour(row) ?? style.getPropertyValue("--quiet");
      c.beginPath();
      c.arc(x, y, points.length > 2000 ? 2.5 : 4.5, 0, 7);
      c.fill();
    }
    c.globalAlpha = 1;
    const chosen = points.find(p => p.number === table.chosen);
    if (chosen) {
      c.strokeStyle = style.getPropertyValue("--ink");
      c.lineWidth = 3;
      c.beginPath();
      c.arc(chosen.x, chosen.y, 9, 0, 7);
      c.stroke();
    }
  },

  // click chooses the point that is nearest to a click.
  click(e) {
    if (!this.map) return;
    const canvas = $("#points"), box = canvas.getBoundingClientRect();
    const x = (e.clientX - box.x) * canvas.width / box.width, y = (e.clientY - box.y) * canvas.height / box.height;
    let best = null, least = Infinity;
    for (const p of this.place()) {
      const d = (p.x - x) ** 2 + (p.y - y) ** 2;
      if (d < least) [best, least] = [p, d];
    }
    if (best && data.rows[best.number - 1]) table.choose(best.number, true);
  },

  fit() {
    const target = $("#target").value, scaffold = $("#scaffold").checked;
    return work(`Fitting a model of ${target} …`, async (signal, progress) => {
      const m = await ask("fit", { target, scaffold }, signal, progress);
      const bytes = Uint8Array.from(atob(m.model), c => c.charCodeAt(0));
      this.fitted = { name: target.replace(/\W+/g, "-"), bytes };
      const metric = { mae: "mean absolute error", roc_auc: "ROC-AUC (%)", accuracy: "accuracy (%)" }[m.metric];
      $("#fit-result").textContent = `${m.records} molecules, 5-fold cross-validation (${m.split}): ${metric} ${brief(m.score)} ± ${brief(m.std)}; ` +
        `a guess that ignores the molecule has ${brief(m.baseline)}.`;
      const name = `my ${target}`;
      const model = await pool.load(name, bytes);
      data.models = data.models.filter(x => x.name !== name);
      data.models.push({ name, columns: model.columns.map(c => ({ ...c, title: `${c.name} (your model)` })), names: model.names.map(n => `predicted_${n}`) });
      for (const row of data.rows) if (row) delete row.values[name];
      this.models();
      table.head();
      $("#save-model").hidden = false;
      await predict([data.models.at(-1)], signal, progress);
      say(`The model of ${target} predicts in the table. Its file is for you to keep: Download model.`);
    });
  },
};

const palette = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e0a800", "#56b4e9", "#8a3fa8", "#7a5230"];
function viridis(t) {
  const stops = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
  const x = 4 * Math.max(0, Math.min(1, t)), k = Math.min(3, Math.floor(x));
  return `rgb(${stops[k].map((v, i) => Math.round(v + (x - k) * (stops[k + 1][i] - v))).join(" ")})`;
}

addEventListener("DOMContentLoaded", () => {
  const submit = (id, f) => $(id).addEventListener("submit", e => {
    e.preventDefault();
    f();
  });
  submit("#search", () => tools.search());
  submit("#fit", () => tools.fit());
  $("#explained").addEventListener("change", () => {
    $("#neighbours").replaceChildren();
    tools.explain();
  });
  $("#nearest").addEventListener("click", () => tools.nearest());
  $("#cluster-run").addEventListener("click", () => tools.cluster());
  $("#pick-run").addEventListener("click", () => tools.pick());
  $("#map-run").addEventListener("click", () => tools.project());
  $("#colour").addEventListener("change", () => tools.paint());
  $("#points").addEventListener("click", e => tools.click(e));
  $("#save-model").addEventListener("click", () => tools.fitted && download(`${tools.fitted.name}.safetensors`, tools.fitted.bytes, "application/octet-stream"));
});
