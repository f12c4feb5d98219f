// --- the three mechanisms, and class by class ---------------------------------------------------------

const diagnosed = (name) => (run) => run.diagnostics && run.diagnostics[name];
const inTail = (run) => (diagnosed("few")(run) || []).some(known);

function overTasks(node, name, say, charts) {
  // a figure of diagnostics: [[diagnostic, title, unit, form], ...]
  const panels = figure(node, name, say, 280);
  const has = (run) => charts.some(([kind]) => (diagnosed(kind)(run) || []).some(known));
  byPlace(panels, charts.length, has, (groups, add) => {
    for (const [kind, title, yLabel, form] of charts) {
      const values = groups.flatMap(counted).flatMap(({ run }) => diagnosed(kind)(run) || []),
        host = add(title);
      host.dataset.chart = kind;
      lines(host, {
        groups,
        pick: diagnosed(kind),
        xs: (run) => run.seen,
        xLabel: "classes seen",
        yLabel,
        form,
        y: domain(values, { from: 0 }),
        head: (x) => `${title}, after ${x} classes`,
        label: `${title}: ${yLabel} against classes seen`,
      });
    }
  });
}
function classFigure(node, name, say, pick, { yLabel, form, from }) {
  // a panel of dots for each setting
  const found = drawn()
      .map((g) => ({ g, of: byClass(g, pick) }))
      .filter((one) => one.of),
    shown = found.slice(0, PANELS);
  if (!found.length) return;
  const panels = figure(node, name, say + later(shown, found), 300),
    y = domain(
      shown.flatMap((one) => one.of.values),
      { from },
    );
  for (const { g, of } of shown) {
    dots(groupPanel(panels, g), g, {
      of,
      y,
      yLabel,
      form,
      label: `${D.groups[g].label}: ${yLabel} of each class`,
    });
  }
}
function withinTasks(node) {
  const found = drawn().map((g) => ({
    g,
    x: byClass(g, diagnosed("trained_on")),
    of: byClass(g, diagnosed("delta_by_class")),
  }));
  const pairs = found.filter((one) => one.x && one.of),
    shown = pairs.slice(0, PANELS);
  if (!pairs.length) return;
  const about =
    "Mean delta, 1 − p(true class), of each class’s test images against the training images that the " +
      "last task had of it; a slope means that rare classes are left behind.";
  const panels = figure(node, "2. Bias within tasks", about + later(shown, pairs), 300);
  const images = shown.flatMap((one) => one.x.values).filter(known),
    [low, high] = bounds(images);
  const xDomain = low > 0 && high / low > 8 ? [low / 1.25, high * 1.25] : domain(images, { from: 0 });
  for (const { g, x, of } of shown) {
    scatter(groupPanel(panels, g), g, {
      x,
      of,
      xDomain,
      y: [0, 1],
      form: small,
      xLabel: "training images in the last task",
      yLabel: "mean delta",
      label: `${D.groups[g].label}: mean delta of each class against its training images`,
    });
  }
}
const THIRDS = { many: "Many-shot classes", medium: "Medium-shot classes", few: "Few-shot classes" };
function thirds(node) {
  const panels = figure(
    node,
    "Many, medium, few",
    "Accuracy of the head on the third of the classes seen with the most, the middle and the fewest " +
      "training images.",
  );
  byPlace(panels, 3, inTail, (groups, add) => {
    const values = groups
      .flatMap(counted)
      .flatMap(({ run }) => Object.keys(THIRDS).flatMap((kind) => diagnosed(kind)(run) || []));
    for (const [kind, name] of Object.entries(THIRDS)) {
      const host = add(name);
      host.dataset.chart = kind;
      lines(host, {
        groups,
        pick: diagnosed(kind),
        xs: (run) => run.seen,
        xLabel: "classes seen",
        yLabel: "accuracy (%)",
        form: percent,
        y: domain(values, { to: 100 }),
        head: (x) => `${name}, after ${x} classes (%)`,
        label: `${name}: accuracy in percent against classes seen`,
      });
    }
  });
}
section("mechanisms", "The three mechanisms", "Mechanisms", anyDrawn, (node) => {
  node.append(
    say(
      "What the paper says goes wrong in class-incremental learning, measured on test images, and what " +
        "coordination does to it. Filled dots are classes of the last task, open dots older ones; " +
        "stripes part the tasks.",
    ),
  );
  if (!drawnRuns().some(({ run }) => run.diagnostics))
    return node.append(
      el("p", { class: "hint" }, "These results hold no diagnostics: an earlier version wrote them."),
    );
  overTasks(
    node,
    "1. Bias between tasks",
    "How much probability images of old classes put on the heads of new ones, and how far confidence " +
      "departs from accuracy; lower is better.",
    [
      ["old_mass_on_new", "Old images on new heads", "mean probability", small],
      ["calibration_error", "Calibration error", "expected error (%)", percent],
    ],
  );
  classFigure(
    node,
    "Weight norm of each class",
    "Length of each class’s row in the head; new classes that stand above old ones win ties.",
    diagnosed("weight_norms"),
    { yLabel: "weight norm", form: small, from: 0 },
  );
  classFigure(
    node,
    "Mean logit of each class",
    "Mean score of each class over all test images; without bias the classes lie level.",
    diagnosed("mean_logits"),
    { yLabel: "mean logit", form: small, from: null },
  );
  withinTasks(node);
  if (drawnRuns().some(({ run }) => inTail(run))) thirds(node);
  overTasks(
    node,
    "3. Interference of old and new heads",
    "How much probability images of new classes put on old heads, and how far the old heads’ outputs " +
      "on those images have moved from what they were when the task arrived (sum over past tasks of KL " +
      "at temperature 2); lower means less interference.",
    [
      ["new_mass_on_old", "New images on old heads", "mean probability", small],
      ["drift_on_old", "Drift of old heads on new images", "KL divergence (nats)", small],
    ],
  );
});

section("classes", "Class by class", "Classes", anyDrawn, (node) => {
  node.append(say("Where the accuracy lies, and how many images there were to learn from."));
  const perClass = (run) => {
    const of = run.readouts[D.groups[run.group].headline];
    return of && of.per_class.length ? of.per_class : null;
  };
  classFigure(
    node,
    "Accuracy of each class",
    "Accuracy of the headline read-out on each class after the last task.",
    perClass,
    { yLabel: "accuracy (%)", form: percent, from: 0 },
  );
  const used = [...new Set(drawnRuns().map(({ run }) => run.scenario))].filter((s) => D.scenarios[s].tailed);
  if (!used.length) return;
  const furthest = (s) =>
    D.runs.filter((one) => one.scenario === s).sort((a, b) => b.seen.length - a.seen.length)[0];
  const found = used.map((s) => ({ s, run: furthest(s) })).map((one) => ({ ...one, g: one.run.group })),
    shown = found.slice(0, PANELS);
  const panels = figure(
    node,
    "The long tail",
    "Training images of each class; stripes part the tasks." + later(shown, found),
    380,
  );
  const alike = (name) => found.filter((one) => D.groups[one.g].own_place === name).length > 1;
  for (const { s, run, g } of shown) {
    const { counts, classes: names } = D.scenarios[s],
      { own_place: own, label } = D.groups[g];
    const host = panel(panels, used.length > 1 ? (alike(own) ? label : own) : null);
    host.dataset.chart = "counts";
    bars(host, {
      values: counts,
      names,
      seen: run.seen,
      xLabel: "class, in the order of learning",
      yLabel: "training images",
      label: "training images of each class",
    });
  }
});
