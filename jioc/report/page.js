"use strict";
// Draws the report from the JSON above. All text enters the page through textContent, so no name can be markup.

const D = JSON.parse(document.getElementById("data").textContent);
for (const run of D.runs) run.readouts = Object.assign(Object.create(null), run.readouts); // one may be called "constructor"
const COLOURS = { // Okabe and Ito's, grey for their black; lighter on a dark ground
  light: ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7d838c"],
  dark: ["#4ca6e8", "#f58442", "#2fc594", "#e6a5cb", "#f2b93f", "#8fd3f7", "#aab1bb"],
};
const MANY = COLOURS.light.length;
const DASHES = ["", "7 4", "2.5 3", "11 3 2.5 3"];
const SWATCH = 30; // wide enough for each of them to show what it is
const PANELS = 12; // matrices and class charts drawn at once
const hidden = new Set();
const jobs = []; // charts yet to be drawn: a panel knows its width once all its neighbours are there
let focus = null; // {g, r}: a group, and one run of it or null

// --- elements ---------------------------------------------------------------------------------------------------------

const SVG = "http://www.w3.org/2000/svg";
function make(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) node.append(child);
  return node;
}
const el = (tag, attributes, ...children) => make(document.createElement(tag), attributes, children);
const sv = (tag, attributes, ...children) => make(document.createElementNS(SVG, tag), attributes, children);
const $ = (id) => document.getElementById(id);
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const colour = (g) => COLOURS[document.documentElement.dataset.theme][g % MANY];
const dash = (g) => DASHES[Math.floor(g / MANY) % DASHES.length];

function swatch(g) {
  return sv("svg", { class: "swatch", viewBox: `0 0 ${SWATCH} 10`, "aria-hidden": "true" },
    sv("line", { x1: 0, x2: SWATCH, y1: 5, y2: 5, stroke: colour(g), "stroke-width": 2.5, "stroke-dasharray": dash(g) || null }));
}

// --- numbers ----------------------------------------------------------------------------------------------------------

const known = (v) => v !== null && v !== undefined;
const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
function std(values) {
  if (values.length < 2) return null;
  const m = mean(values);
  return Math.sqrt(values.reduce((a, v) => a + (v - m) ** 2, 0) / (values.length - 1));
}
const even = (a, digits) => { // a tie goes to the even digit, as in jioc table; toFixed would round it up
  if ((a * 2 ** (digits + 1)) % 2 !== 1) return a.toFixed(digits);
  const below = a * 10 ** digits - 0.5;
  return ((below % 2 ? below + 1 : below) / 10 ** digits).toFixed(digits);
};
const fixed = (digits, sign) => (v) => { // of the number itself; toLocaleString rounds what it would print
  if (!known(v)) return "–";
  const [whole, part] = even(Math.abs(v), digits).split(".");
  return (v < 0 ? "−" : sign ? "+" : "") + whole.replace(/\B(?=(\d{3})+$)/g, ",") + (part ? `.${part}` : "");
};
const percent = fixed(2), gained = fixed(2, true), small = fixed(3), whole = fixed(0);
const withStd = (values, form) => !values.length ? "–" : form(mean(values)) + (values.length > 1 ? ` ± ${percent(std(values))}` : "");
const learnt = (run) => `${run.seen.length} ${run.seen.length === 1 ? "task" : "tasks"}`;

function ticks(low, high, about) {
  const span = high - low || 1, raw = span / about, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
  const out = [], most = 10 * about; // a step may be too small to change a large number
  for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + step * 1e-6 && out.length < most; v += step) out.push(Math.abs(v) < step * 1e-6 ? 0 : v);
  return out;
}
function tickText(v, all) {
  const step = all.length > 1 ? Math.abs(all[1] - all[0]) : Math.abs(v) || 1;
  const digits = Math.max(0, Math.min(6, -Math.floor(Math.log10(step) + 1e-9) + (String(step / 10 ** Math.floor(Math.log10(step) + 1e-9)).startsWith("2.5") ? 1 : 0)));
  return fixed(digits)(v);
}
function domain(values, { from = null, to = null } = {}) {
  const all = values.filter(known);
  if (!all.length) return [0, 1];
  let low = Math.min(...bounds(all)), high = Math.max(...bounds(all));
  if (from !== null) low = Math.min(low, from);
  if (high === low) { high += Math.abs(high) * 0.1 || 1; low -= from === null ? Math.abs(low) * 0.1 || 1 : 0; }
  const step = ticks(low, high, 4), size = step.length > 1 ? step[1] - step[0] : high - low;
  low = Math.floor(low / size + 1e-9) * size; high = Math.ceil(high / size - 1e-9) * size;
  return [low, to === null ? high : Math.min(high, to)];
}
function bounds(values) { // spread arguments have a limit; twenty runs of 200 classes do not
  let low = Infinity, high = -Infinity;
  for (const v of values) { if (v < low) low = v; if (v > high) high = v; }
  return [low, high];
}

// --- what is shown ----------------------------------------------------------------------------------------------------

const shownRuns = (g) => D.runs.map((run, r) => ({ run, r })).filter(({ run, r }) => run.group === g && !hidden.has(r));
const shownGroups = () => D.groups.map((_, g) => g).filter((g) => shownRuns(g).length);
const allReadouts = () => {
  const names = [...new Set(D.runs.flatMap((run) => [D.groups[run.group].headline, ...Object.keys(run.readouts)]))];
  return names.filter((n) => D.runs.some((run) => run.readouts[n]));
};
const title = (readout) => readout.length <= 3 ? readout.toUpperCase() : readout;

function columns(g, pick, xs) {
  // The runs of a group as points: at each x the mean, the deviation and every run's value.
  const by = new Map();
  for (const { run, r } of shownRuns(g)) {
    const values = pick(run) || [], at = xs(run);
    values.forEach((v, i) => { if (known(v)) (by.get(at[i]) || by.set(at[i], []).get(at[i])).push({ r, v }); });
  }
  return [...by].sort((a, b) => a[0] - b[0]).map(([x, of]) => ({ x, of, mean: mean(of.map((o) => o.v)), std: std(of.map((o) => o.v)) }));
}
function byClass(g, pick) {
  // A value for each class: the mean over the shown runs that have come as far as the furthest.
  const runs = shownRuns(g).filter(({ run }) => pick(run));
  if (!runs.length) return null;
  const length = Math.max(...runs.map(({ run }) => pick(run).length)), far = runs.filter(({ run }) => pick(run).length === length);
  const values = Array.from({ length }, (_, c) => { const of = far.map(({ run }) => pick(run)[c]).filter(known); return of.length ? mean(of) : null; });
  return { values, runs: far, scenario: D.scenarios[far[0].run.scenario], seen: far[0].run.seen };
}

// --- the tip ----------------------------------------------------------------------------------------------------------

function tip(event, head, items) {
  const box = $("tip");
  box.replaceChildren(el("div", { class: "head", dir: "auto" }, head), ...items);
  box.hidden = false;
  const { width, height } = box.getBoundingClientRect();
  const x = event.clientX + 16 + width > innerWidth ? event.clientX - width - 12 : event.clientX + 16;
  const y = Math.max(6, Math.min(event.clientY + 14, innerHeight - height - 6));
  box.style.left = `${Math.max(6, x)}px`; box.style.top = `${y}px`;
}
const untip = () => { $("tip").hidden = true; };
const item = (g, what, number, near) => el("div", { class: "item" + (near ? " near" : "") },
  el("span", { class: "what", dir: "auto" }, g === null ? null : swatch(g), g === null ? "" : " ", what), el("span", { class: "num" }, number));

// --- frames of figures ------------------------------------------------------------------------------------------------

const PAD = { left: 56, right: 12, top: 10, bottom: 42 };
function canvas(width, height, { x, y, xLabel, yLabel, xTicks, yTicks, xText, label }) {
  const right = width - PAD.right, bottom = height - PAD.bottom;
  const X = (v) => PAD.left + (right - PAD.left) * (v - x[0]) / (x[1] - x[0] || 1);
  const Y = (v) => bottom - (bottom - PAD.top) * (v - y[0]) / (y[1] - y[0] || 1);
  const root = sv("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  for (const v of yTicks) root.append(
    sv("line", { class: "grid", x1: PAD.left, x2: right, y1: Y(v), y2: Y(v) }),
    sv("text", { x: PAD.left - 7, y: Y(v) + 4, "text-anchor": "end" }, tickText(v, yTicks)));
  for (const v of xTicks) root.append(sv("text", { x: X(v), y: bottom + 17, "text-anchor": "middle" }, xText ? xText(v) : tickText(v, xTicks)));
  root.append(
    sv("text", { class: "label", x: (PAD.left + right) / 2, y: height - 6, "text-anchor": "middle" }, xLabel),
    sv("text", { class: "label", transform: `translate(10 ${(PAD.top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, yLabel));
  return { root, X, Y, right, bottom };
}
const few = (values, about) => { const all = [...new Set(values)].sort((a, b) => a - b), by = Math.ceil(all.length / about); return all.filter((_, i) => (all.length - 1 - i) % by === 0); };

function pointer(root, hit, width, height, move) {
  const at = (event) => {
    const box = root.getBoundingClientRect();
    move(event, (event.clientX - box.left) * width / box.width, (event.clientY - box.top) * height / box.height);
  };
  hit.addEventListener("pointermove", at);
  hit.addEventListener("pointerdown", at);
  hit.addEventListener("pointerleave", untip);
}

function drawLines(host, { pick, xs, xLabel, yLabel, y, form, head, name, paper, label }) {
  const width = Math.max(240, host.clientWidth || 320), height = Math.round(Math.min(300, Math.max(210, width * 0.68)));
  const series = shownGroups().map((g) => ({ g, points: columns(g, pick, xs) })).filter((s) => s.points.length);
  if (!series.length) return host.append(el("p", { class: "hint" }, "Nothing to show yet."));
  const at = [...new Set(series.flatMap((s) => s.points.map((p) => p.x)))].sort((a, b) => a - b);
  const span = at.length > 1 ? [at[0], at[at.length - 1]] : [at[0] - 1, at[0] + 1];
  const { root, X, Y, right, bottom } = canvas(width, height, { x: span, y, xLabel, yLabel, xTicks: few(at, width < 330 ? 5 : 10), yTicks: ticks(y[0], y[1], 5), xText: whole, label });
  const guide = sv("line", { class: "guide", y1: PAD.top, y2: bottom, visibility: "hidden" });
  root.append(guide);
  for (const { g, points } of series) {
    const group = sv("g", { "data-g": g, style: `color:${colour(g)}` });
    const wide = points.filter((p) => p.std !== null);
    if (wide.length > 1) group.append(sv("path", { class: "band", d: "M" + wide.map((p) => `${X(p.x)},${Y(clip(p.mean + p.std, y))}`).join("L") + "L" + wide.slice().reverse().map((p) => `${X(p.x)},${Y(clip(p.mean - p.std, y))}`).join("L") + "Z" }));
    const runs = new Map();
    for (const p of points) for (const o of p.of) (runs.get(o.r) || runs.set(o.r, []).get(o.r)).push([X(p.x), Y(o.v)]);
    if (runs.size > 1) for (const [r, way] of runs) group.append(sv("path", { class: "one", "data-r": r, d: "M" + way.join("L") }));
    group.append(sv("path", { class: "mean", "stroke-dasharray": dash(g) || null, d: "M" + points.map((p) => `${X(p.x)},${Y(p.mean)}`).join("L") }));
    const theirs = paper && paper(D.groups[g]);
    if (theirs && theirs.length === points.length) group.append(sv("path", { class: "paper", d: "M" + theirs.map((v, i) => `${X(points[i].x)},${Y(clip(v, y))}`).join("L") }));
    for (const p of points) group.append(sv("circle", { class: "dot", cx: X(p.x), cy: Y(p.mean), r: series.length > 8 ? 2 : 3, "data-x": p.x }));
    root.append(group);
  }
  const hit = sv("rect", { class: "hit", x: PAD.left - 8, y: 0, width: right - PAD.left + 16, height: bottom });
  let nearest = null;
  pointer(root, hit, width, height, (event, px, py) => {
    const x = at.reduce((a, b) => Math.abs(X(b) - px) < Math.abs(X(a) - px) ? b : a);
    const here = series.map((s) => ({ g: s.g, p: s.points.find((p) => p.x === x) })).filter((o) => o.p);
    nearest = here.reduce((a, b) => Math.abs(Y(b.p.mean) - py) < Math.abs(Y(a.p.mean) - py) ? b : a);
    guide.setAttribute("x1", X(x)); guide.setAttribute("x2", X(x)); guide.setAttribute("visibility", "visible");
    const items = here.sort((a, b) => b.p.mean - a.p.mean).slice(0, 14).map((o) => item(o.g, D.groups[o.g].label, form(o.p.mean) + (o.p.std === null ? "" : ` ± ${form(o.p.std)}`), o === nearest));
    if (here.length > 14) items.push(el("div", { class: "seeds" }, `and ${here.length - 14} more`));
    if (nearest.p.of.length > 1) items.push(el("div", { class: "seeds" }, nearest.p.of.slice(0, 12).map((o) => `${D.runs[o.r].name}: ${form(o.v)}`).join("   ")));
    tip(event, head(x), items);
  });
  hit.addEventListener("pointerleave", () => guide.setAttribute("visibility", "hidden"));
  hit.addEventListener("click", () => nearest && toggle(nearest.g, null));
  root.append(hit);
  host.append(root);
}
const clip = (v, [low, high]) => Math.max(low, Math.min(high, v));

const boundaries = (seen, upTo) => seen.filter((end) => end <= upTo).map((end, t, all) => [t ? all[t - 1] : 0, end]);
function stripes(root, seen, count, X, bottom) {
  boundaries(seen, count).forEach(([a, b], t) => { if (t % 2) root.prepend(sv("rect", { class: "stripe", x: X(a - 0.5), y: PAD.top, width: X(b - 0.5) - X(a - 0.5), height: bottom - PAD.top })); });
}

function drawDots(host, g, { of, y, yLabel, form, label }) {
  // A dot for each class in the order of learning; the classes of the last task are filled.
  const width = Math.max(240, host.clientWidth || 320), height = 210, n = of.values.length, fresh = of.seen[of.seen.length - 2] || 0;
  const at = of.values.map((_, c) => c);
  const { root, X, Y, right, bottom } = canvas(width, height, { x: [-0.5, n - 0.5], y, xLabel: "class, in the order of learning", yLabel, xTicks: few(at, 8), yTicks: ticks(y[0], y[1], 5), xText: (c) => whole(c + 1), label });
  stripes(root, of.seen, n, X, bottom);
  if (y[0] < 0 && y[1] > 0) root.append(sv("line", { class: "guide", x1: PAD.left, x2: right, y1: Y(0), y2: Y(0) }));
  const group = sv("g", { "data-g": g, style: `color:${colour(g)}` });
  of.values.forEach((v, c) => { if (known(v)) group.append(sv("circle", { class: c < fresh ? "dot old" : "dot", cx: X(c), cy: Y(clip(v, y)), r: n > 60 ? 2.2 : 3.4 })); });
  const hit = sv("rect", { class: "hit", x: PAD.left, y: 0, width: right - PAD.left, height: bottom });
  pointer(root, hit, width, height, (event, px) => {
    const c = Math.max(0, Math.min(n - 1, Math.round((px - PAD.left) / (right - PAD.left) * n - 0.5)));
    tip(event, of.scenario.classes[c], [item(g, D.groups[g].label, form(of.values[c]), true), el("div", { class: "seeds" }, classNote(of, c))]);
  });
  root.append(group, hit);
  host.append(root);
}
function classNote(of, c) {
  const task = of.seen.findIndex((end) => c < end) + 1, counts = of.scenario.counts;
  return `class ${c + 1}, task ${task}` + (counts ? `, ${whole(counts[c])} training images` : "");
}

function drawScatter(host, g, { x, of, xDomain, y, xLabel, yLabel, form, label }) {
  const width = Math.max(240, host.clientWidth || 320), height = 230, fresh = of.seen[of.seen.length - 2] || 0;
  const log = xDomain[0] > 0 && xDomain[1] / xDomain[0] > 8, f = log ? Math.log10 : (v) => v;
  const marks = log ? decades(xDomain) : ticks(xDomain[0], xDomain[1], 5);
  const { root, X, Y, bottom } = canvas(width, height, { x: xDomain.map(f), y, xLabel: xLabel + (log ? ", log scale" : ""), yLabel, xTicks: marks.map(f), yTicks: ticks(y[0], y[1], 5), xText: (v) => whole(log ? 10 ** v : v), label });
  const group = sv("g", { "data-g": g, style: `color:${colour(g)}` });
  const points = of.values.map((v, c) => ({ v, c, x: x.values[c] })).filter((p) => known(p.v) && known(p.x));
  for (const p of points) {
    p.at = [X(f(Math.max(p.x, xDomain[0]))), Y(clip(p.v, y))];
    group.append(sv("circle", { class: p.c < fresh ? "dot old" : "dot", cx: p.at[0], cy: p.at[1], r: points.length > 60 ? 2.6 : 3.8 }));
  }
  const hit = sv("rect", { class: "hit", x: PAD.left - 6, y: 0, width: width - PAD.left, height: bottom + 4 });
  pointer(root, hit, width, height, (event, px, py) => {
    if (!points.length) return;
    const p = points.reduce((a, b) => Math.hypot(b.at[0] - px, b.at[1] - py) < Math.hypot(a.at[0] - px, a.at[1] - py) ? b : a);
    tip(event, of.scenario.classes[p.c], [item(g, yLabel, form(p.v), true), item(null, xLabel, whole(p.x)), el("div", { class: "seeds" }, classNote(of, p.c))]);
  });
  root.append(group, hit);
  host.append(root);
}
function decades([low, high]) {
  const out = [];
  for (let p = Math.floor(Math.log10(low)); p <= Math.log10(high); p++) for (const m of [1, 2, 5]) { const v = m * 10 ** p; if (v >= low * 0.999 && v <= high * 1.001) out.push(v); }
  return out;
}

function drawBars(host, { values, names, seen, xLabel, yLabel, label }) {
  const width = Math.max(240, host.clientWidth || 320), height = 220, n = values.length, y = domain(values, { from: 0 });
  const { root, X, Y, right, bottom } = canvas(width, height, { x: [-0.5, n - 0.5], y, xLabel, yLabel, xTicks: few(values.map((_, c) => c), 10), yTicks: ticks(y[0], y[1], 4), xText: (c) => whole(c + 1), label });
  stripes(root, seen, n, X, bottom);
  const group = sv("g", { style: `color:${colour(0)}` });
  const thick = Math.max(0.6, (right - PAD.left) / n * 0.72);
  values.forEach((v, c) => group.append(sv("rect", { class: "bar", x: X(c) - thick / 2, width: thick, y: Y(v), height: bottom - Y(v) })));
  const hit = sv("rect", { class: "hit", x: PAD.left, y: 0, width: right - PAD.left, height: bottom });
  pointer(root, hit, width, height, (event, px) => {
    const c = Math.max(0, Math.min(n - 1, Math.round((px - PAD.left) / (right - PAD.left) * n - 0.5)));
    tip(event, names[c], [item(null, "training images", whole(values[c]), true)]);
  });
  root.append(group, hit);
  host.append(root);
}

function mix(a, b, t) {
  const parse = (c) => [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16)), x = parse(a), y = parse(b);
  return x.map((v, i) => Math.round(v + (y[i] - v) * t));
}
function heatColour(t) { // 0 to 1
  const [a, b, c] = ["--heat0", "--heat1", "--heat2"].map(css);
  return t < 0.5 ? mix(a, b, 2 * t) : mix(b, c, 2 * t - 1);
}
function drawHeat(host, { rows, cols, value, text, told, xLabel, yLabel, label, seen, names }) {
  // value(r, c) from 0 to 1, or null for an empty cell. One pixel a cell, scaled up. The names of classes stand beside it where a row is as high as a letter.
  const width = Math.max(220, Math.min(host.clientWidth || 300, 460)), top = 6, room = Math.max(12, Math.min(18, Math.floor((width - 34 - 20 * cols) / 6.2))), said = names && names.slice(0, rows).map((n) => cut(n, room));
  const long = said ? Math.max(...said.map((n) => [...n].length)) * 6.2 : 0, named = said && (width - 34 - long) / cols >= 11;
  const left = named ? 26 + long : 46, foot = named ? 28 + long : 42;
  const side = (width - left - 8) / cols, tall = Math.min(side, (width - left - 8) / rows), height = top + tall * rows + foot;
  const root = sv("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, style: `max-width:${width}px` });
  const pixels = el("canvas", { width: cols, height: rows }), ink = pixels.getContext("2d"), image = ink.createImageData(cols, rows);
  const steps = Array.from({ length: 65 }, (_, i) => heatColour(i / 64));
  for (let r = 0; r < rows; r++) for (let c = 0; c < cols; c++) {
    const v = value(r, c), i = 4 * (r * cols + c);
    if (v === null) continue;
    const rgb = steps[Math.round(64 * Math.max(0, Math.min(1, v)))];
    image.data.set([...rgb, 255], i);
  }
  ink.putImageData(image, 0, 0);
  root.append(sv("image", { href: pixels.toDataURL(), x: left, y: top, width: side * cols, height: tall * rows, preserveAspectRatio: "none", style: "image-rendering:pixelated" }));
  if (text && cols <= 10) for (let r = 0; r < rows; r++) for (let c = 0; c < cols; c++) {
    const v = value(r, c);
    if (v !== null && text(r, c) !== "") root.append(sv("text", { x: left + side * (c + 0.5), y: top + tall * (r + 0.5) + 3.5, "text-anchor": "middle", style: `font-size:${Math.min(11, side * 0.36)}px;fill:${readable(steps[Math.round(64 * Math.min(1, v))])}` }, text(r, c)));
  }
  root.append(sv("rect", { class: "frameline", x: left, y: top, width: side * cols, height: tall * rows }));
  if (seen) for (const end of seen.slice(0, -1)) root.append(
    sv("line", { class: "grid", x1: left + side * end, x2: left + side * end, y1: top, y2: top + tall * rows }),
    sv("line", { class: "grid", x1: left, x2: left + side * cols, y1: top + tall * end, y2: top + tall * end }));
  const index = (n) => few(Array.from({ length: n }, (_, i) => i), 10);
  if (named) said.forEach((name, c) => root.append(
    sv("text", { class: "class", transform: `translate(${left + side * (c + 0.5) + 3.5} ${top + tall * rows + 6}) rotate(-90)`, "text-anchor": "end" }, name),
    sv("text", { class: "class", x: left - 5, y: top + tall * (c + 0.5) + 3.5, "text-anchor": "end" }, name)));
  else {
    for (const c of index(cols)) root.append(sv("text", { x: left + side * (c + 0.5), y: top + tall * rows + 15, "text-anchor": "middle" }, c + 1));
    for (const r of index(rows)) root.append(sv("text", { x: left - 6, y: top + tall * (r + 0.5) + 4, "text-anchor": "end" }, r + 1));
  }
  root.append(
    sv("text", { class: "label", x: left + side * cols / 2, y: height - 8, "text-anchor": "middle" }, names && !named ? `${xLabel} (number in the order of learning)` : xLabel),
    sv("text", { class: "label", transform: `translate(11 ${top + tall * rows / 2}) rotate(-90)`, "text-anchor": "middle" }, yLabel));
  const hit = sv("rect", { class: "hit", x: left, y: top, width: side * cols, height: tall * rows });
  pointer(root, hit, width, height, (event, px, py) => {
    const c = Math.max(0, Math.min(cols - 1, Math.floor((px - left) / side))), r = Math.max(0, Math.min(rows - 1, Math.floor((py - top) / tall)));
    if (value(r, c) === null) return untip();
    tip(event, ...told(r, c));
  });
  root.append(hit);
  host.append(root);
}
const cut = (name, most) => { const letters = [...name.trim()]; return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : letters.join(""); };
const readable = ([r, g, b]) => (0.299 * r + 0.587 * g + 0.114 * b) > 140 ? "#14171b" : "#ffffff";

const soon = (chart) => (...what) => { jobs.push(() => chart(...what)); };
const lines = soon(drawLines), dots = soon(drawDots), scatter = soon(drawScatter), bars = soon(drawBars), heat = soon(drawHeat);

// --- sections ---------------------------------------------------------------------------------------------------------

function section(id, name, say) {
  const node = el("section", { id }, el("h2", {}, name), el("p", { class: "say" }, say));
  $("main").append(node);
  return node;
}
function figure(parent, name, say, least) {
  const panels = el("div", { class: "panels", style: least ? `--least:${least}px` : null });
  parent.append(el("figure", {}, el("figcaption", {}, el("h3", {}, name), el("p", { class: "say" }, say)), panels));
  return panels;
}
function panel(panels, name) {
  const node = el("div", { class: "panel" }, name ? el("div", { class: "name" }, name) : null);
  panels.append(node);
  return node;
}
function groupPanel(panels, g) {
  const label = el("button", { class: "name", type: "button", onclick: () => toggle(g, null) }, swatch(g), el("bdi", {}, D.groups[g].label));
  const node = el("div", { class: "panel", "data-g": g }, label);
  panels.append(node);
  return node;
}
function table(heads, rows, { slim, caption } = {}) {
  const words = new Set(heads.map((h, i) => h.words ? i : -1));
  const cell = (content, i) => el("td", { class: words.has(i) ? "words" : null, dir: words.has(i) ? "auto" : null }, content);
  return el("div", { class: "scroll" }, el("table", { class: slim ? "slim" : null }, caption ? el("caption", { dir: "auto" }, caption) : null,
    el("thead", {}, el("tr", {}, heads.map((h) => el("th", { class: h.words ? "words" : null, scope: "col" }, h.text)))),
    el("tbody", {}, rows.map((row) => el("tr", { "data-g": row.g, "data-r": row.r, onclick: row.g === undefined ? null : () => toggle(row.g, known(row.r) ? row.r : null) }, row.cells.map(cell))))));
}
const spread = (values, form) => !values.length ? "–" : values.length < 2 ? form(values[0]) : [form(mean(values)), el("span", { class: "pm" }, ` ± ${percent(std(values))}`)];
const later = (shown, groups) => groups.length > shown.length ? ` Drawn: the first ${shown.length} of ${groups.length}; not drawn: ${listed(groups.slice(shown.length))}. Untick some to draw others.` : "";
const listed = (groups) => { const names = groups.map((g) => D.groups[g.g ?? g].label); return names.length <= 6 ? names.join("; ") : `${names.slice(0, 5).join("; ")} and ${names.length - 5} more`; };

function summary() {
  const node = section("summary", "Summary", "Accuracy in percent on the test images of all classes seen: its average over the tasks, after the last task, and how much of their best accuracy past tasks have lost.");
  const groups = shownGroups(), names = allReadouts(), theirs = groups.some((g) => D.groups[g].paper), pairs = groups.some((g) => D.groups[g].base !== null);
  const places = new Set(groups.map((g) => D.groups[g].place));
  const heads = [{ text: "run", words: true }];
  if (places.size > 1) heads.push({ text: "setting", words: true });
  heads.push({ text: "n" });
  // What is compared comes first, so that a narrow screen shows it.
  const [first, ...others] = names, rest = [[first, "last"], [first, "forgetting"], ...others.flatMap((n) => ["average", "last", "forgetting"].map((kind) => [n, kind]))];
  heads.push({ text: `${title(first)} average` });
  if (pairs) heads.push({ text: "gain" });
  if (theirs) heads.push({ text: "paper" }, { text: "difference" }, { text: "paper’s gain" });
  for (const [n, kind] of rest) heads.push({ text: `${title(n)} ${kind}` });
  let lacking = false; // whether some runs of a setting have a figure and others have not
  const rows = groups.map((g, i) => {
    const group = D.groups[g], runs = shownRuns(g), done = runs.filter(({ run }) => run.complete);
    const values = (n, kind) => done.map(({ run }) => run.readouts[n] && run.readouts[n][kind]).filter(known);
    const cells = [[swatch(g), el("bdi", {}, group.name)]];
    if (places.size > 1) cells.push(i && D.groups[groups[i - 1]].place === group.place ? "" : group.own_place);
    cells.push(done.length ? String(done.length) : `unfinished, ${learnt(runs[0].run)}`, spread(values(first, "average"), percent));
    if (pairs) cells.push(spread(gains(g, group.headline), gained));
    if (theirs) {
      const ours = values(group.headline, "average");
      cells.push(group.paper ? percent(group.paper.average) : "–", group.paper && ours.length ? gained(mean(ours) - group.paper.average) : "–", group.paper ? gained(group.paper.gain) : "–");
    }
    for (const [n, kind] of rest) {
      const found = values(n, kind), some = found.length && found.length < done.length;
      lacking ||= some;
      cells.push([spread(found, percent), some ? ` (${found.length})` : ""].flat());
    }
    return { g, cells };
  });
  let caption = "Mean ± standard deviation over n seeds.";
  if (lacking) caption += " In brackets: the number of seeds that have the figure, where others of the n have not.";
  if (pairs) caption += " Gain: average minus that of the same setting without coordination, seed by seed, over the seeds that both have.";
  if (theirs) caption += " Paper: Wang et al., IJCAI 2024, the same data, backbone, memory and tasks.";
  const open = D.runs.filter((run, r) => !run.complete && !hidden.has(r)).length;
  if (open) caption += ` ${open} unfinished ${open === 1 ? "run is" : "runs are"} drawn below as far as they have come and not averaged here.`;
  const { place, common_place } = D.groups[groups[0]]; // alike where the page has one place, which its first line tells
  node.append(table(heads, rows, { caption: places.size > 1 ? common_place : place === common_place ? null : place }), el("p", { class: "hint" }, caption));
}
function gains(g, readout) {
  const base = D.groups[g].base;
  if (base === null) return [];
  const pick = (run) => run.readouts[readout] && run.readouts[readout].average;
  const without = new Map(shownRuns(base).filter(({ run }) => run.complete).map(({ run }) => [String(run.seeds), pick(run)]));
  return shownRuns(g).map(({ run }) => [pick(run), without.get(String(run.seeds))]).filter(([a, b]) => known(a) && known(b)).map(([a, b]) => a - b);
}

function curves() {
  const node = section("curves", "Accuracy after each task", "How well each run still tells apart all the classes it has seen, the classes of earlier tasks, and those it has just learnt.");
  const meaning = { cnn: "the classifier’s head", nme: "the nearest mean of exemplars" }, kinds = { all: "All classes seen", old: "Old classes", new: "New classes" };
  for (const n of allReadouts()) {
    const withPaper = shownGroups().some((g) => D.groups[g].headline === n && D.groups[g].paper && D.groups[g].paper.curve);
    const panels = figure(node, title(n), `Accuracy of ${meaning[n] || `the ${n} read-out`} on test images; the line is the mean over seeds, the band one standard deviation.` + (withPaper ? " The thin dotted line is the paper’s." : ""));
    const values = D.runs.flatMap((run, r) => hidden.has(r) || !run.readouts[n] ? [] : Object.keys(kinds).flatMap((k) => run.readouts[n][k]));
    const theirs = withPaper ? shownGroups().flatMap((g) => D.groups[g].paper && D.groups[g].paper.curve ? Object.values(D.groups[g].paper.curve).flat() : []) : [];
    const y = domain([...values, ...theirs], { to: 100 });
    for (const [kind, name] of Object.entries(kinds)) {
      const host = panel(panels, name);
      host.dataset.chart = `${n}-${kind}`;
      lines(host, { pick: (run) => run.readouts[n] && run.readouts[n][kind], xs: (run) => run.seen, xLabel: "classes seen", yLabel: "accuracy (%)", y, form: percent, name,
        head: (x) => `${name}, after ${x} classes (%)`, label: `${title(n)}: ${name}, accuracy in percent against classes seen`, paper: (g) => g.headline === n && g.paper && g.paper.curve && g.paper.curve[kind] });
    }
  }
}

function matrices() {
  const groups = shownGroups(), shown = groups.slice(0, PANELS);
  const node = section("matrices", "Accuracy on each task", "A row is a moment of learning and a column a task: reading down a column shows a task being forgotten.");
  const panels = figure(node, "Task by task", "Accuracy (%) of the headline read-out on the test images of each past task, after each task; the mean over seeds." + later(shown, groups), 270);
  panels.classList.add("few");
  for (const g of shown) {
    const n = D.groups[g].headline, runs = shownRuns(g).filter(({ run }) => run.readouts[n] && run.readouts[n].per_task.length);
    if (!runs.length) continue;
    const size = Math.max(...runs.map(({ run }) => run.seen.length));
    const of = (t, s) => runs.map(({ run }) => (run.readouts[n].per_task[t] || [])[s]).filter(known);
    const host = groupPanel(panels, g);
    host.dataset.matrix = "tasks";
    heat(host, { rows: size, cols: size, value: (t, s) => of(t, s).length ? mean(of(t, s)) / 100 : null, text: (t, s) => whole(mean(of(t, s))), xLabel: "task tested", yLabel: "tasks learnt",
      label: `${D.groups[g].label}: accuracy in percent on each task after each task`, told: (t, s) => [`task ${s + 1}, after learning task ${t + 1}`, [item(g, `${title(n)} accuracy (%)`, withStd(of(t, s), percent), true)]] });
  }
}

function sparse(rows) { // each true class: [[class, count], ...]
  return rows.map((row) => typeof row === "string" ? row.split(" ").filter(Boolean).map((w) => w.split(":").map(Number)) : row.map((n, c) => [c, n]).filter(([, n]) => n));
}
function confusions() {
  const groups = shownGroups().filter((g) => shownRuns(g).some(({ run }) => run.diagnostics && run.diagnostics.confusion)), shown = groups.slice(0, PANELS);
  const node = section("confusion", "Confusion", "What is taken for what after the last task. A biased network shows as columns at the right edge: images of old classes taken for new ones.");
  if (!groups.length) return node.append(el("p", { class: "hint" }, "These results hold no confusion matrix: an earlier version wrote them."));
  const panels = figure(node, "True class against prediction", "Share of the test images of each class (row) that the head takes for each class (column), in the order of learning, coloured by its square root so that small shares show; thin lines part the tasks." + later(shown, groups), D.runs.some((run) => run.seen[run.seen.length - 1] > 20) ? 400 : 300);
  panels.classList.add("few");
  for (const g of shown) {
    const all = shownRuns(g).filter(({ run }) => run.diagnostics && run.diagnostics.confusion), size = Math.max(...all.map(({ run }) => run.diagnostics.confusion.length));
    const runs = all.filter(({ run }) => run.diagnostics.confusion.length === size), counts = new Map(), totals = new Array(size).fill(0);
    for (const { run } of runs) sparse(run.diagnostics.confusion).forEach((row, r) => row.forEach(([c, n]) => { counts.set(r * size + c, (counts.get(r * size + c) || 0) + n); totals[r] += n; }));
    const count = (r, c) => counts.get(r * size + c) || 0, share = (r, c) => totals[r] ? count(r, c) / totals[r] : 0;
    const classes = D.scenarios[runs[0].run.scenario].classes, host = groupPanel(panels, g);
    host.dataset.matrix = "confusion";
    heat(host, { rows: size, cols: size, value: (r, c) => Math.sqrt(share(r, c)), text: (r, c) => count(r, c) ? whole(100 * share(r, c)) : "", xLabel: "predicted class", yLabel: "true class", seen: size > 1 ? runs[0].run.seen : null, names: classes,
      label: `${D.groups[g].label}: share of each true class taken for each class`,
      told: (r, c) => ["", [el("div", {}, "true: ", el("bdi", {}, classes[r])), el("div", {}, "taken for: ", el("bdi", {}, classes[c])), item(g, "share of its images (%)", percent(100 * share(r, c)), true), el("div", { class: "seeds" }, `${whole(count(r, c))} of ${whole(totals[r])} images` + (runs.length > 1 ? ` over ${runs.length} seeds` : ""))]] });
  }
}

const diagnosed = (name) => (run) => run.diagnostics && run.diagnostics[name];
function overTasks(panels, name, { title: text, yLabel, form }) {
  const values = D.runs.flatMap((run, r) => hidden.has(r) ? [] : diagnosed(name)(run) || []);
  const host = panel(panels, text);
  host.dataset.chart = name;
  lines(host, { pick: diagnosed(name), xs: (run) => run.seen, xLabel: "classes seen", yLabel, y: domain(values, { from: 0 }), form, head: (x) => `${text}, after ${x} classes`, label: `${text}: ${yLabel} against classes seen` });
}
function classFigure(node, name, say, pick, { yLabel, form, from }) {
  const found = shownGroups().map((g) => ({ g, of: byClass(g, pick) })).filter((o) => o.of), shown = found.slice(0, PANELS);
  if (!found.length) return;
  const panels = figure(node, name, say + later(shown, found), 300), y = domain(shown.flatMap((o) => o.of.values), { from });
  for (const { g, of } of shown) dots(groupPanel(panels, g), g, { of, y, yLabel, form, label: `${D.groups[g].label}: ${yLabel} of each class` });
}
function mechanisms() {
  const node = section("mechanisms", "The three mechanisms", "What the paper says goes wrong in class-incremental learning, measured on test images, and what coordination does to it. Filled dots are classes of the last task, open dots older ones; stripes part the tasks.");
  if (!D.runs.some((run, r) => run.diagnostics && !hidden.has(r))) return node.append(el("p", { class: "hint" }, "These results hold no diagnostics: an earlier version wrote them."));
  const between = figure(node, "1. Bias between tasks", "How much probability images of old classes put on the heads of new ones, and how far confidence departs from accuracy; lower is better.", 280);
  overTasks(between, "old_mass_on_new", { title: "Old images on new heads", yLabel: "mean probability", form: small });
  overTasks(between, "calibration_error", { title: "Calibration error", yLabel: "expected error (%)", form: percent });
  classFigure(node, "Weight norm of each class", "Length of each class’s row in the head; new classes that stand above old ones win ties.", diagnosed("weight_norms"), { yLabel: "weight norm", form: small, from: 0 });
  classFigure(node, "Mean logit of each class", "Mean score of each class over all test images; without bias the classes lie level.", diagnosed("mean_logits"), { yLabel: "mean logit", form: small, from: null });
  const pairs = shownGroups().map((g) => ({ g, x: byClass(g, diagnosed("trained_on")), of: byClass(g, diagnosed("delta_by_class")) })).filter((o) => o.x && o.of), shown = pairs.slice(0, PANELS);
  if (pairs.length) {
    const panels = figure(node, "2. Bias within tasks", "Mean delta, 1 − p(true class), of each class’s test images against the training images that the last task had of it; a slope means that rare classes are left behind." + later(shown, pairs), 300);
    const images = shown.flatMap((o) => o.x.values).filter(known), low = Math.min(...bounds(images)), high = Math.max(...bounds(images));
    const xDomain = low > 0 && high / low > 8 ? [low / 1.25, high * 1.25] : domain(images, { from: 0 });
    for (const { g, x, of } of shown) scatter(groupPanel(panels, g), g, { x, of, xDomain, y: [0, 1], xLabel: "training images in the last task", yLabel: "mean delta", form: small, label: `${D.groups[g].label}: mean delta of each class against its training images` });
  }
  if (D.runs.some((run, r) => !hidden.has(r) && (diagnosed("few")(run) || []).some(known))) {
    const thirds = { many: "Many-shot classes", medium: "Medium-shot classes", few: "Few-shot classes" };
    const panels = figure(node, "Many, medium, few", "Accuracy of the head on the third of the classes seen with the most, the middle and the fewest training images.");
    const y = domain(D.runs.flatMap((run, r) => hidden.has(r) ? [] : Object.keys(thirds).flatMap((k) => diagnosed(k)(run) || [])), { to: 100 });
    for (const [kind, name] of Object.entries(thirds)) {
      const host = panel(panels, name);
      host.dataset.chart = kind;
      lines(host, { pick: diagnosed(kind), xs: (run) => run.seen, xLabel: "classes seen", yLabel: "accuracy (%)", y, form: percent, head: (x) => `${name}, after ${x} classes (%)`, label: `${name}: accuracy in percent against classes seen` });
    }
  }
  const interference = figure(node, "3. Interference of old and new heads", "How much probability images of new classes put on old heads, and how far the old heads’ outputs on those images have moved from what they were when the task arrived (sum over past tasks of KL at temperature 2); lower means less interference.", 280);
  overTasks(interference, "new_mass_on_old", { title: "New images on old heads", yLabel: "mean probability", form: small });
  overTasks(interference, "drift_on_old", { title: "Drift of old heads on new images", yLabel: "KL divergence (nats)", form: small });
}

function classes() {
  const node = section("classes", "Class by class", "Where the accuracy lies, and how many images there were to learn from.");
  classFigure(node, "Accuracy of each class", "Accuracy of the headline read-out on each class after the last task.", (run) => { const of = run.readouts[D.groups[run.group].headline]; return of && of.per_class.length ? of.per_class : null; }, { yLabel: "accuracy (%)", form: percent, from: 0 });
  const used = [...new Set(D.runs.filter((_, r) => !hidden.has(r)).map((run) => run.scenario))].filter((s) => D.scenarios[s].tailed);
  if (!used.length) return;
  const found = used.map((s) => ({ s, run: D.runs.filter((one) => one.scenario === s).sort((a, b) => b.seen.length - a.seen.length)[0] })).map((o) => ({ ...o, g: o.run.group }));
  const shown = found.slice(0, PANELS), places = found.map((o) => D.groups[o.g].own_place);
  const panels = figure(node, "The long tail", "Training images of each class; stripes part the tasks." + later(shown, found), 380);
  for (const { s, run, g } of shown) {
    const { counts, classes: names } = D.scenarios[s], { own_place: place, label } = D.groups[g];
    const host = panel(panels, used.length > 1 ? (places.filter((p) => p === place).length > 1 ? label : place) : null);
    host.dataset.chart = "counts";
    bars(host, { values: counts, names, seen: run.seen, xLabel: "class, in the order of learning", yLabel: "training images", label: "training images of each class" });
  }
}

function settings() {
  const { names, rows } = D.differences, groups = shownGroups();
  const node = section("settings", "Settings", names.length ? "The settings in which the runs differ, seeds and machine aside." : D.runs.length > 1 ? "All runs share one setting and differ in their seeds alone." : "There is one run, so nothing differs.");
  if (names.length) node.append(table([{ text: "run", words: true }, ...names.map((n) => ({ text: n }))], groups.map((g) => ({ g, cells: [[swatch(g), el("bdi", {}, D.groups[g].label)], ...rows[g]] })), { slim: true }));
}

function times() {
  const node = section("time", "Time and speed", "What each run cost, where it ran, and where it lies.");
  const panels = figure(node, "What each task took", "Seconds, evaluation included, and images a second while training.");
  const values = (key) => D.runs.flatMap((run, r) => hidden.has(r) ? [] : run[key]);
  const two = [["seconds", "Seconds a task", "time (s)", fixed(1)], ["speed", "Training speed", "images a second", whole]];
  for (const [key, name, yLabel, form] of two) {
    if (!values(key).some(known)) continue;
    const host = panel(panels, name);
    host.dataset.chart = key;
    lines(host, { pick: (run) => run[key], xs: (run) => run.seen.map((_, t) => t + 1), xLabel: "task", yLabel, y: domain(values(key), { from: 0 }), form, head: (x) => `${name}, task ${x}`, label: `${name}: ${yLabel} against tasks` });
  }
  const rows = D.runs.map((run, r) => ({ run, r })).filter(({ r }) => !hidden.has(r)).map(({ run, r }) => {
    const spent = run.seconds.filter(known), speed = run.speed.filter(known), about = run.about;
    return { g: run.group, r, cells: [[swatch(run.group), el("bdi", {}, `${D.groups[run.group].label}, ${run.name}`)], run.complete ? "yes" : `no, ${learnt(run)}`, spent.length ? duration(spent.reduce((a, b) => a + b, 0)) : "–",
      speed.length ? whole(mean(speed)) : "–", [about.device, about.precision].filter(Boolean).join(", ") || "–", [about.jioc, about.commit].filter(Boolean).join(" ") || "–", run.path] };
  });
  const long = rows.length > 24, list = table([{ text: "run", words: true }, { text: "finished" }, { text: "time" }, { text: "images/s" }, { text: "device" }, { text: "jioc" }, { text: "folder", words: true }], rows);
  node.append(long ? el("details", {}, el("summary", {}, `All ${rows.length} runs`), list) : list);
}
function duration(s) { return s < 120 ? `${fixed(1)(s)} s` : s < 7200 ? `${fixed(1)(s / 60)} min` : `${fixed(1)(s / 3600)} h`; }

// --- the list of runs -------------------------------------------------------------------------------------------------

function legend() {
  const word = $("find").value.trim().toLowerCase(), open = new Set([...document.querySelectorAll("#legend li[data-open]")].map((li) => +li.dataset.g));
  $("legend").replaceChildren(...D.groups.map((group, g) => ({ group, g })).filter(({ group }) => `${group.label} ${group.place}`.toLowerCase().includes(word)).map(({ group, g }) => {
    const all = D.runs.map((run, r) => ({ run, r })).filter(({ run }) => run.group === g), on = all.filter(({ r }) => !hidden.has(r)).length;
    const box = el("input", { type: "checkbox", "aria-label": `show ${group.label}`, onchange: (event) => { for (const { r } of all) event.target.checked ? hidden.delete(r) : hidden.add(r); draw(); } });
    box.checked = on > 0; box.indeterminate = on > 0 && on < all.length;
    const here = focus && focus.g === g;
    const line = el("div", { class: "line" + (on ? "" : " off") + (here && focus.r === null ? " focus" : "") }, box, swatch(g), el("button", { type: "button", class: "name", onclick: () => toggle(g, null) }, el("bdi", {}, group.label)));
    const item = el("li", { "data-g": g }, line);
    if (all.length > 1) {
      const fold = el("button", { type: "button", class: "fold", "aria-expanded": open.has(g), onclick: () => { item.toggleAttribute("data-open"); legend(); } }, `${on}/${all.length}`);
      line.append(fold);
      if (open.has(g)) { item.dataset.open = ""; item.append(el("ul", {}, all.map(({ run, r }) => {
        const one = el("input", { type: "checkbox", "aria-label": `show ${group.label}, ${run.name}`, onchange: (event) => { event.target.checked ? hidden.delete(r) : hidden.add(r); draw(); } });
        one.checked = !hidden.has(r);
        return el("li", {}, el("div", { class: "line" + (focus && focus.r === r ? " focus" : "") }, one, el("button", { type: "button", class: "name", onclick: () => toggle(g, r) }, run.name + (run.complete ? "" : ", unfinished"))));
      }))); }
    }
    return item;
  }));
  $("chosen").textContent = `${D.runs.length - hidden.size} of ${D.runs.length}`;
}
function toggle(g, r) {
  focus = focus && focus.g === g && focus.r === r ? null : { g, r };
  legend();
  light();
}
function light() {
  for (const node of document.querySelectorAll("#main [data-g]")) {
    const mine = !focus || +node.dataset.g === focus.g, row = node.tagName === "TR", one = row && node.dataset.r !== undefined;
    node.classList.toggle("dim", !mine && !row);
    node.classList.toggle("focus", !!focus && row && mine && (focus.r === null || !one || +node.dataset.r === focus.r));
  }
  for (const node of document.querySelectorAll("#main .one")) node.classList.toggle("lit", !!focus && focus.r !== null && +node.dataset.r === focus.r);
}

function draw() {
  const y = scrollY;
  untip();
  $("main").replaceChildren();
  legend();
  if (shownGroups().length) for (const part of [summary, curves, matrices, confusions, mechanisms, classes, settings, times]) part();
  else $("main").append(el("p", { class: "hint" }, "No run is chosen."));
  for (const job of jobs.splice(0)) job();
  light();
  scrollTo(0, y);
}

// --- start ------------------------------------------------------------------------------------------------------------

const places = [...new Set(D.groups.map((g) => g.place))];
$("lead").append(`${D.runs.length} ${D.runs.length === 1 ? "run" : "runs"} of ${D.groups.length} ${D.groups.length === 1 ? "setting" : "settings"}: `, el("bdi", {}, places.length === 1 ? places[0] : `${places.length} scenarios`), `. Written by jioc ${D.version}.`);
$("lead").after(...D.left_out.map((text) => el("p", { class: "hint" }, text)));
const dark = matchMedia("(prefers-color-scheme: dark)");
let chosen = null;
function theme() {
  const now = chosen || (dark.matches ? "dark" : "light");
  document.documentElement.dataset.theme = now;
  $("theme").textContent = now === "dark" ? "Light" : "Dark";
  draw();
}
$("theme").addEventListener("click", () => { chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark"; theme(); });
dark.addEventListener("change", theme);
$("find").addEventListener("input", legend);
$("every").addEventListener("click", () => { hidden.clear(); draw(); });
$("none").addEventListener("click", () => { D.runs.forEach((_, r) => hidden.add(r)); draw(); });
addEventListener("keydown", (event) => { if (event.key === "Escape" && focus) { focus = null; legend(); light(); } });
let wide = innerWidth;
addEventListener("resize", () => { if (innerWidth !== wide) { wide = innerWidth; draw(); } });
let before = null;
addEventListener("beforeprint", () => { before = chosen; chosen = "light"; document.documentElement.classList.add("printing"); theme(); });
addEventListener("afterprint", () => { chosen = before; document.documentElement.classList.remove("printing"); theme(); });
if (innerWidth <= 960) $("drawer").open = false;
theme();
