// --- sections, figures, tables ------------------------------------------------------------------------

const say = (text) => el("p", { class: "say" }, text);
function figure(parent, name, text, least) {
  const panels = el("div", { class: "panels", style: least ? `--least:${least}px` : null });
  const node = el(
    "figure",
    {},
    el("figcaption", {}, el("h3", {}, name), saveButtons(name), say(text)),
    panels,
  );
  parent.append(node);
  return panels;
}
function panel(panels, name) {
  const node = el("div", { class: "panel" }, name ? el("div", { class: "name" }, el("bdi", {}, name)) : null);
  panels.append(node);
  return node;
}
function groupPanel(panels, g) {
  const { name, label: long } = D.groups[g],
    text = inPlaces(drawn()).length > 1 ? long : name;
  const label = button([swatch(g), el("bdi", {}, text)], { class: "name" }, () => toggle(g, null));
  const node = el("div", { class: "panel", "data-g": g }, label);
  panels.append(node);
  return node;
}
function byPlace(panels, columns, has, draw) {
  // Panels for each place: draw(groups, add), of the settings with a run of which has(run) is true.
  // columns: how many panels a place has.
  const shown = drawn().filter((g) => counted(g).some(({ run }) => has(run))),
    places = inPlaces(shown);
  if (places.length > 1) panels.classList.add("facets");
  for (const { groups } of places) {
    const row =
      places.length > 1
        ? el("div", { class: "panels", style: `--least:${columns > 2 ? 240 : 280}px` })
        : panels;
    if (row !== panels) panels.append(el("h4", { class: "facet" }, el("bdi", {}, placeTitle(groups))), row);
    draw(groups, (name) => panel(row, name));
  }
  key(panels, shown);
}
function key(panels, groups) {
  // which line is whose; of many lines, what hue and dash tell
  if (groups.length > 12) {
    panels.after(
      el(
        "p",
        { class: "hint key" },
        "Hue tells the method, dash the coordination; the list of runs names each line.",
      ),
    );
    return;
  }
  const once = new Map(
    groups.map((g) => [D.groups[g].name + D.groups[g].hue + D.groups[g].mark + D.groups[g].dash, g]),
  );
  panels.after(
    el(
      "ul",
      { class: "key" },
      [...once.values()].map((g) =>
        el("li", { "data-g": g }, swatch(g), el("bdi", { class: "name" }, D.groups[g].name)),
      ),
    ),
  );
}

function table(id, heads, rows, { caption, slim } = {}) {
  // heads: {text, words, wide}; rows: {g, r, cells}; a cell: {show, value, std}.
  // Rows of a place stay together.
  const sort = sorts[id],
    column = heads.findIndex((h) => sort && h.text === sort.column);
  const order = (a, b) => {
    const [x, y] = [a, b].map((row) => row.cells[column].value);
    if (!known(x) || !known(y)) return known(y) - known(x);
    return (
      (sort.down ? -1 : 1) * (typeof x === "string" ? x.localeCompare(y, "en", { numeric: true }) : x - y)
    );
  };
  const bodies = inPlaces(matching())
    .map(({ name, groups }) => {
      const some = rows.filter((row) => groups.includes(row.g));
      return { name, title: placeTitle(groups), rows: column < 0 ? some : some.slice().sort(order) };
    })
    .filter((body) => body.rows.length);
  const kinds = heads.map((h) => [h.words ? "words" : "", h.wide ? "wide" : ""].join(" ").trim() || null);
  const head = (h, i) => {
    const way = i !== column ? null : sort.down ? "descending" : "ascending";
    const press = () => {
      sorts[id] = { column: h.text, down: way === null ? !h.words : way === "ascending" };
      changed();
      document.querySelector(`table[data-table="${id}"] th:nth-child(${i + 1}) button`).focus();
    };
    const about = { class: kinds[i], scope: "col", "aria-sort": way };
    if (printing()) return el("th", about, h.text); // a head with buttons is not repeated on the next sheet
    return el("th", about, button(h.text, { class: "sort", title: "sort by this" }, press));
  };
  const line = (row) =>
    el(
      "tr",
      { "data-g": row.g, "data-r": row.r, onclick: () => toggle(row.g, known(row.r) ? row.r : null) },
      row.cells.map((cell, i) =>
        el("td", { class: kinds[i], dir: heads[i].words ? "auto" : null }, cell.show),
      ),
    );
  const parted = bodies.length > 1;
  const body = ({ title: text, rows: some }) =>
    el(
      "tbody",
      {},
      parted
        ? el(
            "tr",
            { class: "place" },
            el("th", { colspan: heads.length, scope: "rowgroup" }, el("bdi", {}, text)),
          )
        : null,
      some.map(line),
    );
  const whole = el(
    "table",
    { class: slim ? "slim" : null, "data-table": id },
    caption ? el("caption", { dir: "auto" }, caption) : null,
    el("thead", {}, el("tr", {}, heads.map(head))),
    bodies.map(body),
  );
  const csv = () => save(`${id}.csv`, "text/csv", tableCsv(heads, bodies));
  return scrolled(whole, id, button("csv", { class: "save", title: "the table's figures, unrounded" }, csv));
}
function scrolled(inner, name, ...acts) {
  // with a shadow at the side where more is to be seen
  const view = el(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": `table: ${name}` },
    inner,
  );
  const cue = el("div", { class: "cue", "aria-hidden": "true" }, "more →");
  const box = el("div", { class: "tablebox" }, el("div", { class: "saves" }, acts), view, cue);
  const look = () => {
    box.classList.toggle("more", view.scrollLeft + view.clientWidth < view.scrollWidth - 2);
    box.classList.toggle("less", view.scrollLeft > 2);
  };
  view.addEventListener("scroll", look, { passive: true });
  jobs.push({ host: box, run: look });
  return box;
}
const text = (show, value = show) => ({ show, value });
function spread(values, form, after = "") {
  // a cell: mean ± deviation
  if (!values.length) return { show: "–", value: null, std: null };
  const deviation = std(values),
    more = deviation === null ? null : el("span", { class: "pm" }, ` ± ${percent(deviation)}`);
  return { show: [form(mean(values)), more, after], value: mean(values), std: deviation };
}
function nameCell(g, label, r = null) {
  // a name that can be highlighted
  const press = (event) => {
    event.stopPropagation();
    toggle(g, r);
  };
  return {
    show: el("span", { class: "who" }, swatch(g), button(el("bdi", {}, label), { class: "name" }, press)),
    value: label,
  };
}
