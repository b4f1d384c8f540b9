// The table: only the rows in sight are in the document.
"use strict";

const table = {
  view: [],      // numbers of the records, in the order shown
  filter: null,  // numbers that a tool found, in their order; null for all
  sort: null,    // { key, sign }
  chosen: 0,     // number of the chosen record
  height: 136,   // of a row
  made: new Map(), // the elements of the rows in sight, by number, while they are as they were

  reset() {
    this.view = [];
    this.filter = null;
    this.sort = null;
    this.chosen = 0;
    $("#table").scrollTop = 0;
    this.head();
    this.order();
  },

  // columns are what a row shows: { title, key(row), cell(row) }.
  columns() {
    const predicted = data.models.flatMap(model => model.columns.map(column => ({
      title: column.title,
      unit: column.unit,
      hint: [column.title, column.unit, column.score].filter(Boolean).join("; "),
      key: row => value(row, model, column),
      cell: row => predictionCell(row, model, column),
    })));
    const own = data.columns.filter(name => name !== data.source?.id).map(name => ({
      title: name,
      key: row => ownValue(row, name),
      cell: row => element("td", { class: "own" }, row.fields?.[data.source.fields.indexOf(name)] ?? ""),
    }));
    const found = tools.columns().filter(c => c.shown).map(c => ({
      title: c.name,
      key: c.of,
      cell: row => element("td", {}, brief(c.of(row))),
    }));
    return [{ title: "molecule", key: row => row.id, cell: null }, ...found, ...predicted, ...own];
  },

  head() {
    this.shownColumns = this.columns();
    const tr = element("tr");
    for (const [k, column] of this.shownColumns.entries()) {
      const isSorted = this.sort?.k === k;
      tr.append(element("th", { scope: "col", "aria-sort": isSorted ? (this.sort.sign > 0 ? "ascending" : "descending") : undefined },
        element("button", { type: "button", title: column.hint, onclick: () => this.sortBy(k) },
          column.title, column.unit && column.unit !== "probability" ? element("span", { class: "unit" }, column.unit) : "", isSorted ? (this.sort.sign > 0 ? " ↑" : " ↓") : "")));
    }
    $("#table thead").replaceChildren(tr);
  },

  sortBy(k) {
    if (this.sort?.k === k && this.sort.sign < 0) this.sort = null;
    else this.sort = { k, sign: this.sort?.k === k ? -1 : 1 };
    this.head();
    this.order();
  },

  // order computes what is shown, in its order.
  order() {
    const numbers = this.filter ?? data.rows.map(row => row?.number).filter(Boolean);
    this.view = numbers.filter(n => data.rows[n - 1] && !data.rows[n - 1].error);
    if (this.sort) {
      const { k, sign } = this.sort;
      const keys = new Map(this.view.map(n => [n, this.shownColumns[k]?.key(data.rows[n - 1])]));
      this.view.sort((a, b) => {
        const x = keys.get(a), y = keys.get(b);
        const missing = v => v === undefined || v === "" || v === null;
        if (missing(x) || missing(y)) return missing(x) - missing(y);
        return sign * (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true }));
      });
    }
    this.show();
  },

  show() {
    this.made.clear();
    const shown = this.view.length, all = data.rows.reduce((n, row) => n + (row && !row.error ? 1 : 0), 0);
    $("#shown").textContent = this.filter ? `${shown} of ${all}: ${this.why}` : `${all.toLocaleString("en")}`;
    $("#all").hidden = !this.filter;
    this.render();
  },

  only(numbers, why) {
    this.filter = numbers;
    this.why = why;
    this.sort = null;
    this.head();
    $("#table").scrollTop = 0;
    this.order();
  },

  // arrived shows new rows, at most once a frame.
  arrived() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      if (!this.sort && !this.filter) this.order();
    });
  },
  finished() { this.order(); },

  // render makes the rows in sight.
  render() {
    const box = $("#table"), body = $("#table tbody");
    const first = Math.max(0, Math.floor(box.scrollTop / this.height) - 2);
    const last = Math.min(this.view.length, first + Math.ceil(box.clientHeight / this.height) + 5);
    const spacer = n => element("tr", { class: "spacer", style: `height:${n * this.height}px`, "aria-hidden": "true" });
    const focused = document.activeElement?.dataset?.number;
    const made = new Map(this.view.slice(first, last).map(n => [n, this.made.get(n) ?? this.row(data.rows[n - 1])]));
    if (made.size === this.made.size && [...made].every(([n, tr]) => this.made.get(n) === tr) && body.children.length === made.size + 2) return;
    this.made = made;
    body.replaceChildren(spacer(first), ...made.values(), spacer(this.view.length - last));
    if (focused) body.querySelector(`button[data-number="${focused}"]`)?.focus({ preventScroll: true });
  },

  row(row) {
    const tr = element("tr", { class: row.number === this.chosen ? "chosen" : "", onclick: () => this.choose(row.number) });
    const picture = element("div", { class: "picture" });
    sketch(row, picture);
    tr.append(element("th", { scope: "row" }, picture,
      element("button", { type: "button", class: "name", "data-number": row.number, "aria-pressed": String(row.number === this.chosen), title: row.smiles }, row.id)));
    for (const column of this.shownColumns.slice(1)) tr.append(column.cell(row));
    return tr;
  },

  // choose shows a molecule everywhere.
  choose(number, scroll = false) {
    this.chosen = number;
    if (scroll) {
      if (!this.view.includes(number)) this.only(data.rows.map(r => r?.number).filter(Boolean), "all"), this.filter = null, this.show();
      $("#table").scrollTop = Math.max(0, this.view.indexOf(number) * this.height - this.height);
    }
    this.made.clear();
    this.render();
    tools.choose(data.rows[number - 1]);
  },
};

function ownValue(row, name) {
  const text = row.fields?.[data.source.fields.indexOf(name)] ?? "";
  return text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
}

// sketch draws a molecule into a box: at once if the drawing is there, else when the engine has made it.
const sketches = { queue: new Map(), busy: false };
function sketch(row, box) {
  if (row.svg !== undefined) return void (row.svg ? box.append(drawing(row.svg)) : box.append(element("span", { class: "quiet" }, "too large to draw")));
  sketches.queue.set(row, box);
  drawNext();
}
async function drawNext() {
  if (sketches.busy || !sketches.queue.size) return;
  sketches.busy = true;
  const [row, box] = [...sketches.queue].at(-1);
  sketches.queue.delete(row);
  if (box.isConnected || sketches.queue.size === 0) {
    try {
      const { svg } = await pool.desk.call("explain", { smiles: row.smiles });
      row.svg = svg;
      if (svg) document.querySelector(`button[data-number="${row.number}"]`)?.parentElement.querySelector(".picture").replaceChildren(drawing(svg));
    } catch { /* the desk was stopped: the drawing comes when the row is in sight again */ }
  }
  sketches.busy = false;
  drawNext();
}

// brief writes a number with three digits or so.
function brief(v) {
  if (v === undefined || v === null) return "–";
  if (typeof v !== "number") return v;
  const a = Math.abs(v);
  const text = Number.isInteger(v) ? String(v) : a >= 1e5 || a < 5e-4 ? v.toExponential(1) : v.toFixed(a < 10 ? 2 : a < 100 ? 1 : 0);
  return text.replace("-", "−");
}

// far says that a molecule is this much farther from the training molecules than is typical.
const far = 3;

// predictionCell shows a prediction with its interval or set, and whether the molecule is usual.
function predictionCell(row, model, column) {
  const values = row.values[model.name];
  if (!values) return element("td", { class: "quiet" }, "…");
  const prediction = values[column.first];
  const [one, two] = column.sure ? values.slice(column.sure) : [];
  const td = element("td", { class: "prediction" });
  if (column.kind === "regression") {
    td.append(element("b", {}, brief(prediction)));
    if (column.sure) td.append(element("span", { class: "interval" }, `${brief(one)} … ${brief(two)}`));
  } else if (column.kind === "binary") {
    const answer = !column.sure ? "" : one && two ? "open" : two ? "yes" : one ? "no" : "unusual";
    td.append(element("b", {}, answer || brief(prediction)), element("span", { class: "interval" }, `p = ${brief(prediction)}`),
      element("span", { class: "meter", "aria-hidden": "true" }, element("span", { style: `width:${Math.round(100 * prediction)}%` })));
  } else {
    td.append(element("b", {}, brief(prediction)));
  }
  const distance = column.distance ? values[column.distance] : undefined;
  if (distance > far) td.append(element("span", { class: "far", title: `${brief(distance)} times as far from the training molecules as is typical` }, "◇"));
  return td;
}

addEventListener("DOMContentLoaded", () => {
  $("#table").addEventListener("scroll", () => {
    cancelAnimationFrame(table.frame);
    table.frame = requestAnimationFrame(() => table.render());
  });
  addEventListener("resize", () => table.render());
  $("#all").addEventListener("click", () => {
    table.filter = null;
    table.order();
  });
});
