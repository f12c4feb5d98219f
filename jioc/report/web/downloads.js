// --- downloads ----------------------------------------------------------------------------------------

function save(name, type, content) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = el("a", { href: address, download: `jioc-${name}` });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

// --- data ---------------------------------------------------------------------------------------------

function csvCell(value) {
  // text that a spreadsheet would compute begins with '
  if (!known(value)) return "";
  if (typeof value === "number") return String(value);
  const plain = /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\n\r]/.test(plain) ? `"${plain.replace(/"/g, '""')}"` : plain;
}
const csvText = (rows) => rows.map((row) => row.map(csvCell).join(",")).join("\r\n") + "\r\n";
function tableCsv(heads, bodies) {
  const rows = bodies.flatMap((body) =>
    body.rows.map((row) => [
      body.name,
      ...row.cells.flatMap((cell) => ("std" in cell ? [cell.value, cell.std] : [cell.value])),
    ]),
  );
  const first = bodies[0].rows[0].cells;
  return csvText([
    ["setting", ...heads.flatMap((h, i) => ("std" in first[i] ? [h.text, `${h.text} std`] : [h.text]))],
    ...rows,
  ]);
}
function dataCsv() {
  // a line for each run, task and read-out that the filter lets through
  const heads = [
    "run",
    "setting",
    "method",
    "coordination",
    "seed",
    "folder",
    "finished",
    "task",
    "classes seen",
    "read-out",
    "all",
    "old",
    "new",
  ];
  const rows = matching().flatMap((g) =>
    counted(g).flatMap(({ run }) =>
      Object.keys(run.readouts).flatMap((name) => {
        const { name: label, place: where, method, coordinate } = D.groups[g],
          of = run.readouts[name];
        const about = [label, where, method, coordinate, run.name, run.path, run.complete ? "yes" : "no"];
        return run.seen.map((seen, t) => [...about, t + 1, seen, name, of.all[t], of.old[t], of.new[t]]);
      }),
    ),
  );
  return csvText([heads, ...rows]);
}
function dataJson() {
  // everything that the page holds of the runs that the filter lets through
  const groups = matching(),
    runs = groups.flatMap((g) => counted(g).map(({ run }) => ({ ...run, group: groups.indexOf(g) })));
  const about = groups.map((g) => ({
    ...D.groups[g],
    base: groups.includes(D.groups[g].base) ? groups.indexOf(D.groups[g].base) : null,
  }));
  return JSON.stringify({ version: D.version, groups: about, runs, scenarios: D.scenarios });
}

// --- a figure as it stands, as SVG with its looks in it -----------------------------------------------

const LOOKS = [
  "fill",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "stroke-linecap",
  "stroke-linejoin",
  "opacity",
  "font-size",
  "font-family",
  "font-weight",
  "text-anchor",
  "image-rendering",
];
const USUAL = {
  "stroke-dasharray": "none",
  opacity: "1",
  "font-weight": "400",
  "stroke-linecap": "butt",
  "stroke-linejoin": "miter",
  "image-rendering": "auto",
  "text-anchor": "start",
  stroke: "none",
};
function inlined(node) {
  // a copy that needs no style sheet; what only the pointer needs is left out
  if (node.nodeType === Node.TEXT_NODE) return document.createTextNode(node.data);
  if (node.classList.contains("hit") || node.getAttribute("visibility") === "hidden") return null;
  const copy = document.createElementNS(SVG, node.tagName),
    style = getComputedStyle(node);
  for (const { name, value } of node.attributes) {
    if (!/^(class|style|role|tabindex|data-|aria-)/.test(name)) copy.setAttribute(name, value);
  }
  const letters = node.tagName === "text";
  if (node.tagName !== "svg" && node.tagName !== "g")
    for (const name of LOOKS) {
      if (/^(font|text)/.test(name) !== letters && /^(font|text|stroke)/.test(name)) continue;
      const value = style.getPropertyValue(name);
      if (value && value !== USUAL[name]) copy.setAttribute(name, value);
    }
  if (node.tagName === "g") copy.setAttribute("opacity", style.opacity);
  for (const child of node.childNodes) {
    const one = inlined(child);
    if (one) copy.append(one);
  }
  return copy;
}
function figureSvg(node) {
  const box = node.getBoundingClientRect(),
    parts = [...node.querySelectorAll("svg")],
    gap = 12;
  const words = [...node.querySelectorAll("h3, .panel > .name bdi, .facet bdi, .key .name, p.key")];
  const root = sv("svg", { width: Math.ceil(box.width + 2 * gap), height: Math.ceil(box.height + 2 * gap) });
  root.setAttribute("xmlns", SVG);
  root.append(sv("title", {}, node.querySelector("h3").textContent));
  root.append(sv("rect", { width: "100%", height: "100%", fill: css("--paper") }));
  const at = (one) => {
    const r = one.getBoundingClientRect();
    return { x: r.left - box.left + gap, y: r.top - box.top + gap, width: r.width, height: r.height };
  };
  for (const part of parts) {
    const copy = inlined(part);
    for (const [name, value] of Object.entries(at(part))) copy.setAttribute(name, value);
    root.append(copy);
  }
  for (const one of words) {
    const { x, y, height } = at(one),
      style = getComputedStyle(one),
      size = parseFloat(style.fontSize);
    const look = {
      fill: style.color,
      "font-size": size,
      "font-family": style.fontFamily,
      "font-weight": style.fontWeight,
    };
    root.append(
      sv("text", { x, y: y + Math.min(height, 1.5 * size) / 2 + 0.35 * size, ...look }, one.textContent),
    );
  }
  return root;
}
const slug = (name) =>
  name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "") || "figure";
function saveSvg(node, name) {
  save(`${slug(name)}.svg`, "image/svg+xml", new XMLSerializer().serializeToString(figureSvg(node)));
}
function savePng(node, name) {
  const root = figureSvg(node),
    scale = 2,
    image = new Image();
  image.addEventListener("load", () => {
    const sheet = el("canvas", {
      width: scale * root.getAttribute("width"),
      height: scale * root.getAttribute("height"),
    });
    sheet.getContext("2d").drawImage(image, 0, 0, sheet.width, sheet.height);
    sheet.toBlob((blob) => save(`${slug(name)}.png`, "image/png", blob));
  });
  image.src =
    "data:image/svg+xml;charset=utf-8," + encodeURIComponent(new XMLSerializer().serializeToString(root));
}
function saveButtons(name) {
  const of = (event) => event.target.closest("figure");
  return el(
    "span",
    { class: "saves" },
    button("SVG", { class: "save", "aria-label": `save ${name} as SVG` }, (event) =>
      saveSvg(of(event), name),
    ),
    button("PNG", { class: "save", "aria-label": `save ${name} as PNG` }, (event) =>
      savePng(of(event), name),
    ),
  );
}
