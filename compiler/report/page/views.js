// views.js: the tables of ops, casts and kernels, the comparison, and what lint found.

const coresWord = (op) => {
  if (!op.tensor_cores) return "";
  if (!op.tensor_cores.eligible) return "no";
  return op.tensor_cores.narrow.length ? "slowly" : "yes";
};

const opCastBytes = (op) => sumOf(op, castBytes);

const opColumns = [
  { title: "Op", grows: true, value: (op) => op.name || op.path, cell: (op) => pathText(op.name || op.path) },
  { title: "Kind", width: 120, value: (op) => op.op },
  { title: "Dtype", value: (op) => op.dtype, cell: (op) => dtypeMark(op.dtype) },
  { title: "Rule", value: (op) => (op.override ? "override" : op.rule) },
  { title: "Decided by", value: originOf },
  { title: "Casts", number: true, value: opCastBytes, cell: (op) => formatBytes(opCastBytes(op)) },
  { title: "Tensor cores", value: coresWord },
  { title: "Line", number: true, value: (op) => op.line },
];

const drawOps = (panel) => drawTable(panel, [], {
  label: "Ops", columns: opColumns, rows: explain.decisions, choose: (op) => chooseOp(op.path),
  searchText: (op) => [op.path, op.op, op.layer, op.dtype, op.rule, originOf(op), op.because, op.neighbour].join(" "),
  fold: {
    shows: (op) => !op.folded_into,
    key: (op) => (op.group === null ? op.path : op.group),
    merge: (ops) => ({ name: `${explain.groups[ops[0].group]}, ${plural(ops.length, "op")}` }),
  },
  each: " each op of repeated layers and loops, and those that only keep a layer's statistics",
});

const bytesOfCast = (cast) => sumOf(cast, (one) => bytesAt(one.bytes_by_power_of_n));

// Kernels of casts of one group differ in their numbers.
const placeKey = (place) => (place || "").replace(/kernel k[0-9]+/, "kernels");

const foldCasts = {
  key: (cast) => [pathKey(cast.value), cast.from, cast.to, pathKey(cast.for), cast.phase, placeKey(cast.place)].join(),
  merge: (casts) => ({
    value: `${patternOf(casts.map((cast) => cast.value))}, ${plural(casts.length, "cast")}`,
    for: patternOf(casts.map((cast) => cast.for)), place: placeKey(casts[0].place),
  }),
};

const castColumns = [
  { title: "Value", grows: true, value: (cast) => cast.value, cell: (cast) => pathText(cast.value) },
  { title: "Cast", value: (cast) => `${cast.from} → ${cast.to}`,
    cell: (cast) => el("span", { class: "cast-word" }, `${cast.from} → ${cast.to}`) },
  { title: "For", grows: true, value: (cast) => cast.for, cell: (cast) => pathText(cast.for) },
  { title: "Phase", value: (cast) => cast.phase },
  { title: "Bytes", number: true, value: bytesOfCast, cell: (cast) => formatBytes(bytesOfCast(cast)) },
  { title: "Where", width: 170, value: (cast) => cast.place || "" },
];

function totalsText() {
  const { pairs } = explain.cast_totals;
  return pairs.map((pair) =>
    `${pair.from} → ${pair.to}: ${pair.count}, ${formatBytes(bytesAt(pair.bytes_by_power_of_n))}, ${pair.fused} fused`)
    .join("; ") || "No casts.";
}

function drawCasts(panel) {
  if (!explain.casts) {
    panel.append(note("Casts are not counted: this IR has lost its graph."));
    return null;
  }
  const totals = note(totalsText());
  const refresh = drawTable(panel, [totals], {
    label: "Casts", columns: castColumns, rows: explain.casts, sortBy: 4, descending: true,
    choose: (cast) => chooseOp(cast.for), fold: foldCasts,
    searchText: (cast) => [cast.value, cast.from, cast.to, cast.for, cast.phase, cast.place].join(" "),
  });
  return () => {
    totals.textContent = totalsText();
    refresh();
  };
}

const micros = (kernel) => sumOf(kernel, (one) => (timeOf(one) ? timeOf(one).microseconds : 0));
const bytesOfKernel = (kernel, key) => sumOf(kernel, (one) => kernelBytes(one, key));

const foldKernels = {
  key: (kernel) => [kernel.where, kernel.kind, titleKey(kernel.title)].join(),
  merge: (members) => ({
    name: `${members.length} from ${members[0].name}`,
    title: patternOf(members.map((kernel) => kernel.title.replace(/:.*/, ""))) + members[0].title.replace(/^[^:]*/, ""),
  }),
};

const kernelColumns = [
  { title: "Program", value: (kernel) => kernel.where },
  { title: "Kernel", value: (kernel) => kernel.name },
  { title: "What", grows: true, value: (kernel) => kernel.title, cell: (kernel) => pathText(kernel.title) },
  { title: "Kind", value: (kernel) => kernel.kind },
  { title: "Reads", number: true, value: (kernel) => bytesOfKernel(kernel, "reads"),
    cell: (kernel) => formatBytes(bytesOfKernel(kernel, "reads")) },
  { title: "Writes", number: true, value: (kernel) => bytesOfKernel(kernel, "writes"),
    cell: (kernel) => formatBytes(bytesOfKernel(kernel, "writes")) },
  ...(timeByKernel.size ? [{ title: "Modelled", number: true, value: micros,
    cell: (kernel) => (timeOf(membersOf(kernel)[0]) ? `${micros(kernel).toPrecision(3)} µs` : "") }] : []),
];

function timesText() {
  const { times } = parts;
  if (!times) return "No times are modelled: --gpu NAME asks for them, and a model.so has them anyway.";
  if (times.missing) return `No times are modelled: ${times.missing}`;
  const sum = times.kernels.reduce((all, time) => all + time.microseconds, 0);
  return `Times on ${times.gpu} at N = ${times.batch} are a model, not a measurement: ${sum.toPrecision(4)} µs a step.`;
}

const drawKernels = (panel) => drawTable(panel, [note(timesText())], {
  label: "Kernels", columns: kernelColumns, rows: kernels, choose: chooseKernel, fold: foldKernels,
  searchText: (kernel) => [kernel.where, kernel.name, kernel.title, kernel.kind, ...kernel.ops].join(" "),
});

// ---- comparison

const changeColumns = [
  { title: "Op", grows: true, value: (row) => row.path, cell: (row) => pathText(row.path) },
  { title: "Before", value: (row) => row.before.dtype, cell: (row) => dtypeMark(row.before.dtype) },
  { title: "After", value: (row) => row.after.dtype, cell: (row) => dtypeMark(row.after.dtype) },
  { title: "Decided before by", value: (row) => originOf(row.before) },
  { title: "Decided after by", value: (row) => originOf(row.after) },
];

const foldChanges = {
  key: (row) => [pathKey(row.path), row.op, row.before.dtype, row.after.dtype, originOf(row.before), originOf(row.after)].join(),
  merge: (rows) => ({ path: `${patternOf(rows.map((row) => row.path))}, ${plural(rows.length, "op")}` }),
};

function sideText(side) {
  const totals = side.cast_totals;
  const casts = totals ? `; ${plural(totals.count, "cast")}, ${formatBytes(bytesAt(totals.bytes_by_power_of_n))}` : "";
  return `${side.name}, policy ${side.policy}, low precision ${side.low}${casts}`;
}

const onlyText = (list, where) =>
  (list.length ? note(`Only ${where}: ${list.map((row) => row.path).join(", ")}`) : null);

function drawComparison(panel) {
  const c = parts.comparison;
  if (!c) {
    panel.append(note("The report was made without another model or policy: --against, --against-precision and " +
      "--against-policy name one."));
    return null;
  }
  return drawTable(panel, [
    el("p", {}, "Before: ", sideText(c.before)), el("p", {}, "After: ", sideText(c.after)),
    note(c.same ? "There is no difference." : `${c.changed.length} of ${plural(c.matched, "op")} changed; ` +
      `${plural(c.casts_gone ? c.casts_gone.length : 0, "cast")} gone, ${c.casts_came ? c.casts_came.length : 0} came.`),
    onlyText(c.only_before, "before"), onlyText(c.only_after, "after"),
  ].filter(Boolean), {
    label: "Changes", columns: changeColumns, rows: c.changed, choose: (row) => chooseOp(row.path), fold: foldChanges,
    searchText: (row) => [row.path, row.op, row.before.dtype, row.after.dtype].join(" "),
  });
}

// ---- lint

function findingItem(finding) {
  return el("li", {}, el("strong", {}, finding.id), ` ${finding.file}:${finding.line}: `, joined(finding.paths.map(opLink)),
    finding.paths.length ? ": " : "", finding.message,
    finding.line_to_add && el("div", {}, "In the precision block: ", el("code", {}, finding.line_to_add)),
    finding.help && el("div", { class: "note" }, finding.help));
}

function drawLint(panel) {
  if (!parts.lint) {
    panel.append(note("Lint reads models, and IR that still has its graph; of this one it tells nothing."));
    return null;
  }
  const { findings } = parts.lint;
  panel.append(note(`${plural(findings.length, "finding")} of ${plural(parts.lint.checks.length, "check")}.`),
    el("ul", { class: "findings" }, findings.map(findingItem)));
  return null;
}
