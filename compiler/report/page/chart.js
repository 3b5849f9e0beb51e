// chart.js: a curve with axes, values and a cursor.  The drawing is stretched to its frame; words beside it are not.

// 1, 2 or 5 times a power of 10, for about |count| steps.
function stepOf(span, count, least = 0) {
  const power = 10 ** Math.floor(Math.log10(span / count || 1));
  return Math.max(least, power * ([1, 2, 5].find((factor) => span / (factor * power) <= count) || 10));
}

const shortNumber = (value) => (value && (Math.abs(value) >= 1e6 || Math.abs(value) < 1e-3)
  ? value.toExponential(1).replace(".0", "") : String(Number(value.toPrecision(4))));

// From the tick below the least value to that above the most.  place(value): from 0, the upper edge, to 100.
function makeAxis(values, { least = Infinity, wholeSteps = false, isLog = false, text = shortNumber }) {
  const of = isLog ? Math.log10 : (value) => value, back = isLog ? (value) => 10 ** value : (value) => value;
  const low = of(values.reduce((a, b) => Math.min(a, b), least)), high = of(values.reduce((a, b) => Math.max(a, b), -Infinity));
  const step = stepOf(high - low || Math.abs(high) / 2 || 1, 4, isLog || wholeSteps ? 1 : 0);
  let first = Math.floor(low / step + 1e-9), last = Math.ceil(high / step - 1e-9);
  if (first === last) first -= low ? 1 : 0, last += 1;
  const ticks = [], place = (value) => (100 * (last * step - of(value))) / ((last - first) * step);
  for (let i = first; i <= last; i++) ticks.push({ at: place(back(i * step)), text: text(back(i * step)) });
  return { ticks, place };
}

// Whole numbers along the lower edge.  placeOf(number): which of the |count| columns, or -1.
function columnTicks(first, last, placeOf, count) {
  const step = stepOf(last - first || 1, 6, 1), ticks = [];
  for (let number = Math.ceil(first / step) * step; number <= last; number += step)
    if (placeOf(number) >= 0) ticks.push({ at: (100 * (placeOf(number) + 0.5)) / count, text: number.toLocaleString("en") });
  return ticks;
}

// |shapes|: in a drawing of |count| x 100.  point(at): the pointer is on that column, and, if |byClick|, was pressed there.
// Gives the figure, and move(at), which puts the cursor there.
function makeChart({ label, about, count, axis, columns, columnWord, shapes, point, byClick = false }) {
  const cursor = el("div", { class: "cursor" });
  const lines = axis.ticks.map(({ at }) => svg("line", { class: "grid", x1: 0, x2: count, y1: at, y2: at }));
  const frame = el("div", { class: "frame" }, svg("svg", {
    viewBox: `0 0 ${count} 100`, preserveAspectRatio: "none", role: "img", "aria-label": about,
  }, lines, shapes), cursor);
  const onPointer = (event) => {
    const box = frame.getBoundingClientRect(), at = Math.floor(((event.clientX - box.left) / box.width) * count);
    point(Math.max(0, Math.min(count - 1, at)));
  };
  frame.addEventListener(byClick ? "click" : "pointermove", onPointer);
  const figure = el("figure", { class: "chart" }, el("figcaption", {}, label),
    el("div", { class: "values", "aria-hidden": "true" },
      el("span", { class: "widest" }, axis.ticks.reduce((a, b) => (a.text.length > b.text.length ? a : b)).text),
      axis.ticks.map(({ at, text }) => el("span", { style: `top: ${at}%` }, text))),
    frame,
    el("div", { class: "numbers", "aria-hidden": "true" },
      columns.map(({ at, text }) => el("span", { style: `left: ${at}%` }, text)), el("span", { class: "word" }, columnWord)));
  return { figure, move: (at) => { cursor.style.left = `${(100 * (at + 0.5)) / count}%`; } };
}
