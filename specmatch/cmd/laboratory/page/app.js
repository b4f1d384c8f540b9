// Files come in, predictions stream into the table, and downloads go out.
"use strict";

// data is the table: a record of the file a row.
const data = {
  name: "", source: null, parts: [], columns: [], total: 0,
  rows: [],       // by the number of the record less 1
  models: [],     // { name, columns, names }: what predicts; the first is the program's own
  bad: 0,
};

let running = null; // an AbortController while something can be cancelled

// work runs a task that Cancel can stop, with its progress, and shows what went wrong.
async function work(label, task) {
  if (running) return;
  running = new AbortController();
  $("#message").textContent = "";
  $("#bar").value = 0;
  $("#progress").hidden = false;
  document.documentElement.dataset.busy = "yes";
  lock(true);
  say(label);
  try {
    await task(running.signal, share => { $("#bar").value = share; });
  } catch (e) {
    if (e instanceof Cancelled) say("Cancelled. What is in the table stays.");
    else {
      say("");
      $("#message").textContent = e.message;
    }
  } finally {
    running = null;
    $("#progress").hidden = true;
    delete document.documentElement.dataset.busy;
    lock(false);
  }
}

// lock keeps buttons from starting a second task.
function lock(busy) {
  for (const b of document.querySelectorAll("main button")) {
    if (b.id !== "cancel" && !b.closest("#table")) b.disabled = busy;
  }
  $("#file").disabled = busy;
}

// ask asks the desk, which Cancel stops; the desk then has to read the file again.
async function ask(method, request, signal, progress) {
  if (data.stale) await reopen();
  const stop = () => pool.desk.stop();
  signal.addEventListener("abort", stop, { once: true });
  try {
    return await pool.desk.call(method, request, { progress });
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

async function reopen() {
  await pool.desk.call("open", { name: data.name, ...data.source }, { bytes: data.bytes });
  data.stale = false;
}

// take reads what was dropped or pasted: molecules, or a model.
async function take(name, bytes) {
  if (/\.(safetensors|zip)$/i.test(name)) return takeModel(name, bytes);
  await work(`Reading ${name} …`, async (signal, progress) => {
    const file = await pool.desk.call("open", { name }, { bytes });
    Object.assign(data, {
      name, bytes, source: { format: file.format, smiles: file.smiles, id: file.id, fields: file.fields ?? [] },
      parts: file.parts ?? [], columns: file.columns ?? [], total: file.records, rows: new Array(file.records), bad: 0, stale: false,
    });
    $("#rejected tbody").replaceChildren();
    $("#rejected").hidden = true;
    $("#bench").hidden = false;
    tools.reset(); // before the table, which has a column for each of its findings
    table.reset();
    await predict(data.models, signal, progress);
  });
}

// predict fills the values of some models into the rows.
async function predict(models, signal, progress) {
  const started = performance.now();
  const requests = [];
  for (const model of models) {
    for (const part of data.parts) requests.push({ ...data.source, ...part, model: model.name, draw: model === data.models[0] && data.total <= 2000 });
  }
  let done = 0;
  await pool.each("predict", requests, signal, (answer, k) => {
    for (const row of answer.rows) receive(row, requests[k].model);
    done += answer.rows.length;
    const share = done / (data.total * models.length);
    progress(share);
    say(`${done.toLocaleString("en")} of ${(data.total * models.length).toLocaleString("en")} molecules …`);
    table.arrived();
  });
  table.finished();
  const seconds = (performance.now() - started) / 1000;
  const read = data.total - data.bad;
  say(`${read.toLocaleString("en")} molecules in ${seconds.toFixed(1)} s.` +
    (data.bad ? ` ${data.bad} could not be read: see the list below.` : "") + " Choose one to see why.");
}

// receive puts an answer into the table.
function receive(row, model) {
  const known = data.rows[row.number - 1];
  if (known) {
    known.values[model] = row.values;
    return;
  }
  row.values = { [model]: row.values };
  data.rows[row.number - 1] = row;
  if (!row.error) return;
  data.bad++;
  $("#rejected").hidden = false;
  $("#rejected summary").textContent = `${data.bad} of ${data.total} records cannot be used`;
  $("#rejected tbody").append(element("tr", {},
    element("td", {}, String(row.line)), element("td", { class: "code" }, row.smiles || row.id), element("td", {}, row.error)));
}

// takeModel adds a model to those that predict.
async function takeModel(file, bytes) {
  const name = `file ${file}`; // differs from the own names of the page: admet, vectors, my TARGET
  await work(`Opening the model ${file} …`, async (signal, progress) => {
    let model;
    try {
      model = await pool.load(name, bytes);
    } catch (e) {
      throw new Error(`${file}: ${e.message}`);
    }
    data.models = data.models.filter(m => m.name !== name);
    data.models.push({ name, columns: model.columns, names: model.names });
    table.head();
    tools.models();
    if (!data.total) {
      say(`The model ${file} is open. Now drop molecules.`);
      return;
    }
    for (const row of data.rows) if (row) delete row.values[name];
    await predict([data.models.at(-1)], signal, progress);
  });
}

// value returns the number of a column of a row, undefined without one.
function value(row, model, column, offset = 0) {
  return row?.values?.[model.name]?.[column.first + offset] ?? undefined;
}

// csv returns a table as text.
function csv(rows) {
  const quote = v => {
    const text = v === undefined || v === null ? "" : String(v);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map(row => row.map(quote).join(",") + "\n").join("");
}

// distinct gives a name that occurred before the suffix _2, _3 and so on.
function distinct(names) {
  const taken = new Set();
  return names.map(name => {
    let unique = name;
    for (let n = 2; taken.has(unique) || unique !== name && names.includes(unique); n++) unique = `${name}_${n}`;
    taken.add(unique);
    return unique;
  });
}

// cells returns the whole table with a header: id, SMILES, the file's other columns, predictions, and what the tools
// found.
function cells() {
  const found = tools.columns();
  const own = [...data.source.fields.keys()].filter(k => !data.source.id || data.source.fields[k] !== data.source.id);
  const names = ["id", "smiles", ...own.map(k => data.source.fields[k]), ...data.models.flatMap(m => m.names), ...found.map(c => c.name)];
  const rows = data.rows.filter(row => row && !row.error).map(row => [
    row.id, row.smiles, ...own.map(k => row.fields?.[k] ?? ""),
    ...data.models.flatMap(m => m.names.map((_, k) => row.values[m.name]?.[k] ?? "")),
    ...found.map(c => c.of(row) ?? ""),
  ]);
  return { header: distinct(names), rows, predicted: 2 + own.length };
}

function download(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

const stem = () => data.name.replace(/\.\w+(\.gz)?$/, "").replace(/\W+/g, "-") || "molecules";

function saveTable() {
  const { header, rows } = cells();
  download(stem() + "-predictions.csv", csv([header, ...rows]), "text/csv");
}

// savePage writes a page of drawings that needs nothing else.
function savePage() {
  return work("Drawing the page …", async (signal, progress) => {
    const { header, rows, predicted } = cells();
    const map = tools.map;
    const points = map ? data.rows.filter(row => row && !row.error).map(row => map.get(row.number) ?? [0, 0]) : null;
    const page = await ask("page", {
      Title: `Predictions for ${data.name}`, Columns: header, Rows: rows.map(row => row.map(String)), SMILES: 1, Points: points, Colour: header[predicted],
    }, signal, progress);
    download(stem() + "-predictions.html", page.html, "text/html");
    say("The page is downloaded. It works without this one.");
  });
}

// saveVectors writes the encoder's vectors, as specmatch embed does.
function saveVectors() {
  return work("Computing vectors …", async (signal, progress) => {
    const { names } = (await Promise.all(pool.predictors.map(engine => engine.call("load", { model: "vectors" }))))[0];
    const lines = new Array(data.total);
    let done = 0;
    await pool.each("predict", data.parts.map(part => ({ ...data.source, ...part, model: "vectors" })), signal, answer => {
      for (const row of answer.rows) if (!row.error) lines[row.number - 1] = [row.id, ...row.values];
      progress((done += answer.rows.length) / data.total);
    });
    download(stem() + "-vectors.csv", csv([["id", ...names], ...lines.filter(Boolean)]), "text/csv");
    say(`Vectors of ${lines.filter(Boolean).length} molecules are downloaded.`);
  });
}

const drugs = `CC(=O)Oc1ccccc1C(=O)O aspirin
CC(=O)Nc1ccc(O)cc1 paracetamol
CC(C)Cc1ccc(cc1)C(C)C(=O)O ibuprofen
Cn1c(=O)c2c(ncn2C)n(C)c1=O caffeine
CN1CCC[C@H]1c1cccnc1 nicotine
CC(C)NCC(O)COc1cccc2ccccc12 propranolol
CN1CCC23c4c5ccc(O)c4OC2C(O)C=CC3C1C5 morphine
OC(=O)COCCN1CCN(CC1)C(c1ccccc1)c1ccc(Cl)cc1 cetirizine
CN1C(=O)CN=C(c2ccccc2)c2cc(Cl)ccc12 diazepam
Clc1ccc2c(c1)CCc1cccnc1C2=C1CCNCC1 desloratadine
`;

// keepOffline hands the page's files to a service worker; a page from a file needs none.
async function keepOffline() {
  if (!navigator.serviceWorker || !/^https?:$/.test(location.protocol)) return;
  try {
    await navigator.serviceWorker.register("offline.js");
    const { active } = await navigator.serviceWorker.ready;
    const channel = new MessageChannel();
    channel.port1.onmessage = () => { document.documentElement.dataset.offline = "kept"; };
    const own = [...document.querySelectorAll("script[src], link[rel=stylesheet]")].map(e => e.src || e.href);
    active.postMessage([location.href.split("#")[0], ...own], [channel.port2]);
  } catch { /* a page without it works, but not offline */ }
}

function engineLoaded(parts) {
  pool.open(parts).then(model => {
    data.models = [{ name: "admet", columns: model.columns, names: model.names }];
    lock(false);
    say("The engine is ready: drop a file, paste SMILES, or try ten drugs.");
    document.documentElement.dataset.ready = Math.round(performance.now());
    keepOffline();
  }, e => { $("#message").textContent = `The engine does not run here: ${e.message}. A recent Firefox, Chrome, Edge or Safari runs it.`; });
}

addEventListener("DOMContentLoaded", () => {
  lock(true);
  $("#file").addEventListener("change", async e => {
    const [file] = e.target.files;
    e.target.value = "";
    if (file) take(file.name, new Uint8Array(await file.arrayBuffer()));
  });
  addEventListener("dragover", e => {
    e.preventDefault();
    document.body.classList.add("dragging");
  });
  addEventListener("dragleave", e => { if (!e.relatedTarget) document.body.classList.remove("dragging"); });
  addEventListener("drop", async e => {
    e.preventDefault();
    document.body.classList.remove("dragging");
    if (!document.documentElement.dataset.ready || running) return void ($("#message").textContent = "One moment: drop it again when the bar is gone.");
    const [file] = e.dataTransfer.files;
    const text = e.dataTransfer.getData("text");
    if (file) take(file.name, new Uint8Array(await file.arrayBuffer()));
    else if (text) take("pasted text", new TextEncoder().encode(text));
  });
  $("#paste-form").addEventListener("submit", e => {
    e.preventDefault();
    take("pasted text", new TextEncoder().encode($("#paste").value));
  });
  $("#example").addEventListener("click", () => {
    $("#paste").value = drugs;
    $("#paste-form").requestSubmit();
  });
  $("#cancel").addEventListener("click", () => running?.abort());
  $("#save-csv").addEventListener("click", saveTable);
  $("#save-html").addEventListener("click", savePage);
  $("#save-vectors").addEventListener("click", saveVectors);
  $("#theme").addEventListener("click", () => {
    const dark = getComputedStyle(document.documentElement).colorScheme === "dark";
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    tools.paint();
  });
  document.head.append(element("script", { src: "engine.js" }));
});
