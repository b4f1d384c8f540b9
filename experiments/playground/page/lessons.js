// Lessons: three columns of ten short steps. A step sets the page, and asks what can be seen there.
"use strict";
{
  const nodes = () => tape.trace().nodes, of = op => nodes().findIndex(n => n.op === op);
  const breakAt = async (example, op, kind) => {
    await tape.choose(example);
    const k = tape.trace().steps.findIndex(s => nodes()[s.node].op === op && s.breaks.includes(kind));
    if (k < 0) return; // the reader has chosen another one meanwhile
    tape.move(k + 1);
    await tape.breakAt(tape.trace().steps[k].node, kind);
  };
  const show = (section, f) => async () => { await f(); go(section); };
  const tapeAt = (example, position) => show("tape", async () => { await tape.choose(example); tape.move(position); });
  const graph = f => show("views", async () => { await views.choose(5); f?.(); });
  const plain = steps => show("training", () => training.train(undefined, steps));

  // A step: what it says, what the page then shows, the question, and the answers: the first is right (they are shown
  // in the order of the alphabet), or a function returns the number.
  const lessons = [["What a tape is", [
    ["Each call of an operator appends an entry to the tape. So does each leaf, a matrix that needs a gradient.", tapeAt(0, 0),
      "How many entries does this tape have?", () => nodes().filter(n => n.entry).length],
    ["x has 4 rows and 3 columns, w has 3 and 3. The product has the rows of the first and the columns of the second.", tapeAt(0, 0),
      "What is the shape of x·w?", ["4 × 3", "3 × 3", "3 × 4"]],
    ["Backward starts at the loss, a number. Its gradient is the derivative of the loss with respect to itself.", tapeAt(0, 0),
      "What number is it?", () => 1],
    ["The VJP of Sum gives dy to every entry of its input, because each counts once in the sum.", tapeAt(0, 1),
      "What number is in every entry of the gradient of ReLU's value?", () => 1],
    ["ReLU passes dy on where its value is positive, and 0 elsewhere.", tapeAt(0, 2),
      "How many zeros does the gradient of AddRow's value have?", () => nodes()[of("AddRow")].grad.filter(v => v === 0).length],
    ["AddRow adds the row b to each of four rows. Its VJP sums dy over the rows, for b.", tapeAt(0, 3),
      "What is the first entry of the gradient of b?", () => nodes()[2].grad[0]],
    ["The VJP of y = x·w is dx = dy·wᵀ and dw = xᵀ·dy. A gradient has the shape of its matrix.", tapeAt(0, 4),
      "What is the shape of dw?", ["3 × 3", "4 × 3", "3 × 4"]],
    ["Here h = x·w is used twice, by Mul and by Tanh. Each use sends a gradient.", tapeAt(4, 2),
      "What happens to the second gradient that arrives at h?", ["It is added to the first", "It replaces the first", "It is dropped"]],
    ["Now the second replaces the first: a mistake that every engine has made once. Each VJP by itself is right.", show("tape", () => breakAt(4, "Tanh", "accumulation")),
      "Where does the gradient check fail?", ["At x and w", "At x alone", "Nowhere"]],
    ["The VJP of MatMul now gives half of every gradient. The loss still falls, but more slowly.", show("tape", () => breakAt(0, "MatMul", "factor")),
      "What reveals the mistake?", ["Central differences", "The loss, which rises", "The shapes"]],
  ]], ["Why a batch of graphs is one sparse matrix", [
    ["A graph is a list of nodes and a list of edges.", graph(),
      "How many nodes does this one have?", () => views.drawn().labels.length],
    ["Its adjacency matrix A has a 1 at (i, j) if an edge goes from j to i. An undirected edge goes both ways.", graph(),
      "How many entries of A are 1?", () => 2 * views.drawn().edges.length],
    ["All other entries are 0. A sparse matrix stores only the ones.", graph(),
      "How many zeros does it skip?", () => views.drawn().labels.length ** 2 - 2 * views.drawn().edges.length],
    ["Message passing is a product: row i of A·x is the sum of the rows of x of the neighbours of node i.", graph(() => views.node(3)),
      "How many neighbours does node 3 have?", () => views.drawn().edges.filter(e => e.includes(3)).length],
    ["On the tape, b is the adjacency matrix of four nodes: b.MatMul(x) sums over neighbours.", tapeAt(7, 0),
      "Which operator adds a node's own features?", ["Add", "MatMul", "ReLU"]],
    ["A batch puts the matrices of two graphs on the diagonal of a larger one. Here each graph is a pair of nodes.", show("tape", () => tape.values(7, "0 1 0 0\n1 0 0 0\n0 0 0 1\n0 0 1 0")),
      "Does the second graph change the rows of the first in b·x?", ["No", "Yes"]],
    ["The VJP of b·x is dx = bᵀ·dy: gradients follow the edges backwards.", show("tape", () => tape.values(7, "0 1 0 0\n1 0 0 0\n0 0 0 1\n0 0 1 0")),
      "When is bᵀ = b, so that no transpose has to be stored?", ["When edges are undirected", "When b is sparse", "Never"]],
    ["A batch of 60 graphs with 25 nodes each has 1500 nodes.", null,
      "How many entries would its dense matrix have?", () => 2250000],
    ["With 26 undirected edges in each of the 60 graphs, the sparse matrix stores two entries for each edge.", null,
      "How many entries are that?", () => 3120],
    ["The embedding of a graph is the sum over its nodes. It is another product with a sparse matrix, which has a row for each graph.", null,
      "How many entries of each of its columns are 1?", () => 1],
  ]], ["What contrastive learning can and cannot do here", [
    ["The three classes are equally large.", plain(0),
      "What accuracy does a guess reach, in whole percent?", () => 33],
    ["By design, the counts of a graph's labels say nothing about its class. An untrained encoder does better.", plain(0),
      "What accuracy does it reach, in whole percent?", () => Math.round(training.base().untrained.accuracy)],
    ["Batch norm keeps running means of its inputs. Let the same weights see the data once, without learning.", plain(0),
      "What accuracy do they reach now, in whole percent?", () => Math.round(training.base().statistics)],
    ["So a part of the first epoch's gain is not learning. An epoch uses all 240 graphs, in batches of 60.", plain(4),
      "How many steps does an epoch have?", () => 4],
    ["This is the paper's hard threshold, with β = 20. L_G is not zero, but a step function has no slope.", show("training", () => training.train(0, 4)),
      "How does L_G change the weights?", ["Not at all", "Strongly", "A little"]],
    ["With a soft threshold and a large β, the trained L_G falls to almost nothing.", show("training", () => training.train(1, 8)),
      "Does L_G with the hard threshold fall, too?", ["No", "Yes"]],
    ["Look at the spread of the similarities: it shows how the encoder cheats the loss.", show("training", () => training.train(1, 8)),
      "What happens to the spread?", ["It shrinks", "It grows", "It stays"]],
    ["The straight-through estimator collapses all projections to one point. L_C is then the logarithm of the number of candidates, 2·60 − 1.", show("training", () => training.train(2, 12)),
      "What is that, to one decimal?", () => 4.8],
    ["The projections have collapsed, but the classifier has lost little. It reads the encoder, before the projection.", show("training", () => training.train(2, 12)),
      "What does this accuracy say about L_G?", ["Little: the encoder's form does most", "L_G works", "L_G does harm"]],
    ["The figures are from one seed and 240 graphs. Another seed moves them by a few points.", plain(4),
      "What is needed to say that one method is better?", ["Many seeds, and baselines", "A better curve", "A larger β"]],
  ]]];
  const solved = new Set();
  let at = null, kept = null; // what the reader had, while a lesson sets the page

  const go = section => { state.section = section; state.write(); $(`#${section} :is(.controls, .pictures, #lesson-list)`).scrollIntoView(); };
  const right = answers => typeof answers === "function" ? answers() : answers[0];

  sections.push(() => {
    list();
    const m = /^(\d)\.(\d)$/.exec(state.get("lesson") ?? "");
    if (m && lessons[m[1]]?.[1][m[2]]) return open(Number(m[1]), Number(m[2]));
  });
  restorers.push(() => {
    const m = /^(\d)\.(\d)$/.exec(state.get("lesson") ?? "");
    if (m && lessons[m[1]]?.[1][m[2]]) return open(Number(m[1]), Number(m[2]));
    hide();
  });

  function list() {
    const item = (l, s, text, question) => element("li", {},
      element("button", { type: "button", class: "plain", onclick: () => open(l, s) }, solved.has(l + "." + s) ? "✓ " : "", ...rich(question)),
      element("div", { class: "quiet" }, ...rich(text)));
    $("#lesson-list").replaceChildren(...lessons.map(([title, steps], l) => element("div", { class: "card" }, element("h2", {}, title),
      element("ol", {}, ...steps.map(([text, , question], s) => item(l, s, text, question))))));
  }

  async function open(l, s) {
    if (!kept) {
      const { lesson, ...values } = state.values;
      kept = { values, training: training.log() };
    }
    at = [l, s];
    const [text, setup, question, answers] = lessons[l][1][s], dock = $("#dock");
    state.only = { lesson: l + "." + s };
    state.write();
    const verdict = element("p", { role: "status" }), check = given => {
      let ok = false;
      try {
        ok = typeof answers === "function" ? Math.abs(Number(given.replace(",", ".")) - right(answers)) < 1e-6 && given.trim() !== "" : given === right(answers);
      } catch { /* the reader has changed what the step shows */ }
      verdict.className = ok ? "good" : "bad";
      verdict.textContent = ok ? "✓ Right." : "✗ Not so. Look again.";
      if (ok) { solved.add(l + "." + s); list(); }
    };
    const input = element("input", { type: "text", inputmode: "decimal", id: "answer", autocomplete: "off" });
    const form = typeof answers === "function"
      ? element("form", { class: "flow", onsubmit: e => { e.preventDefault(); check(input.value); } }, element("label", { for: "answer" }, ...rich(question)), input, element("button", {}, "Check"))
      : element("div", { class: "flow", role: "group", "aria-label": question }, element("strong", {}, ...rich(question)), ...[...answers].sort().map(a => element("button", { type: "button", class: "answer", onclick: () => check(a) }, a)));
    const step = d => element("button", { type: "button", disabled: !lessons[l][1][s + d], onclick: () => open(l, s + d) }, d > 0 ? "Next" : "Previous");
    dock.hidden = false;
    document.body.classList.add("docked");
    dock.replaceChildren(element("h2", { tabindex: -1 }, `${lessons[l][0]}, ${s + 1} of ${lessons[l][1].length}`), element("p", {}, ...rich(text)), form, verdict,
      element("div", { class: "flow" }, step(-1), step(1), element("button", { type: "button", onclick: close }, "Close")));
    dock.firstChild.focus({ preventScroll: true });
    await setup?.();
  }

  function hide() {
    $("#dock").hidden = true;
    document.body.classList.remove("docked");
    state.only = null;
    at = kept = null;
  }

  // close gives the page back as the reader had it.
  async function close() {
    if (!kept) return;
    const { values, training: log } = kept;
    hide();
    state.section = "lessons";
    await state.restore(values);
    state.write();
    await training.take(log);
  }

  window.lessons = { open, close, answer: () => right(lessons[at[0]][1][at[1]][3]), solved: () => solved.size, count: lessons.map(l => l[1].length) };
}
