// --- drawing: what is on the screen at once, the rest while the browser is idle -----------------------

const waiting = new Set(); // sections yet to be filled
let idle = 0;
const near = (node) => {
  const { top, bottom } = node.getBoundingClientRect();
  return top < innerHeight + 200 && bottom > -200;
};

function fill(id) {
  // its words and tables; its charts are jobs
  if (!waiting.delete(id)) return;
  const { name, fill: draw } = SECTIONS.find((one) => one.id === id),
    node = $(id);
  node.replaceChildren(el("h2", {}, name));
  draw(node);
  node.style.minHeight = "";
}
function work(which) {
  // do the jobs of which it is true; all are asked before any is done
  const now = jobs.filter(({ host }) => which(host));
  jobs = jobs.filter((job) => !now.includes(job));
  for (const { run } of now) run();
  return now.length;
}
function drawVisible() {
  for (const { id } of SECTIONS) if (waiting.has(id) && near($(id))) fill(id);
  if (work(near)) light();
}
function drawAll() {
  for (const { id } of SECTIONS) fill(id);
  work(always);
  light();
}
function drawNext() {
  // a little of the rest, so that a click is answered in between
  const end = performance.now() + 20;
  do {
    const [id] = waiting,
      [job] = jobs;
    if (job) work((host) => host === job.host);
    else if (id) fill(id);
  } while ((jobs.length || waiting.size) && performance.now() < end);
  const whole = !jobs.length && !waiting.size;
  if (whole) light();
  idle = whole ? 0 : setTimeout(drawNext, 10);
  document.documentElement.toggleAttribute("data-drawn", whole);
}
function clear() {
  // an empty section keeps its height, so that nothing jumps
  const heights = SECTIONS.map(({ id }) => ($(id).childElementCount ? $(id).offsetHeight : 0));
  SECTIONS.forEach(({ id }, i) => {
    if (heights[i]) $(id).style.minHeight = `${heights[i]}px`;
    $(id).replaceChildren();
  });
}
function draw({ everything = false, keep = false } = {}) {
  // keep: what is there stays until it is drawn anew
  const y = scrollY;
  clearTimeout(idle);
  jobs = [];
  untip();
  document.documentElement.removeAttribute("data-drawn");
  if (!keep) clear();
  legend();
  chips();
  alerts();
  contents();
  const some = matching().length > 0;
  $("none-match").hidden = some;
  $("none-drawn").hidden = !some || drawn().length > 0;
  for (const { id, there } of SECTIONS) {
    $(id).hidden = !some || !there();
    if ($(id).hidden) waiting.delete(id);
    else waiting.add(id);
  }
  if (everything) drawAll();
  else drawVisible();
  scrollTo(0, y);
  drawVisible();
  light();
  idle = setTimeout(drawNext, everything ? 0 : 10);
}

// --- start --------------------------------------------------------------------------------------------

for (const { id, name } of SECTIONS)
  $("sections").append(el("section", { id, tabindex: "-1", "aria-label": name, style: "min-height:300px" }));
const runCount = `${D.runs.length} ${D.runs.length === 1 ? "run" : "runs"}`,
  settingCount = `${D.groups.length} ${D.groups.length === 1 ? "setting" : "settings"}`;
$("lead").append(
  `${runCount} of ${settingCount}: `,
  el("bdi", {}, PLACES.length === 1 ? PLACES[0] : `${PLACES.length} scenarios`),
  `. Written by jioc ${D.version}.`,
);
$("lead").after(...D.left_out.map((text) => el("p", { class: "hint" }, text)));

const dark = matchMedia("(prefers-color-scheme: dark)");
let scheme = null; // what somebody chose
function theme(everything) {
  const now = scheme || (dark.matches ? "dark" : "light");
  clear(); // before every element would take its new colour
  document.documentElement.dataset.theme = now;
  $("theme").textContent = now === "dark" ? "Light" : "Dark";
  draw({ everything });
}
$("theme").addEventListener("click", () => {
  scheme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  theme();
});
dark.addEventListener("change", () => theme());
$("find").addEventListener("input", () => {
  search = $("find").value.trim();
  changed();
});
$("every").addEventListener("click", () => {
  picked = new Set([...(picked || []), ...matching()]);
  changed();
});
$("none").addEventListener("click", () => {
  picked = new Set();
  changed();
});
$("first").addEventListener("click", () => {
  picked = null;
  changed();
});
$("draw-first").addEventListener("click", () => {
  picked = null;
  changed();
});
$("clear").addEventListener("click", () => {
  search = "";
  wanted.forEach((values) => values.clear());
  picked = null;
  without.clear();
  changed();
});
$("csv").addEventListener("click", () => save("data.csv", "text/csv", dataCsv()));
$("json").addEventListener("click", () => save("data.json", "application/json", dataJson()));
addEventListener("keydown", (event) => {
  const typing =
    /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName) &&
    document.activeElement.type !== "checkbox";
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    $("drawer").open = true;
    $("find").focus();
  }
  if (event.key === "Escape") {
    untip();
    if (focus) toggle(focus.g, focus.r);
  }
});
addEventListener(
  "scroll",
  () => {
    untip();
    if (waiting.size || jobs.length) drawVisible();
  },
  { passive: true },
);
addEventListener("hashchange", () => {
  recall();
  draw();
  if (place) go(place);
});
let wide = innerWidth;
let resized = 0;
addEventListener("resize", () => {
  if (innerWidth === wide) return;
  wide = innerWidth;
  clearTimeout(resized);
  resized = setTimeout(() => draw({ everything: true, keep: true }), 100); // whole, so that none is blank
});
let before = null;
addEventListener("beforeprint", () => {
  before = scheme;
  scheme = "light";
  document.documentElement.classList.add("printing");
  theme(true);
});
addEventListener("afterprint", () => {
  scheme = before;
  document.documentElement.classList.remove("printing");
  theme();
});
const current = new IntersectionObserver(
  () => {
    const top = SECTIONS.filter(
      ({ id }) => !$(id).hidden && $(id).getBoundingClientRect().top < innerHeight / 3,
    ).pop();
    for (const link of $("contents").children)
      link.toggleAttribute("aria-current", !!top && link.hash === `#at=${top.id}`);
  },
  { rootMargin: "-33% 0px -66% 0px" },
);
for (const { id } of SECTIONS) current.observe($(id));
if (innerWidth <= 960) $("drawer").open = false;
recall();
theme();
if (place) go(place);
