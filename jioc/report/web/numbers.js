// --- numbers ------------------------------------------------------------------------------------------

const known = (v) => v !== null && v !== undefined;
const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
function std(values) {
  if (values.length < 2) return null;
  const m = mean(values);
  return Math.sqrt(values.reduce((a, v) => a + (v - m) ** 2, 0) / (values.length - 1));
}
const even = (a, digits) => {
  // a tie goes to the even digit, as in jioc table; toFixed would round it up
  if ((a * 2 ** (digits + 1)) % 2 !== 1) return a.toFixed(digits);
  const below = a * 10 ** digits - 0.5;
  return ((below % 2 ? below + 1 : below) / 10 ** digits).toFixed(digits);
};
const fixed = (digits, sign) => (v) => {
  // of the number itself; toLocaleString rounds what it would print
  if (!known(v)) return "–";
  const [whole, part] = even(Math.abs(v), digits).split(".");
  return (v < 0 ? "−" : sign ? "+" : "") + whole.replace(/\B(?=(\d{3})+$)/g, ",") + (part ? `.${part}` : "");
};
const percent = fixed(2),
  gained = fixed(2, true),
  small = fixed(3),
  whole = fixed(0);
function withStd(values, form) {
  if (!values.length) return "–";
  return form(mean(values)) + (values.length > 1 ? ` ± ${percent(std(values))}` : "");
}
function duration(s) {
  return s < 120 ? `${fixed(1)(s)} s` : s < 7200 ? `${fixed(1)(s / 60)} min` : `${fixed(1)(s / 3600)} h`;
}

function bounds(values) {
  // spread arguments have a limit; twenty runs of 200 classes do not
  let low = Infinity,
    high = -Infinity;
  for (const v of values) {
    if (v < low) low = v;
    if (v > high) high = v;
  }
  return [low, high];
}
function ticks(low, high, about) {
  const span = high - low || 1,
    raw = span / about,
    power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
  const out = [],
    most = 10 * about; // a step may be too small to change a large number
  for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + step * 1e-6 && out.length < most; v += step) {
    out.push(Math.abs(v) < step * 1e-6 ? 0 : v);
  }
  return out;
}
function tickText(v, all) {
  const step = all.length > 1 ? Math.abs(all[1] - all[0]) : Math.abs(v) || 1;
  const power = Math.floor(Math.log10(step) + 1e-9);
  const quarter = String(step / 10 ** power).startsWith("2.5") ? 1 : 0;
  return fixed(Math.max(0, Math.min(6, quarter - power)))(v);
}
function domain(values, { from = null, to = null } = {}) {
  // whole steps that hold all values
  const all = values.filter(known);
  if (!all.length) return [0, 1];
  let [low, high] = bounds(all);
  if (from !== null) low = Math.min(low, from);
  if (high === low) {
    high += Math.abs(high) * 0.1 || 1;
    low -= from === null ? Math.abs(low) * 0.1 || 1 : 0;
  }
  const step = ticks(low, high, 4),
    size = step.length > 1 ? step[1] - step[0] : high - low;
  low = Math.floor(low / size + 1e-9) * size;
  high = Math.ceil(high / size - 1e-9) * size;
  return [low, to === null ? high : Math.min(high, to)];
}
function decades([low, high]) {
  // 1, 2, 5, 10, 20, ...
  const out = [];
  for (let p = Math.floor(Math.log10(low)); p <= Math.log10(high); p++) {
    for (const m of [1, 2, 5]) {
      const v = m * 10 ** p;
      if (v >= low * 0.999 && v <= high * 1.001) out.push(v);
    }
  }
  return out;
}
const clip = (v, [low, high]) => Math.max(low, Math.min(high, v));
function few(values, about) {
  // so many of them, the last among them
  const all = [...new Set(values)].sort((a, b) => a - b),
    by = Math.ceil(all.length / about);
  return all.filter((_, i) => (all.length - 1 - i) % by === 0);
}
const range = (n) => Array.from({ length: n }, (_, i) => i);
