// run.js: the log of a training: loss, loss scale, skipped steps, faults, and how large the numbers of tensors are.

const runLines = parts.run || [];
const runSteps = runLines.filter((line) => "iteration" in line);
const runFaults = runLines.filter((line) => "traced" in line);
const runStats = runLines.filter((line) => "stats" in line).pop();

// NaN and infinities are strings in a log.
const numberOf = (value) => (typeof value === "string" ? Number(value.replace("inf", "Infinity")) : value);

// |values|: by step; those that are not finite leave a gap.
function drawCurve(label, values, format) {
  const finite = values.filter(Number.isFinite);
  if (!finite.length) return note(`${label}: no number is finite.`);
  const least = Math.min(...finite), most = Math.max(...finite), span = most - least || 1;
  let path = "", isDrawing = false;
  values.forEach((value, at) => {
    if (Number.isFinite(value)) path += `${isDrawing ? "L" : "M"}${at},${98 - (96 * (value - least)) / span}`;
    isDrawing = Number.isFinite(value);
  });
  return el("figure", {}, el("figcaption", {}, `${label}: ${format(least)} to ${format(most)}, at last ${format(finite[finite.length - 1])}`),
    svg("svg", {
      class: "chart curve", viewBox: `0 0 ${Math.max(1, values.length - 1)} 100`, preserveAspectRatio: "none", role: "img",
      "aria-label": `${label} over ${plural(values.length, "step")}, from ${format(least)} to ${format(most)}`,
    }, svg("path", { d: path })));
}

function faultItem(line) {
  const expected = line.expected ? "; too large at this loss scale alone, and skipped as it should be" : "";
  return el("li", {}, `Iteration ${line.traced}: ${line.fault} `, line.path ? opLink(line.decided || line.path) : "",
    line.file ? ` ${line.file}:${line.line}` : "", expected,
    line.mend && line.mend.length
      ? el("div", {}, "In the precision block: ", el("code", {}, line.mend.map((path) => `"${path}": f32`).join(", ")))
      : null);
}

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
  title, width: "12%", number: true, value: (tensor) => shareOf(tensor[type][what], tensor),
  cell: (tensor) => shareCell(shareOf(tensor[type][what], tensor)),
});

const tensorColumns = [
  { title: "Tensor", width: "26%", value: (tensor) => tensor.name, cell: (t) => el("span", { class: "path" }, t.name) },
  { title: "Type", width: "7%", value: (tensor) => tensor.dtype, cell: (tensor) => dtypeMark(tensor.dtype) },
  { title: "Largest", width: "10%", number: true, value: (tensor) => numberOf(tensor.largest),
    cell: (tensor) => numberOf(tensor.largest).toPrecision(4) },
  { title: "Not finite", width: "11%", number: true, value: brokenShare,
    cell: (tensor) => (brokenShare(tensor) ? el("strong", { class: "broken" }, shareCell(brokenShare(tensor))) : shareCell(0)) },
  lostColumn("f16: zero", "f16", "flushed"),
  lostColumn("f16: infinite", "f16", "overflow"),
  { title: "Exponents, -48 to 24", width: "22%", value: (tensor) => tensor.exponents.from, cell: drawExponents },
];

// ---- the view

function drawRun(panel) {
  if (!runSteps.length) {
    panel.append(note("The report was made without the log of a training: --log FILE names what amprun train --log wrote."));
    return null;
  }
  const last = runSteps[runSteps.length - 1], skipped = runSteps.filter((step) => step.skipped).length;
  const short = (value) => String(Number(value.toPrecision(6)));
  panel.append(
    el("p", {}, `${last.iteration} iterations, ${last.step} updates; of ${plural(runSteps.length, "step")} here ${skipped} skipped.`),
    drawCurve("Loss", runSteps.map((step) => numberOf(step.loss)), short),
    drawCurve("Loss scale, as a power of 2", runSteps.map((step) => Math.log2(numberOf(step.scale))), short));
  if (runFaults.length) panel.append(el("h2", {}, "Not finite"), el("ul", { class: "findings" }, runFaults.map(faultItem)));
  if (!runStats) {
    panel.append(note("The log has no statistics of tensors: amprun train --stats EVERY."));
    return null;
  }
  const told = note(`Tensors of iteration ${runStats.stats}, at a loss scale of ${runStats.scale}.`);
  return drawTable(panel, [told], {
    label: "Tensors", columns: tensorColumns, rows: [...runStats.tensors].sort((a, b) => b.f16.flushed / b.count - a.f16.flushed / a.count),
    sortBy: 3, descending: true, searchText: (tensor) => `${tensor.name} ${tensor.dtype}`, choose: chooseTensor,
    fold: foldTensors,
  });
}
