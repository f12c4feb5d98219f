// --- gains over the host, seed by seed ----------------------------------------------------------------

function gains(g) {
  // of each seed that a setting and its host have finished: {seed, all, old, new}
  const { base, headline } = D.groups[g];
  if (base === null) return [];
  const later = (values) => {
    const of = values.slice(1).filter(known);
    return of.length ? mean(of) : null;
  };
  const figures = (run) => {
    const of = run.readouts[headline];
    return of && { all: of.average, old: later(of.old), new: later(of.new) };
  };
  const without = new Map(finished(base).map(({ run }) => [String(run.seeds), figures(run)]));
  const minus = (a, b) => (known(a) && known(b) ? a - b : null);
  return finished(g)
    .map(({ run }) => ({ run, a: figures(run), b: without.get(String(run.seeds)) }))
    .filter(({ a, b }) => a && b && known(a.all) && known(b.all))
    .map(({ run, a, b }) => ({
      seed: run.name,
      all: a.all - b.all,
      old: minus(a.old, b.old),
      new: minus(a.new, b.new),
    }));
}
function verdict(g, of) {
  // JIOC +3.2 ± 0.5; old +5.6, new −4.3
  const tenth = fixed(1, true),
    values = (kind) => of.map((one) => one[kind]).filter(known);
  const all = values("all"),
    old = values("old"),
    fresh = values("new"),
    deviation = std(all);
  const parts = [
    `${D.groups[g].coordinate.toUpperCase()} ${tenth(mean(all))}` +
      (deviation === null ? "" : ` ± ${fixed(1)(deviation)}`),
  ];
  const kinds = [
    old.length ? `old ${tenth(mean(old))}` : "",
    fresh.length ? `new ${tenth(mean(fresh))}` : "",
  ].filter(Boolean);
  if (kinds.length) parts.push(kinds.join(", "));
  return { line: parts.join("; "), sure: certainty(all) };
}
function certainty(all) {
  // a change counts that is larger than the seeds differ
  if (all.length < 2) return "one seed, no verdict";
  const clear = Math.abs(mean(all)) >= Math.max(0.005, std(all));
  return `${all.length} seeds` + (clear ? "" : ", within noise");
}

const paired = () =>
  matching()
    .filter((g) => D.groups[g].base !== null)
    .map((g) => ({ g, of: gains(g) }))
    .filter((one) => one.of.length);
section(
  "gains",
  "Gains over the host",
  "Gains",
  () => paired().length > 0,
  (node) => {
    node.append(
      say(
        "What coordination changes in the average accuracy, against the same setting without it, seed " +
          "by seed. Right of zero is better.",
      ),
    );
    const every = paired(),
      alone = matching().filter((g) => D.groups[g].base !== null).length - every.length;
    const about =
      "A thin dot is a seed, the large mark their mean, the bar one standard deviation; hollow where " +
        "it is within the seeds’ noise or of one seed. A cross is the paper’s gain. Old and new: the " +
        "change on old and on new classes, means over the tasks after the first.";
    const panels = figure(
      node,
      "Gain in average accuracy",
      about +
        (alone ? ` ${alone} more ${alone === 1 ? "has" : "have"} no seed in common with the host.` : ""),
      100,
    );
    panels.classList.add("whole");
    const reach = every.flatMap(({ g, of }) => [
      ...of.map((one) => one.all),
      ...edges(of),
      D.groups[g].paper && D.groups[g].paper.gain,
    ]);
    const x = domain(reach, { from: 0 }),
      x2 = [x[0], Math.max(0, x[1])];
    const longest = Math.max(...every.map(({ g }) => D.groups[g].name.length)); // letters of a name
    for (const { groups } of inPlaces(every.map(({ g }) => g))) {
      const host = panel(panels, inPlaces(matching()).length > 1 ? placeTitle(groups) : null);
      host.dataset.chart = "gains";
      rows(host, {
        pairs: every.filter(({ g }) => groups.includes(g)),
        longest,
        x: x2,
        label: "gain in average accuracy over the host, in points",
      });
    }
  },
);

function edges(of) {
  // the ends of the bar
  const values = of.map((one) => one.all),
    s = std(values);
  return s === null ? [] : [mean(values) - s, mean(values) + s];
}
function drawRows(host, { pairs, longest, x, label }) {
  // A row for each pair: its name, its seeds on the axis, its verdict. A narrow screen has the words above.
  const width = roomOf(host),
    beside = Math.min(380, 6.6 * longest + 16),
    narrow = width < beside + 385 + 200,
    names = narrow ? 8 : beside,
    said = narrow ? 8 : 385;
  const row = narrow ? 62 : 30,
    height = row * pairs.length + 48,
    left = names,
    right = width - said,
    foot = height - 42;
  const X = (v) => left + ((right - left) * (v - x[0])) / (x[1] - x[0] || 1),
    marks = ticks(x[0], x[1], narrow ? 5 : 7);
  const root = sv("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  for (const v of marks) {
    root.append(sv("line", { class: v === 0 ? "zero" : "grid", x1: X(v), x2: X(v), y1: 4, y2: foot + 4 }));
    root.append(
      sv("text", { x: X(v), y: foot + 20, "text-anchor": "middle" }, (v > 0 ? "+" : "") + tickText(v, marks)),
    );
  }
  root.append(
    sv(
      "text",
      { class: "label", x: (left + right) / 2, y: height - 4, "text-anchor": "middle" },
      "gain in average accuracy (points)",
    ),
  );
  const at = [];
  pairs.forEach(({ g, of }, i) => {
    const y = row * i + (narrow ? 44 : 17),
      group = sv("g", inColour(g)),
      values = of.map((one) => one.all),
      m = mean(values),
      s = std(values);
    const told = verdict(g, of),
      clear = s !== null && Math.abs(m) >= Math.max(0.005, s),
      paper = D.groups[g].paper;
    at.push([X(m), y]);
    if (i % 2) root.prepend(sv("rect", { class: "stripe", x: 0, y: row * i + 2, width, height: row }));
    const name = cut(D.groups[g].name, Math.floor((narrow ? width : names - 12) / 6.6));
    group.append(
      sv(
        "text",
        {
          class: "rowname",
          x: narrow ? 4 : names - 12,
          y: narrow ? y - 28 : y + 4,
          "text-anchor": narrow ? "start" : "end",
        },
        name,
      ),
    );
    const line = sv(
      "text",
      { class: "verdict", x: narrow ? 4 : right + 14, y: narrow ? y - 13 : y + 4 },
      told.line,
      sv("tspan", { class: "sure" }, `  (${told.sure})`),
    );
    group.append(line);
    if (paper && known(paper.gain))
      group.append(sv("path", { class: "theirs", d: `M${X(paper.gain) - 4},${y - 4}l8,8m0,-8l-8,8` }));
    if (s !== null) group.append(sv("line", { class: "bar-s", x1: X(m - s), x2: X(m + s), y1: y, y2: y }));
    for (const one of of) group.append(sv("circle", { class: "seed", cx: X(one.all), cy: y, r: 2.6 }));
    group.append(sv("circle", { class: clear ? "dot" : "dot old", cx: X(m), cy: y, r: 5 }));
    root.append(group);
  });
  const hit = sv("rect", { class: "hit", x: 0, y: 0, width, height: foot });
  let here = null;
  const move = (_, py, show) => {
    here = pairs[clip(Math.floor((py - 2) / row), [0, pairs.length - 1])];
    const { g, of } = here,
      paper = D.groups[g].paper,
      kind = (name) => withStd(of.map((one) => one[name]).filter(known), gained);
    const items = [
      item(g, "average", kind("all"), true),
      item(null, "old classes", kind("old")),
      item(null, "new classes", kind("new")),
    ];
    if (paper && known(paper.gain)) items.push(item(null, "paper’s gain", gained(paper.gain)));
    items.push(note(of.map((one) => `${one.seed}: ${gained(one.all)}`).join("   ")));
    show(`${D.groups[g].label}, minus ${D.groups[D.groups[g].base].name}`, items);
  };
  watch(root, hit, {
    width,
    height,
    move,
    stops: () => at.map(([, y]) => [left, y]),
    act: () => here && toggle(here.g, null),
  });
  root.append(hit);
  host.append(root);
}
const rows = soon(drawRows);
