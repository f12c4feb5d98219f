// --- what is shown: one filter for everything, ticks for what is drawn, and both in the page's address 

const D = JSON.parse($("data").textContent);
for (const run of D.runs) {
  // a read-out or a term may be called "constructor"
  run.readouts = Object.assign(Object.create(null), run.readouts);
  if (run.losses) run.losses.terms = Object.assign(Object.create(null), run.losses.terms);
}
const MOST_DRAWN = 8; // settings that are drawn before anybody ticks one
const EVERY = D.groups.map((_, g) => g);
const RUNS = EVERY.map((g) => D.runs.map((run, r) => ({ run, r })).filter(({ run }) => run.group === g));
const PLACES = [...new Set(D.groups.map((group) => group.place))];
const VALUES = D.facets.map((name, f) => {
  const groups = name === "coordination" ? D.groups.slice().sort((a, b) => a.dash - b.dash) : D.groups;
  return [...new Set(groups.map((group) => group.facets[f]))];
});
const TEXTS = D.groups.map((group) => `${group.label} ${group.place}`.toLowerCase());

let search = ""; // words that a setting's name or place must have
let wanted = D.facets.map(() => new Set()); // of each facet the values that are wanted; none: all
let picked = null; // the settings that somebody ticked; null: the first few
let without = new Set(); // runs that are left out of every figure
let focus = null; // {g, r}: a setting that is highlighted, and one run of it or null
let sorts = Object.create(null); // of each table: {column, down}
let place = ""; // the section that a link leads to

let kept = null; // what follows from the above, until it changes
function chosen() {
  if (kept) return kept;
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (g) =>
    words.every((word) => TEXTS[g].includes(word)) &&
    wanted.every((values, f) => !values.size || values.has(D.groups[g].facets[f]));
  const matching = EVERY.filter(fits);
  const drawn = picked === null ? firstFew(matching) : matching.filter((g) => picked.has(g));
  const one = new Set(matching.map((g) => D.groups[g].method)).size === 1;
  const names = one ? [...new Set(matching.map((g) => D.groups[g].name))] : null;
  return (kept = { matching, names, drawn: drawn.filter((g) => counted(g).length) });
}
function firstFew(groups) {
  // those with a host or as a host before others, of as few places as may be
  if (groups.length <= MOST_DRAWN) return groups;
  const hosts = new Set(groups.map((g) => D.groups[g].base)),
    paired = (g) => hosts.has(g) || D.groups[g].base !== null;
  const pairs = (g) =>
    groups.filter((other) => D.groups[other].place === D.groups[g].place && paired(other)).length;
  const inOrder = [...new Set(groups.map((g) => D.groups[g].place))];
  const rank = (g) => [pairs(g) ? 0 : 1, inOrder.indexOf(D.groups[g].place), paired(g) ? 0 : 1, g];
  const ranks = new Map(groups.map((g) => [g, rank(g)]));
  const before = (a, b) => {
    const i = ranks.get(a).findIndex((v, k) => v !== ranks.get(b)[k]);
    return ranks.get(a)[i] - ranks.get(b)[i];
  };
  return groups
    .slice()
    .sort(before)
    .slice(0, MOST_DRAWN)
    .sort((a, b) => a - b);
}
const matching = () => chosen().matching; // what the filter lets through: the rows of tables
const drawn = () => chosen().drawn; // what is ticked of that: the lines and panels of charts
const counted = (g) => RUNS[g].filter(({ r }) => !without.has(r)); // the runs of a setting that count
const drawnRuns = () => drawn().flatMap(counted);
const finished = (g) => counted(g).filter(({ run }) => run.complete);
const inPlaces = (groups) =>
  PLACES.map((name) => ({ name, groups: groups.filter((g) => D.groups[g].place === name) })).filter(
    ({ groups: some }) => some.length,
  );
const placeTitle = (groups) => D.groups[groups[0]].own_place || D.groups[groups[0]].place;

function readoutNames() {
  // those by which methods are judged come first
  const names = D.runs.flatMap((run) => [D.groups[run.group].headline, ...Object.keys(run.readouts)]);
  return [...new Set(names)].filter((name) => D.runs.some((run) => run.readouts[name]));
}
const READOUTS = readoutNames();
const title = (readout) => (readout.length <= 3 ? readout.toUpperCase() : readout);
const learnt = (run) => `${run.seen.length} ${run.seen.length === 1 ? "task" : "tasks"}`;

function columns(g, pick, xs) {
  // The runs of a setting as points: at each x the mean, the deviation and every run's value.
  const by = new Map();
  for (const { run, r } of counted(g)) {
    const values = pick(run) || [],
      at = xs(run);
    values.forEach((v, i) => {
      if (known(v)) (by.get(at[i]) || by.set(at[i], []).get(at[i])).push({ r, v });
    });
  }
  return [...by]
    .sort((a, b) => a[0] - b[0])
    .map(([x, of]) => {
      const values = of.map((o) => o.v);
      return { x, of, mean: mean(values), std: std(values) };
    });
}
function byClass(g, pick) {
  // A value for each class: the mean over the runs that have come as far as the furthest.
  const runs = counted(g).filter(({ run }) => pick(run));
  if (!runs.length) return null;
  const length = Math.max(...runs.map(({ run }) => pick(run).length));
  const far = runs.filter(({ run }) => pick(run).length === length);
  const values = range(length).map((c) => {
    const of = far.map(({ run }) => pick(run)[c]).filter(known);
    return of.length ? mean(of) : null;
  });
  return { values, runs: far, scenario: D.scenarios[far[0].run.scenario], seen: far[0].run.seen };
}

// --- the address: #find=wa&memory=1,000 exemplars&runs=1a2b3c.4d5e6f&at=gains -------------------------

const facetKey = (f) => D.facets[f].replace(/ /g, "-");
const runId = (r) =>
  `${D.groups[D.runs[r].group].id}-${RUNS[D.runs[r].group].findIndex((one) => one.r === r)}`;
function address() {
  const words = new URLSearchParams();
  if (search) words.set("find", search);
  wanted.forEach((values, f) => values.forEach((value) => words.append(facetKey(f), value)));
  if (picked)
    words.set(
      "runs",
      [...picked]
        .sort((a, b) => a - b)
        .map((g) => D.groups[g].id)
        .join("."),
    );
  if (without.size) words.set("without", [...without].map(runId).join("."));
  if (focus) words.set("lit", focus.r === null ? D.groups[focus.g].id : runId(focus.r));
  for (const [name, { column, down }] of Object.entries(sorts))
    words.set(`sort-${name}`, (down ? "-" : "") + column);
  if (place) words.set("at", place);
  return words.toString();
}
function remember() {
  const words = address();
  if (words !== location.hash.slice(1))
    history.replaceState(null, "", words ? `#${words}` : location.pathname + location.search);
}
function recall() {
  // read the address; what it names and the page lacks is passed over
  const text = location.hash.slice(1),
    words = new URLSearchParams(text.includes("=") ? text : `at=${text}`);
  const ids = new Map(D.groups.map((group, g) => [group.id, g])),
    runs = new Map(D.runs.map((_, r) => [runId(r), r]));
  const listed = (name, from) =>
    (words.get(name) || "")
      .split(".")
      .map((id) => from.get(id))
      .filter(known);
  search = words.get("find") || "";
  wanted = D.facets.map(
    (_, f) => new Set(words.getAll(facetKey(f)).filter((value) => VALUES[f].includes(value))),
  );
  picked = words.has("runs") ? new Set(listed("runs", ids)) : null;
  without = new Set(listed("without", runs));
  const [g] = listed("lit", ids),
    [r] = listed("lit", runs);
  focus = known(r) ? { g: D.runs[r].group, r } : known(g) ? { g, r: null } : null;
  sorts = Object.create(null);
  for (const [key, value] of words) {
    if (key.startsWith("sort-"))
      sorts[key.slice(5)] = { column: value.replace(/^-/, ""), down: value.startsWith("-") };
  }
  place = words.get("at") || "";
  kept = null;
}
function changed() {
  // after any change of the above
  kept = null;
  remember();
  draw();
}

// --- looks: hue by method, dash by coordination, mark by variant --------------------------------------

const SWATCH = 34; // wide enough for every dash to show what it is
function colour(g) {
  // Hue by method; where the filter leaves one method, by name: it would tell nothing otherwise.
  const { names } = chosen(),
    hues = D.colours[document.documentElement.dataset.theme];
  const at = names ? names.indexOf(D.groups[g].name) : -1;
  return hues[at < 0 ? D.groups[g].hue : at % hues.length];
}
const dash = (g) => D.dashes[D.groups[g].dash] || null;
const SHAPES = {
  // corners, in units of the mark's radius
  s: "-1,-1 1,-1 1,1 -1,1",
  D: "0,-1.35 1.35,0 0,1.35 -1.35,0",
  "^": "0,-1.3 1.3,1 -1.3,1",
  v: "0,1.3 1.3,-1 -1.3,-1",
  P: "-.5,-1.3 .5,-1.3 .5,-.5 1.3,-.5 1.3,.5 .5,.5 .5,1.3 -.5,1.3 -.5,.5 -1.3,.5 -1.3,-.5 -.5,-.5",
  X: "-1,-1.5 0,-.5 1,-1.5 1.5,-1 .5,0 1.5,1 1,1.5 0,.5 -1,1.5 -1.5,1 -.5,0 -1.5,-1",
};
function mark(g, x, y, r, attributes) {
  const shape = SHAPES[D.marks[D.groups[g].mark]];
  if (!shape) return sv("circle", { class: "dot", cx: x, cy: y, r, ...attributes });
  const corners = shape.split(" ").map((corner) => corner.split(",").map(Number));
  const d = way(corners.map(([dx, dy]) => [x + r * dx, y + r * dy])) + "Z";
  return sv("path", { class: "dot", d, ...attributes });
}
function swatch(g) {
  return sv(
    "svg",
    { class: "swatch", viewBox: `0 0 ${SWATCH} 10`, "aria-hidden": "true", style: `color:${colour(g)}` },
    sv("line", { x1: 0, x2: SWATCH, y1: 5, y2: 5, class: "mean", "stroke-dasharray": dash(g) }),
    mark(g, SWATCH / 2, 5, 3),
  );
}
