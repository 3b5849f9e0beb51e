// run.js: the log of a training: loss, loss scale, skipped steps, faults, and how large the numbers of tensors are.

const runLines = parts.run || [];
const runSteps = runLines.filter((line) => "iteration" in line);
const runFaults = runLines.filter((line) => "traced" in line);
const runStats = runLines.filter((line) => "stats" in line).pop();

// NaN and infinities are strings in a log.
const numberOf = (value) => (typeof value === "string" ? Number(value.replace("inf", "Infinity")) : value);

// A point for each step; values that are not finite leave a gap.
function curvePath(values, place) {
  let path = "", isDrawing = false;
  values.forEach((value, at) => {
    if (Number.isFinite(value)) path += `${isDrawing ? "L" : "M"}${at + 0.5},${place(value).toFixed(2)}${isDrawing ? "" : "h0"}`;
    isDrawing = Number.isFinite(value);
  });
  return svg("path", { d: path });
}

// |marks|: steps that are marked at the lower edge.
function drawCurve(label, values, { marks = [], ...axisOf }, point) {
  const finite = values.filter(Number.isFinite);
  if (!finite.length) return { figure: note(`${label}: no number is finite.`), move: () => {} };
  const axis = makeAxis(finite, axisOf), count = values.length, from = runSteps[0].iteration;
  const placeOf = (number) => runSteps.findIndex((step) => step.iteration === number);
  return makeChart({
    label, about: `${label} over ${plural(count, "step")}`, count, axis, point, columnWord: "iteration",
    columns: columnTicks(from, runSteps[count - 1].iteration, placeOf, count),
    shapes: [curvePath(values, axis.place), marks.map((at) => svg("line", { class: "at", x1: at + 0.5, x2: at + 0.5, y1: 94, y2: 100 }))],
  });
}

// The loss on a logarithmic axis if it falls, or jumps, to a hundredth of its largest or less.
function drawCurves() {
  const losses = runSteps.map((step) => numberOf(step.loss)), finite = losses.filter(Number.isFinite);
  const least = Math.min(...finite), isLog = least > 0 && Math.max(...finite) > 100 * least;
  const skipped = runSteps.flatMap((step, at) => (step.skipped ? [at] : []));
  const slider = el("input", { type: "range", class: "wide", min: 0, max: runSteps.length - 1, "aria-label": "Iteration" });
  const words = el("p", { "aria-live": "polite" });
  const charts = [
    drawCurve(`Loss${isLog ? ", logarithmic" : ""}${skipped.length ? "; red: skipped steps" : ""}`, losses,
      { isLog, marks: skipped }, show),
    drawCurve("Loss scale", runSteps.map((step) => Math.log2(numberOf(step.scale))),
      { wholeSteps: true, text: (power) => (2 ** power).toLocaleString("en") }, show),
  ];
  function show(at) {
    const step = runSteps[at];
    slider.value = at;
    slider.setAttribute("aria-valuetext", `iteration ${step.iteration}`);
    words.textContent = `Iteration ${step.iteration}: loss ${typeof step.loss === "string" ? step.loss : shortNumber(step.loss)}, ` +
      `loss scale ${Number(numberOf(step.scale)).toLocaleString("en")}${step.skipped ? "; skipped" : ""}.`;
    for (const chart of charts) chart.move(at);
  }
  slider.addEventListener("input", () => show(Number(slider.value)));
  show(runSteps.length - 1);
  return [el("div", { class: "charts" }, charts.map((chart) => chart.figure)), slider, words];
}

// Those of one op and one kind are one item.
function faultItem(lines) {
  const [line] = lines, last = lines[lines.length - 1];
  const when = lines.length === 1 ? `Iteration ${line.traced}` : `${plural(lines.length, "iteration")}, ${line.traced} to ${last.traced}`;
  const expected = line.expected ? "; too large at this loss scale alone, and skipped as it should be" : "";
  const mend = lines.map((one) => one.mend).find((paths) => paths && paths.length);
  return el("li", {}, `${when}: ${line.fault} `, line.path ? opLink(line.decided || line.path) : "",
    line.file ? ` ${line.file}:${line.line}` : "", expected,
    mend ? el("div", {}, "In the precision block: ", el("code", {}, mend.map((path) => `"${path}": f32`).join(", "))) : null,
    lines.length > 1 ? el("details", {}, el("summary", {}, "Each"), lines.map((one) => one.traced).join(", ")) : null);
}

const faultGroups = () => [...groupBy(runFaults, (line) =>
  [line.fault, line.path, line.decided, line.file, line.line, line.expected].join()).values()];

// ---- tensors

const shareOf = (part, tensor) => (tensor.count ? (100 * part) / tensor.count : 0);
const shareCell = (share) => `${share.toFixed(3)} %`;

// A bar for each exponent; the vertical lines are the ends of f16's range.
function drawExponents(tensor) {
  const { from, counts } = tensor.exponents, most = Math.max(1, ...counts), low = -48, high = 24;
  const bars = counts.map((count, i) => svg("rect", {
    x: Math.max(0, from + i - low), y: 20 - (20 * count) / most, width: 1, height: (20 * count) / most,
  }));
  const end = (exponent) => svg("line", { class: "at", x1: exponent - low, x2: exponent - low, y1: 0, y2: 20 });
  return svg("svg", { class: "exponents", viewBox: `0 0 ${high - low} 20`, preserveAspectRatio: "none", "aria-hidden": "true" },
    bars, end(-24), end(16));
}

function addExponents(tensors) {
  const from = Math.min(...tensors.map((t) => t.exponents.from));
  const to = Math.max(...tensors.map((t) => t.exponents.from + t.exponents.counts.length));
  const counts = new Array(to - from).fill(0);
  for (const { exponents } of tensors) exponents.counts.forEach((n, i) => { counts[exponents.from - from + i] += n; });
  return { from, counts };
}

const foldTensors = {
  key: (tensor) => `${pathKey(tensor.name)} ${tensor.dtype}`,
  merge: (tensors) => {
    const sum = (value) => tensors.reduce((all, tensor) => all + (value(tensor) || 0), 0);
    return {
      name: `${patternOf(tensors.map((tensor) => tensor.name))}, ${plural(tensors.length, "tensor")}`,
      count: sum((t) => t.count), infinities: sum((t) => t.infinities), nans: sum((t) => t.nans),
      largest: Math.max(...tensors.map((tensor) => numberOf(tensor.largest))), exponents: addExponents(tensors),
      f16: { flushed: sum((t) => t.f16.flushed), overflow: sum((t) => t.f16.overflow) },
    };
  },
};

// The op that made it: by its path, else the last one of its kernel.
function opOfTensor(name) {
  for (let path = name; path; path = path.slice(0, Math.max(0, path.lastIndexOf("."))))
    if (opByPath.has(path)) return path;
  for (const { program, number, ops } of kernels)
    if (program.buffers.some((buffer) => buffer.value === name && buffer.first === number))
      return ops.map(forwardPath).filter((path) => opByPath.has(path)).pop();
  return undefined;
}

const brokenShare = (tensor) => shareOf((tensor.infinities || 0) + (tensor.nans || 0), tensor);
const chooseTensor = (tensor) => {
  const path = opOfTensor(tensor.name);
  if (path) chooseOp(path);
};

const lostColumn = (title, type, what) => ({
  title, number: true, value: (tensor) => shareOf(tensor[type][what], tensor),
  cell: (tensor) => shareCell(shareOf(tensor[type][what], tensor)),
});

const tensorColumns = [
  { title: "Tensor", grows: true, value: (tensor) => tensor.name, cell: (tensor) => pathText(tensor.name) },
  { title: "Type", value: (tensor) => tensor.dtype, cell: (tensor) => dtypeMark(tensor.dtype) },
  { title: "Largest", number: true, value: (tensor) => numberOf(tensor.largest),
    cell: (tensor) => shortNumber(numberOf(tensor.largest)) },
  { title: "Not finite", number: true, value: brokenShare,
    cell: (tensor) => (brokenShare(tensor) ? el("strong", { class: "broken" }, shareCell(brokenShare(tensor))) : shareCell(0)) },
  lostColumn("f16: zero", "f16", "flushed"),
  lostColumn("f16: infinite", "f16", "overflow"),
  { title: "Exponents", width: 150, value: (tensor) => tensor.exponents.from, cell: drawExponents },
];

// ---- the view

function drawRun(panel) {
  if (!runSteps.length) {
    panel.append(note("The report was made without the log of a training: --log FILE names what amprun train --log wrote."));
    return null;
  }
  const last = runSteps[runSteps.length - 1], skipped = runSteps.filter((step) => step.skipped).length;
  panel.append(
    el("p", {}, `${last.iteration} iterations, ${last.step} updates; of ${plural(runSteps.length, "step")} here ${skipped} skipped.`),
    ...drawCurves());
  if (runFaults.length)
    panel.append(el("h2", {}, "Not finite"), el("ul", { class: "findings" }, faultGroups().map(faultItem)));
  if (!runStats) {
    panel.append(note("The log has no statistics of tensors: amprun train --stats EVERY."));
    return null;
  }
  const told = note(`Tensors of iteration ${runStats.stats}, at a loss scale of ${runStats.scale.toLocaleString("en")}. ` +
    "Exponents: a bar for each power of 2 from -48 to 24; red lines: the ends of f16.");
  return drawTable(panel, [told], {
    label: "Tensors", columns: tensorColumns, rows: [...runStats.tensors].sort((a, b) => b.f16.flushed / b.count - a.f16.flushed / a.count),
    sortBy: 3, descending: true, searchText: (tensor) => `${tensor.name} ${tensor.dtype}`, choose: chooseTensor,
    fold: foldTensors,
  });
}
