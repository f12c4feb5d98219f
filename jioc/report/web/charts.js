// --- charts with axes ---------------------------------------------------------------------------------

let jobs = []; // {host, run}: charts yet to be drawn, once all panels are there and know their width
const PAD = { left: 56, right: 12, top: 10, bottom: 42 };
const roomOf = (host) => Math.max(240, host.clientWidth || 320);
const inColour = (g) => ({ "data-g": g, style: `color:${colour(g)}` });

function canvas(width, height, { x, y, xLabel, yLabel, xTicks, yTicks, xText, label }) {
  const right = width - PAD.right,
    bottom = height - PAD.bottom;
  const X = (v) => PAD.left + ((right - PAD.left) * (v - x[0])) / (x[1] - x[0] || 1);
  const Y = (v) => bottom - ((bottom - PAD.top) * (v - y[0])) / (y[1] - y[0] || 1);
  const root = sv("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  for (const v of yTicks) {
    root.append(sv("line", { class: "grid", x1: PAD.left, x2: right, y1: Y(v), y2: Y(v) }));
    root.append(sv("text", { x: PAD.left - 7, y: Y(v) + 4, "text-anchor": "end" }, tickText(v, yTicks)));
  }
  for (const v of xTicks) {
    const text = xText ? xText(v) : tickText(v, xTicks);
    root.append(sv("text", { x: X(v), y: bottom + 17, "text-anchor": "middle" }, text));
  }
  const middle = (PAD.left + right) / 2,
    turned = `translate(10 ${(PAD.top + bottom) / 2}) rotate(-90)`;
  root.append(sv("text", { class: "label", x: middle, y: height - 6, "text-anchor": "middle" }, xLabel));
  root.append(sv("text", { class: "label", transform: turned, "text-anchor": "middle" }, yLabel));
  const hit = sv("rect", {
    class: "hit",
    x: PAD.left - 8,
    y: 0,
    width: right - PAD.left + 16,
    height: bottom + 4,
  });
  return { root, X, Y, right, bottom, hit };
}
const way = (points) => "M" + points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join("L");

function drawLines(
  host,
  { groups, pick, xs, xLabel, yLabel, y, form, head, paper, label, plain, xTicks, xText, xSpan },
) {
  // A line for each setting, the mean over its seeds, and a band of one deviation. plain: no marks.
  const width = roomOf(host),
    height = Math.round(Math.min(300, Math.max(210, width * 0.68)));
  const series = groups.map((g) => ({ g, points: columns(g, pick, xs) })).filter((s) => s.points.length);
  if (!series.length) return host.append(el("p", { class: "hint" }, "Nothing to show yet."));
  const at = [...new Set(series.flatMap((s) => s.points.map((p) => p.x)))].sort((a, b) => a - b);
  const span = xSpan || (at.length > 1 ? [at[0], at[at.length - 1]] : [at[0] - 1, at[0] + 1]);
  const axes = {
    xTicks: xTicks || few(at, width < 330 ? 5 : 10),
    yTicks: ticks(y[0], y[1], 5),
    xText: xText || whole,
  };
  const { root, X, Y, bottom, hit } = canvas(width, height, { x: span, y, xLabel, yLabel, label, ...axes });
  const guide = sv("line", { class: "guide", y1: PAD.top, y2: bottom, visibility: "hidden" });
  root.append(guide);
  for (const { g, points } of series) {
    const group = sv("g", inColour(g)),
      wide = points.filter((p) => p.std !== null);
    const edge = (sign) => wide.map((p) => [X(p.x), Y(clip(p.mean + sign * p.std, y))]);
    if (wide.length > 1)
      group.append(sv("path", { class: "band", d: way([...edge(1), ...edge(-1).reverse()]) + "Z" }));
    const runs = new Map();
    for (const p of points)
      for (const o of p.of) (runs.get(o.r) || runs.set(o.r, []).get(o.r)).push([X(p.x), Y(o.v)]);
    if (runs.size > 1)
      for (const [r, path] of runs) group.append(sv("path", { class: "one", "data-r": r, d: way(path) }));
    const line = points.map((p) => [X(p.x), Y(p.mean)]);
    group.append(
      sv("path", { class: plain ? "mean thin" : "mean", "stroke-dasharray": dash(g), d: way(line) }),
    );
    const theirs = paper && paper(D.groups[g]);
    if (theirs) {
      const from = points.length - theirs.length; // the paper's old classes begin with the second task
      if (from >= 0)
        group.append(
          sv("path", {
            class: "paper",
            d: way(theirs.map((v, i) => [X(points[i + from].x), Y(clip(v, y))])),
          }),
        );
    }
    const size = series.length > MOST_DRAWN ? 2.2 : 3;
    if (!plain)
      points.forEach((p, i) => group.append(mark(g, line[i][0], line[i][1], size, { "data-x": p.x })));
    root.append(group);
  }
  let nearest = null;
  const told = (px, py, show) => {
    const x = at.reduce((a, b) => (Math.abs(X(b) - px) < Math.abs(X(a) - px) ? b : a));
    const here = series.map((s) => ({ g: s.g, p: s.points.find((p) => p.x === x) })).filter((o) => o.p);
    nearest = here.reduce((a, b) => (Math.abs(Y(b.p.mean) - py) < Math.abs(Y(a.p.mean) - py) ? b : a));
    guide.setAttribute("x1", X(x));
    guide.setAttribute("x2", X(x));
    guide.setAttribute("visibility", "visible");
    here.sort((a, b) => b.p.mean - a.p.mean);
    const from = Math.max(0, Math.min(here.indexOf(nearest) - 5, here.length - 10)); // the nearest among them
    const items = here
      .slice(from, from + 10)
      .map((o) =>
        item(
          o.g,
          D.groups[o.g].name,
          form(o.p.mean) + (o.p.std === null ? "" : ` ± ${form(o.p.std)}`),
          o === nearest,
        ),
      );
    if (here.length > 10) items.push(note(`and ${here.length - 10} more`));
    const seeds = nearest.p.of.slice(0, 12).map((o) => `${D.runs[o.r].name}: ${form(o.v)}`);
    if (nearest.p.of.length > 1) items.push(note(seeds.join("   ")));
    show(head(x), items);
  };
  const stops = () =>
    series
      .flatMap((s) => s.points.map((p) => [X(p.x), Y(p.mean)]))
      .sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  watch(root, hit, { width, height, move: told, stops, act: () => nearest && toggle(nearest.g, null) });
  root.addEventListener("leave", () => guide.setAttribute("visibility", "hidden"));
  root.append(hit);
  host.append(root);
}

// --- class by class -----------------------------------------------------------------------------------

function stripes(root, seen, count, X, bottom) {
  // part the tasks
  const ends = seen.filter((end) => end <= count);
  ends.forEach((end, t) => {
    const from = X((t ? ends[t - 1] : 0) - 0.5);
    const stripe = {
      class: "stripe",
      x: from,
      y: PAD.top,
      width: X(end - 0.5) - from,
      height: bottom - PAD.top,
    };
    if (t % 2) root.prepend(sv("rect", stripe));
  });
}
function classNote(of, c) {
  const task = of.seen.findIndex((end) => c < end) + 1,
    counts = of.scenario.counts;
  return (
    `class ${c + 1}, task ${task}` + (counts[c] === undefined ? "" : `, ${whole(counts[c])} training images`)
  );
}
const firstNew = (of) => of.seen[of.seen.length - 2] || 0; // the first class of the last task

function drawDots(host, g, { of, y, yLabel, form, label }) {
  // A dot for each class in the order of learning; the classes of the last task are filled.
  const width = roomOf(host),
    height = 210,
    n = of.values.length,
    fresh = firstNew(of);
  const axes = { xTicks: few(range(n), 8), yTicks: ticks(y[0], y[1], 5), xText: (c) => whole(c + 1) };
  const xLabel = "class, in the order of learning";
  const { root, X, Y, right, bottom, hit } = canvas(width, height, {
    x: [-0.5, n - 0.5],
    y,
    xLabel,
    yLabel,
    label,
    ...axes,
  });
  stripes(root, of.seen, n, X, bottom);
  if (y[0] < 0 && y[1] > 0)
    root.append(sv("line", { class: "guide", x1: PAD.left, x2: right, y1: Y(0), y2: Y(0) }));
  const group = sv("g", inColour(g)),
    at = [];
  of.values.forEach((v, c) => {
    if (!known(v)) return;
    at.push([X(c), Y(clip(v, y))]);
    group.append(
      sv("circle", {
        class: c < fresh ? "dot old" : "dot",
        cx: X(c),
        cy: Y(clip(v, y)),
        r: n > 60 ? 2.2 : 3.4,
      }),
    );
  });
  const move = (px, _, show) => {
    const c = clip(Math.round(((px - PAD.left) / (right - PAD.left)) * n - 0.5), [0, n - 1]);
    show(of.scenario.classes[c], [
      item(g, D.groups[g].name, form(of.values[c]), true),
      note(classNote(of, c)),
    ]);
  };
  watch(root, hit, { width, height, move, stops: () => at, act: () => toggle(g, null) });
  root.append(group, hit);
  host.append(root);
}

function drawScatter(host, g, { x, of, xDomain, y, xLabel, yLabel, form, label }) {
  const width = roomOf(host),
    height = 230,
    fresh = firstNew(of);
  const log = xDomain[0] > 0 && xDomain[1] / xDomain[0] > 8,
    f = log ? Math.log10 : (v) => v;
  const marks = log ? decades(xDomain) : ticks(xDomain[0], xDomain[1], 5);
  const axes = { xTicks: marks.map(f), yTicks: ticks(y[0], y[1], 5), xText: (v) => whole(log ? 10 ** v : v) };
  const named = { xLabel: xLabel + (log ? ", log scale" : ""), yLabel, label };
  const { root, X, Y, hit } = canvas(width, height, { x: xDomain.map(f), y, ...named, ...axes });
  const group = sv("g", inColour(g));
  const points = of.values.map((v, c) => ({ v, c, x: x.values[c] })).filter((p) => known(p.v) && known(p.x));
  for (const p of points) {
    p.at = [X(f(Math.max(p.x, xDomain[0]))), Y(clip(p.v, y))];
    const look = p.c < fresh ? "dot old" : "dot",
      r = points.length > 60 ? 2.6 : 3.8;
    group.append(sv("circle", { class: look, cx: p.at[0], cy: p.at[1], r }));
  }
  const move = (px, py, show) => {
    if (!points.length) return;
    const far = (p) => Math.hypot(p.at[0] - px, p.at[1] - py);
    const p = points.reduce((a, b) => (far(b) < far(a) ? b : a));
    show(of.scenario.classes[p.c], [
      item(g, yLabel, form(p.v), true),
      item(null, xLabel, whole(p.x)),
      note(classNote(of, p.c)),
    ]);
  };
  const stops = () => points.map((p) => p.at).sort((a, b) => a[0] - b[0]);
  watch(root, hit, { width, height, move, stops, act: () => toggle(g, null) });
  root.append(group, hit);
  host.append(root);
}

function drawBars(host, { values, names, seen, xLabel, yLabel, label }) {
  const width = roomOf(host),
    height = 220,
    n = values.length,
    y = domain(values, { from: 0 });
  const axes = { xTicks: few(range(n), 10), yTicks: ticks(y[0], y[1], 4), xText: (c) => whole(c + 1) };
  const { root, X, Y, right, bottom, hit } = canvas(width, height, {
    x: [-0.5, n - 0.5],
    y,
    xLabel,
    yLabel,
    label,
    ...axes,
  });
  stripes(root, seen, n, X, bottom);
  const group = sv("g", { style: `color:${css("--accent")}` });
  const thick = Math.max(0.6, ((right - PAD.left) / n) * 0.72);
  values.forEach((v, c) =>
    group.append(
      sv("rect", { class: "bar", x: X(c) - thick / 2, width: thick, y: Y(v), height: bottom - Y(v) }),
    ),
  );
  const move = (px, _, show) => {
    const c = clip(Math.round(((px - PAD.left) / (right - PAD.left)) * n - 0.5), [0, n - 1]);
    show(names[c], [item(null, "training images", whole(values[c]), true)]);
  };
  watch(root, hit, { width, height, move, stops: () => values.map((v, c) => [X(c), Y(v)]) });
  root.append(group, hit);
  host.append(root);
}

const soon =
  (chart) =>
  (host, ...what) => {
    host.classList.add("empty"); // which keeps room for it
    jobs.push({
      host,
      run: () => {
        host.classList.remove("empty");
        chart(host, ...what);
      },
    });
  };
const lines = soon(drawLines),
  dots = soon(drawDots),
  scatter = soon(drawScatter),
  bars = soon(drawBars);
