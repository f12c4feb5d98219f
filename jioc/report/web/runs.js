// --- losses, settings, time ---------------------------------------------------------------------------

const lossesOf = (term) => (run) => run.losses && run.losses.terms[term];
section(
  "losses",
  "Losses",
  "Losses",
  () => drawnRuns().some(({ run }) => run.losses),
  (node) => {
    node.append(
      say(
        "The terms of the loss while the runs learnt, from the log.jsonl beside each result.json. " +
          "Every task has the same width, however many epochs it took.",
      ),
    );
    const terms = [
      ...new Set(drawnRuns().flatMap(({ run }) => (run.losses ? Object.keys(run.losses.terms) : []))),
    ];
    for (const term of terms) {
      const panels = figure(
        node,
        term,
        "Mean over the images of an epoch, neighbouring epochs taken together; the line is the mean " +
          "over seeds.",
        420,
      );
      byPlace(panels, 1, lossesOf(term), (groups, add) => {
        const runs = groups.flatMap(counted).filter(({ run }) => lossesOf(term)(run));
        const host = add(null),
          last = Math.max(...runs.map(({ run }) => Math.ceil(run.losses.at[run.losses.at.length - 1])));
        host.dataset.chart = "loss";
        lines(host, {
          groups,
          pick: lossesOf(term),
          xs: (run) => (run.losses ? run.losses.at : []),
          xLabel: "task",
          yLabel: "loss",
          form: small,
          plain: true,
          y: domain(
            runs.flatMap(({ run }) => lossesOf(term)(run)),
            { from: 0 },
          ),
          label: `${term}: loss against tasks`,
          xSpan: [0, last],
          xTicks: few(range(last), 12).map((t) => t + 0.5),
          xText: (x) => whole(x + 0.5),
          head: (x) =>
            `${term}, task ${Math.ceil(x)}, ${whole(100 * (x - Math.ceil(x) + 1))} % of its epochs`,
        });
      });
    }
  },
);

function commonest(values) {
  const counts = new Map();
  for (const v of values) counts.set(v, (counts.get(v) || 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0][0];
}
section("settings", "Settings", "Settings", always, (node) => {
  const groups = matching(),
    { rows: values } = D.differences;
  const differing = D.differences.names
    .map((name, i) => ({ name, i }))
    .filter(({ i }) => new Set(groups.map((g) => values[g][i])).size > 1);
  const single =
    D.runs.length > 1
      ? "These runs share one setting and differ in their seeds alone."
      : "There is one run, so nothing differs.";
  node.append(
    say(differing.length ? "The settings in which the runs differ, seeds and machine aside." : single),
  );
  if (!differing.length) return;
  const heads = [{ text: "run", words: true }, ...differing.map(({ name }) => ({ text: name }))];
  const rows = groups.map((g) => ({
    g,
    cells: [nameCell(g, D.groups[g].name), ...differing.map(({ i }) => text(values[g][i]))],
  }));
  const box = table("settings", heads, rows, { slim: true }),
    usual = new Map(differing.map(({ i }) => [i, commonest(groups.map((g) => values[g][i]))]));
  if (differing.length > 7) {
    // on paper: each run with what it has otherwise than most
    box.classList.add("screen");
    const own = (g) =>
      differing
        .filter(({ i }) => values[g][i] !== usual.get(i) && values[g][i] !== "–")
        .map(({ name, i }) => `${name} ${values[g][i]}`);
    const line = (g) => el("li", {}, el("bdi", {}, `${D.groups[g].label}: `), own(g).join("; ") || "as most");
    node.append(
      el(
        "div",
        { class: "paper-only" },
        say("Each run with what it has otherwise than most."),
        el("ul", {}, groups.map(line)),
      ),
    );
  }
  node.append(box);
});

section("time", "Time and speed", "Time", always, (node) => {
  node.append(say("What each run cost, where it ran, and where it lies."));
  const two = [
    ["seconds", "Seconds a task", "time (s)", fixed(1)],
    ["speed", "Training speed", "images a second", whole],
  ];
  const held = two.filter(([key]) => drawnRuns().some(({ run }) => run[key].some(known)));
  if (held.length)
    byPlace(
      figure(
        node,
        "What each task took",
        "Seconds, evaluation included, and images a second while training.",
      ),
      2,
      always,
      (groups, add) => {
        for (const [key, name, yLabel, form] of held) {
          const host = add(name),
            values = groups.flatMap(counted).flatMap(({ run }) => run[key]);
          host.dataset.chart = key;
          lines(host, {
            groups,
            pick: (run) => run[key],
            xs: (run) => run.seen.map((_, t) => t + 1),
            xLabel: "task",
            yLabel,
            form,
            y: domain(values, { from: 0 }),
            head: (x) => `${name}, task ${x}`,
            label: `${name}: ${yLabel} against tasks`,
          });
        }
      },
    );
  const rows = matching().flatMap((g) =>
    counted(g).map(({ run, r }) => {
      const spent = run.seconds.filter(known),
        speed = run.speed.filter(known),
        about = run.about,
        seconds = spent.reduce((a, b) => a + b, 0);
      return {
        g,
        r,
        cells: [
          nameCell(g, `${D.groups[g].name}, ${run.name}`, r),
          text(run.complete ? "yes" : `no, ${learnt(run)}`),
          text(spent.length ? duration(seconds) : "–", spent.length ? seconds : null),
          text(speed.length ? whole(mean(speed)) : "–", speed.length ? mean(speed) : null),
          text([about.device, about.precision].filter(Boolean).join(", ") || "–"),
          text([about.jioc, about.commit].filter(Boolean).join(" ") || "–"),
          text(run.path),
        ],
      };
    }),
  );
  const heads = [
    { text: "run", words: true },
    { text: "finished" },
    { text: "time" },
    { text: "images/s" },
    { text: "device" },
    { text: "jioc", wide: true },
    { text: "folder", words: true, wide: true },
  ];
  node.append(table("time", heads, rows));
});
