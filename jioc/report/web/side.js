// --- the list of runs: what the filter lets through, with ticks for what is drawn ---------------------

function tick(on, label, act) {
  const box = el("input", {
    type: "checkbox",
    "aria-label": label,
    onchange: act,
    onclick: (event) => event.stopPropagation(),
  });
  box.checked = on;
  return box;
}
function pick(g, on) {
  // draw a setting, or draw it no more
  picked = new Set(drawn());
  if (on) {
    picked.add(g);
    for (const { r } of RUNS[g]) if (!counted(g).length) without.delete(r);
  } else picked.delete(g);
  changed();
}
function leaveOut(r, out) {
  if (out) without.add(r);
  else without.delete(r);
  changed();
}
function toggle(g, r) {
  focus = focus && focus.g === g && focus.r === r ? null : { g, r };
  remember();
  legend();
  light();
}
function light() {
  for (const node of document.querySelectorAll("#main [data-g]")) {
    const mine = !focus || +node.dataset.g === focus.g,
      row = node.tagName === "TR",
      one = row && node.dataset.r !== undefined;
    node.classList.toggle("dim", !mine && !row);
    node.classList.toggle(
      "focus",
      !!focus && row && mine && (focus.r === null || !one || +node.dataset.r === focus.r),
    );
  }
  for (const node of document.querySelectorAll("#main .one")) {
    node.classList.toggle("lit", !!focus && focus.r !== null && +node.dataset.r === focus.r);
  }
}

const opened = new Set(); // settings whose seeds are listed
function entry(g) {
  const group = D.groups[g],
    all = RUNS[g],
    on = counted(g).length,
    shown = drawn().includes(g);
  const here = focus && focus.g === g,
    marked = (r) => (here && focus.r === r ? " focus" : "");
  const line = el(
    "div",
    { class: "line" + (shown ? "" : " off") + marked(null) },
    tick(shown, `draw ${group.label}`, () => pick(g, !shown)),
    swatch(g),
    button(el("bdi", {}, group.name), { class: "name", title: group.label }, () => toggle(g, null)),
  );
  const node = el("li", { "data-g": g }, line);
  if (all.length < 2) return node;
  const fold = () => {
    opened.has(g) ? opened.delete(g) : opened.add(g);
    legend();
  };
  line.append(
    button(
      `${on}/${all.length}`,
      {
        class: "fold",
        "aria-expanded": opened.has(g),
        "aria-label": `seeds of ${group.label}: ${on} of ${all.length} count`,
      },
      fold,
    ),
  );
  if (opened.has(g))
    node.append(
      el(
        "ul",
        {},
        all.map(({ run, r }) =>
          el(
            "li",
            {},
            el(
              "div",
              { class: "line" + marked(r) },
              tick(!without.has(r), `count ${group.label}, ${run.name}`, () => leaveOut(r, !without.has(r))),
              button(run.name + (run.complete ? "" : ", unfinished"), { class: "name" }, () => toggle(g, r)),
            ),
          ),
        ),
      ),
    );
  return node;
}
function legend() {
  const held = document.activeElement && document.activeElement.getAttribute("aria-label"),
    inside = $("legend").contains(document.activeElement);
  const places = inPlaces(matching());
  $("legend").replaceChildren(
    ...places.map(({ groups }) =>
      el(
        "li",
        { class: "at" },
        PLACES.length > 1 ? el("h3", {}, el("bdi", {}, placeTitle(groups))) : null,
        el("ul", { class: "runs" }, groups.map(entry)),
      ),
    ),
  );
  $("chosen").textContent = `${drawn().length} of ${matching().length} drawn`;
  if (inside && held)
    for (const node of $("legend").querySelectorAll("[aria-label]"))
      if (node.getAttribute("aria-label") === held) node.focus();
}

// --- the filter ---------------------------------------------------------------------------------------

function chips() {
  const varying = D.facets.map((name, f) => ({ name, f })).filter(({ f }) => VALUES[f].length > 1);
  $("chips").replaceChildren(
    ...varying.map(({ name, f }) =>
      el(
        "fieldset",
        {},
        el("legend", {}, name),
        VALUES[f].map((value) => {
          const on = wanted[f].has(value),
            press = () => {
              on ? wanted[f].delete(value) : wanted[f].add(value);
              changed();
            };
          return button(
            el("bdi", {}, value || "none"),
            { class: "chip", "aria-pressed": on, "data-facet": facetKey(f), "data-value": value },
            press,
          );
        }),
      ),
    ),
  );
  $("clear").hidden = !search && !wanted.some((values) => values.size) && picked === null && !without.size;
  if ($("find").value.trim() !== search) $("find").value = search;
}

// --- alerts -------------------------------------------------------------------------------------------

function alerts() {
  const here = D.alerts.filter(
    (one) =>
      matching().includes(one.group) &&
      one.runs.some((i) => RUNS[one.group][i] && !without.has(RUNS[one.group][i].r)),
  );
  const seeds = ({ group, runs }) =>
    runs.length === RUNS[group].length && runs.length > 1
      ? "all seeds"
      : runs.map((i) => RUNS[group][i].run.name).join(", ");
  const line = (one) =>
    el(
      "li",
      {},
      button([swatch(one.group), el("bdi", {}, D.groups[one.group].label)], { class: "name" }, () =>
        toggle(one.group, null),
      ),
      el("span", {}, ` (${seeds(one)}): ${one.text}.`),
    );
  const box = $("alerts");
  box.hidden = !here.length;
  const few = here.length <= 4,
    list = el("ul", {}, here.map(line));
  const head = el("summary", {}, `${here.length} ${here.length === 1 ? "alert" : "alerts"}`);
  const before = box.querySelector("details"),
    open = before ? before.open : few;
  box.replaceChildren(el("details", open ? { open: "" } : {}, head, list));
}

// --- contents -----------------------------------------------------------------------------------------

function contents() {
  $("contents").replaceChildren(
    ...SECTIONS.filter((one) => one.there()).map(({ id, short }) =>
      el(
        "a",
        {
          href: `#at=${id}`,
          onclick: (event) => {
            event.preventDefault();
            go(id);
          },
        },
        short,
      ),
    ),
  );
}
function go(id) {
  const node = $(id);
  if (!node || !SECTIONS.some((one) => one.id === id)) return;
  drawAll(); // what is yet to be drawn has not its height, and the place would move
  place = id;
  remember();
  node.scrollIntoView();
  node.focus({ preventScroll: true });
}
