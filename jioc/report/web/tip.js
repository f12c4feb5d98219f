// --- the tip: what lies under the pointer or the arrow keys, beside its chart and never on it ---------

function tip(chart, at, head, items) {
  // chart: the box of the chart; at: the point that is told, both in pixels of the window
  const box = $("tip"),
    gap = 10,
    edge = 6;
  box.replaceChildren(el("div", { class: "head", dir: "auto" }, head), ...items);
  box.hidden = false;
  const { width, height } = box.getBoundingClientRect();
  const x = Math.max(edge, Math.min(at.x - width / 2, innerWidth - width - edge));
  const y = Math.max(edge, Math.min(at.y - height / 2, innerHeight - height - edge));
  const places = [
    { x: chart.right + gap, y },
    { x: chart.left - gap - width, y },
    { x, y: chart.bottom + gap },
    { x, y: chart.top - gap - height },
  ];
  const within = (p) =>
    p.x >= edge && p.y >= edge && p.x + width <= innerWidth - edge && p.y + height <= innerHeight - edge;
  // no room on any side: away from the point, at the edge of the window
  const last = { x, y: at.y > innerHeight / 2 ? edge : innerHeight - height - edge };
  const best = places.find(within) || last;
  box.style.left = `${best.x}px`;
  box.style.top = `${best.y}px`;
}
const untip = () => {
  $("tip").hidden = true;
};
function item(g, what, number, near) {
  const name = el(
    "span",
    { class: "what", dir: "auto" },
    g === null ? null : swatch(g),
    g === null ? "" : " ",
    what,
  );
  return el("div", { class: "item" + (near ? " near" : "") }, name, el("span", { class: "num" }, number));
}
const note = (text) => el("div", { class: "seeds" }, text);

function watch(root, hit, { width, height, move, stops, act }) {
  // Tell what lies at a point of a chart, for a pointer and for the arrow keys.
  // move(x, y, show): show(head, items) tells; stops(): the points that the keys step through; act(): Enter.
  const show = (x, y) => {
    const box = root.getBoundingClientRect();
    const at = { x: box.left + (x * box.width) / width, y: box.top + (y * box.height) / height };
    move(x, y, (head, items) => tip(box, at, head, items));
  };
  const point = (event) => {
    const box = root.getBoundingClientRect();
    show(((event.clientX - box.left) * width) / box.width, ((event.clientY - box.top) * height) / box.height);
  };
  const leave = () => {
    untip();
    root.dispatchEvent(new Event("leave"));
  };
  hit.addEventListener("pointermove", point);
  hit.addEventListener("pointerdown", point);
  hit.addEventListener("pointerleave", leave);
  if (act) hit.addEventListener("click", act);
  let here = null;
  root.setAttribute("tabindex", "0");
  root.addEventListener("blur", leave);
  root.addEventListener("keydown", (event) => {
    const way = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (event.key === "Enter" && here && act) act();
    if (!way || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    here = here ? step(stops(), here, way) : stops()[0];
    if (here) show(...here);
  });
}
function step(points, [x, y], [right, down]) {
  // the nearest point that way: across first, then along
  let best = [x, y],
    least = Infinity;
  for (const [px, py] of points) {
    const dx = px - x,
      dy = py - y;
    if (right ? dx * right < 0.5 : dy * down < 0.5) continue;
    const cost = 1000 * Math.abs(dx) + Math.abs(dy);
    if (cost < least) {
      least = cost;
      best = [px, py];
    }
  }
  return best;
}
