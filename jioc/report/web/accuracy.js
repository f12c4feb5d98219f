// --- accuracy after each task, on each task, class against class --------------------------------------

const KINDS = { all: "All classes seen", old: "Old classes", new: "New classes" };
const MEANING = { cnn: "the classifier’s head", nme: "the nearest mean of exemplars" };
const anyDrawn = () => drawn().length > 0;
section("curves", "Accuracy after each task", "Curves", anyDrawn, (node) => {
  node.append(
    say(
      "How well each run still tells apart all the classes it has seen, the classes of earlier tasks, " +
        "and those it has just learnt.",
    ),
  );
  for (const n of READOUTS.filter((name) => drawnRuns().some(({ run }) => run.readouts[name]))) {
    const theirs = (group) => (group.headline === n && group.paper ? group.paper.curve : null);
    const beside = drawn().some((g) => theirs(D.groups[g])) ? " The thin dotted line is the paper’s." : "";
    const panels = figure(
      node,
      title(n),
      `Accuracy of ${MEANING[n] || `the ${n} read-out`} on test images; the line is the mean over seeds, ` +
        `the band one standard deviation.${beside}`,
    );
    byPlace(
      panels,
      3,
      (run) => run.readouts[n],
      (groups, add) => {
        const runs = groups.flatMap(counted).filter(({ run }) => run.readouts[n]);
        const ours = runs.flatMap(({ run }) => Object.keys(KINDS).flatMap((kind) => run.readouts[n][kind]));
        const paper = groups.flatMap((g) =>
          theirs(D.groups[g]) ? Object.values(theirs(D.groups[g])).flat() : [],
        );
        const y = domain([...ours, ...paper], { to: 100 });
        for (const [kind, name] of Object.entries(KINDS)) {
          const host = add(name);
          host.dataset.chart = `${n}-${kind}`;
          lines(host, {
            groups,
            y,
            pick: (run) => run.readouts[n] && run.readouts[n][kind],
            xs: (run) => run.seen,
            xLabel: "classes seen",
            yLabel: "accuracy (%)",
            form: percent,
            head: (x) => `${name}, after ${x} classes (%)`,
            label: `${title(n)}: ${name}, accuracy in percent against classes seen`,
            paper: (group) => theirs(group) && theirs(group)[kind],
          });
        }
      },
    );
  }
});

section("matrices", "Accuracy on each task", "Tasks", anyDrawn, (node) => {
  node.append(
    say(
      "A row is a moment of learning and a column a task: reading down a column shows a task being " +
        "forgotten.",
    ),
  );
  const groups = drawn(),
    shown = groups.slice(0, PANELS);
  const about =
    "Accuracy (%) of the headline read-out on the test images of each past task, after each task; the " +
      "mean over seeds.";
  const panels = figure(node, "Task by task", about + later(shown, groups), 270);
  panels.classList.add("few");
  for (const g of shown) {
    const n = D.groups[g].headline,
      runs = counted(g).filter(({ run }) => run.readouts[n] && run.readouts[n].per_task.length);
    if (!runs.length) continue;
    const size = Math.max(...runs.map(({ run }) => run.seen.length));
    const values = (t, s) => runs.map(({ run }) => (run.readouts[n].per_task[t] || [])[s]).filter(known);
    const cells = range(size).map((t) =>
      range(size).map((s) => {
        const of = values(t, s);
        return of.length ? mean(of) : null;
      }),
    );
    const host = groupPanel(panels, g);
    host.dataset.matrix = "tasks";
    heat(host, g, {
      rows: size,
      cols: size,
      value: (t, s) => (known(cells[t][s]) ? cells[t][s] / 100 : null),
      text: (t, s) => whole(cells[t][s]),
      xLabel: "task tested",
      yLabel: "tasks learnt",
      label: `${D.groups[g].label}: accuracy in percent on each task after each task`,
      told: (t, s) => [
        `task ${s + 1}, after learning task ${t + 1}`,
        [item(g, `${title(n)} accuracy (%)`, withStd(values(t, s), percent), true)],
      ],
    });
  }
});

// --- confusion ----------------------------------------------------------------------------------------

function sparse(rows) {
  // each true class: [[class, count], ...]
  const parts = (row) =>
    row
      .split(" ")
      .filter(Boolean)
      .map((word) => word.split(":").map(Number));
  return rows.map((row) =>
    typeof row === "string" ? parts(row) : row.map((n, c) => [c, n]).filter(([, n]) => n),
  );
}
const confusion = (run) => run.diagnostics && run.diagnostics.confusion;
section("confusion", "Confusion", "Confusion", anyDrawn, (node) => {
  node.append(
    say(
      "What is taken for what after the last task. A biased network shows as columns at the right " +
        "edge: images of old classes taken for new ones.",
    ),
  );
  const groups = drawn().filter((g) => counted(g).some(({ run }) => confusion(run))),
    shown = groups.slice(0, PANELS);
  if (!groups.length)
    return node.append(
      el("p", { class: "hint" }, "These results hold no confusion matrix: an earlier version wrote them."),
    );
  const about =
    "Share of the test images of each class (row) that the head takes for each class (column), in the " +
      "order of learning, coloured by its square root so that small shares show; thin lines part the " +
      "tasks.";
  const many = D.runs.some((run) => run.seen[run.seen.length - 1] > 20);
  const panels = figure(
    node,
    "True class against prediction",
    about + later(shown, groups),
    many ? 340 : 300,
  );
  panels.classList.add("few");
  for (const g of shown) {
    const all = counted(g).filter(({ run }) => confusion(run)),
      size = Math.max(...all.map(({ run }) => confusion(run).length));
    const runs = all.filter(({ run }) => confusion(run).length === size),
      counts = new Float64Array(size * size),
      totals = new Float64Array(size);
    for (const { run } of runs)
      sparse(confusion(run)).forEach((row, r) =>
        row.forEach(([c, n]) => {
          counts[r * size + c] += n;
          totals[r] += n;
        }),
      );
    const count = (r, c) => counts[r * size + c],
      share = (r, c) => (totals[r] ? count(r, c) / totals[r] : 0);
    const classes = D.scenarios[runs[0].run.scenario].classes,
      host = groupPanel(panels, g);
    host.dataset.matrix = "confusion";
    heat(host, g, {
      rows: size,
      cols: size,
      value: (r, c) => Math.sqrt(share(r, c)),
      text: (r, c) => (count(r, c) ? whole(100 * share(r, c)) : ""),
      xLabel: "predicted class",
      yLabel: "true class",
      seen: size > 1 ? runs[0].run.seen : null,
      names: classes,
      label: `${D.groups[g].label}: share of each true class taken for each class`,
      told: (r, c) => [
        "",
        [
          el("div", {}, "true: ", el("bdi", {}, classes[r])),
          el("div", {}, "taken for: ", el("bdi", {}, classes[c])),
          item(g, "share of its images (%)", percent(100 * share(r, c)), true),
          note(
            `${whole(count(r, c))} of ${whole(totals[r])} images` +
              (runs.length > 1 ? ` over ${runs.length} seeds` : ""),
          ),
        ],
      ],
    });
  }
});
