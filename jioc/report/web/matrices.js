// --- matrices -----------------------------------------------------------------------------------------

function mix(a, b, t) {
  const parse = (c) => [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16)),
    x = parse(a),
    y = parse(b);
  return x.map((v, i) => Math.round(v + (y[i] - v) * t));
}
function heatColours() {
  // from 0 to 1 in 65 steps
  const [a, b, c] = ["--heat0", "--heat1", "--heat2"].map(css);
  return range(65).map((i) => (i < 32 ? mix(a, b, i / 32) : mix(b, c, i / 32 - 1)));
}
const readable = ([r, g, b]) => (0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#14171b" : "#ffffff");
function cut(name, most) {
  const letters = [...name.trim()];
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : letters.join("");
}

function pixels(rows, cols, value, steps) {
  // an image with a pixel for each cell
  const sheet = el("canvas", { width: cols, height: rows }),
    ink = sheet.getContext("2d");
  const image = ink.createImageData(cols, rows);
  for (let r = 0; r < rows; r++)
    for (let c = 0; c < cols; c++) {
      const v = value(r, c);
      if (v !== null) image.data.set([...steps[Math.round(64 * clip(v, [0, 1]))], 255], 4 * (r * cols + c));
    }
  ink.putImageData(image, 0, 0);
  return sheet.toDataURL();
}

function drawHeat(host, g, { rows, cols, value, text, told, xLabel, yLabel, label, seen, names }) {
  // value(r, c) from 0 to 1, or null for an empty cell. One pixel a cell, scaled up.
  // The names of classes stand beside it where a row is as high as a letter.
  const width = Math.max(220, Math.min(host.clientWidth || 300, 460)),
    top = 6;
  const room = Math.max(12, Math.min(18, Math.floor((width - 34 - 20 * cols) / 6.2)));
  const said = names && names.slice(0, rows).map((n) => cut(n, room));
  const long = said ? Math.max(...said.map((n) => [...n].length)) * 6.2 : 0,
    named = said && (width - 34 - long) / cols >= 11;
  const left = named ? 26 + long : 46,
    foot = named ? 28 + long : 42;
  const side = (width - left - 8) / cols,
    tall = Math.min(side, (width - left - 8) / rows),
    height = top + tall * rows + foot;
  const root = sv("svg", {
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": label,
    style: `max-width:${width}px`,
  });
  const steps = heatColours(),
    area = { x: left, y: top, width: side * cols, height: tall * rows };
  const look = { preserveAspectRatio: "none", style: "image-rendering:pixelated" };
  root.append(sv("image", { href: pixels(rows, cols, value, steps), ...area, ...look }));
  if (text && cols <= 10)
    for (let r = 0; r < rows; r++)
      for (let c = 0; c < cols; c++) {
        const v = value(r, c);
        if (v === null || text(r, c) === "") continue;
        const ink = readable(steps[Math.round(64 * Math.min(1, v))]);
        const style = `font-size:${Math.min(11, side * 0.36)}px;fill:${ink}`;
        const at = { x: left + side * (c + 0.5), y: top + tall * (r + 0.5) + 3.5 };
        root.append(sv("text", { ...at, "text-anchor": "middle", style }, text(r, c)));
      }
  root.append(sv("rect", { class: "frameline", ...area }));
  if (seen)
    for (const end of seen.slice(0, -1))
      root.append(
        sv("line", {
          class: "grid",
          x1: left + side * end,
          x2: left + side * end,
          y1: top,
          y2: top + tall * rows,
        }),
        sv("line", {
          class: "grid",
          x1: left,
          x2: left + side * cols,
          y1: top + tall * end,
          y2: top + tall * end,
        }),
      );
  heatLabels(root, { rows, cols, left, top, side, tall, height, said: named ? said : null });
  const xName = names && !named ? `${xLabel} (number in the order of learning)` : xLabel;
  const turned = `translate(11 ${top + (tall * rows) / 2}) rotate(-90)`;
  root.append(
    sv(
      "text",
      { class: "label", x: left + (side * cols) / 2, y: height - 8, "text-anchor": "middle" },
      xName,
    ),
    sv("text", { class: "label", transform: turned, "text-anchor": "middle" }, yLabel),
  );
  const hit = sv("rect", { class: "hit", ...area });
  const move = (px, py, show) => {
    const c = clip(Math.floor((px - left) / side), [0, cols - 1]),
      r = clip(Math.floor((py - top) / tall), [0, rows - 1]);
    if (value(r, c) === null) return untip();
    show(...told(r, c));
  };
  const centre = (r, c) => [left + side * (c + 0.5), top + tall * (r + 0.5)];
  const stops = () =>
    range(rows).flatMap((r) =>
      range(cols)
        .filter((c) => value(r, c) !== null)
        .map((c) => centre(r, c)),
    );
  watch(root, hit, { width, height, move, stops, act: () => toggle(g, null) });
  root.append(hit);
  host.append(root);
}
function heatLabels(root, { rows, cols, left, top, side, tall, said }) {
  // names of classes, or numbers
  const foot = top + tall * rows;
  if (said)
    return said.forEach((name, c) =>
      root.append(
        sv(
          "text",
          {
            class: "class",
            transform: `translate(${left + side * (c + 0.5) + 3.5} ${foot + 6}) rotate(-90)`,
            "text-anchor": "end",
          },
          name,
        ),
        sv(
          "text",
          { class: "class", x: left - 5, y: top + tall * (c + 0.5) + 3.5, "text-anchor": "end" },
          name,
        ),
      ),
    );
  const index = (n) => few(range(n), 10);
  for (const c of index(cols))
    root.append(sv("text", { x: left + side * (c + 0.5), y: foot + 15, "text-anchor": "middle" }, c + 1));
  for (const r of index(rows))
    root.append(sv("text", { x: left - 6, y: top + tall * (r + 0.5) + 4, "text-anchor": "end" }, r + 1));
}
const heat = soon(drawHeat);
