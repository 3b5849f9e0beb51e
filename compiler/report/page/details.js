// details.js: all that is known of one op, or of one kernel, beside the views.

function showDetails(...content) {
  const back = el("button", { type: "button", class: "link", onclick: showOverview }, "Overview");
  detailsPane().classList.remove("overview");
  detailsPane().replaceChildren(back, ...content.flat(Infinity).filter(Boolean));
  detailsPane().scrollTop = 0;
}

function opLink(path) {
  if (!opByPath.has(path)) return el("code", {}, path);
  return el("button", { type: "button", class: "link path", onclick: () => chooseOp(path) }, path);
}

const kernelLink = (kernel) =>
  el("button", { type: "button", class: "link path", onclick: () => chooseKernel(kernel) }, kernel.name);

const listOf = (items) => el("ul", {}, items.map((item) => el("li", {}, item)));
const joined = (items) => items.flatMap((item, at) => (at ? [", ", item] : [item]));

// The lines of the model around the op's.
function sourceAround(op, around = 6) {
  const source = sourceByFile.get(op.file);
  if (!op.line) return null;
  if (!source) return [el("h3", {}, "Source"), note(`${op.file}:${op.line}; the text is not in this report.`)];
  const lines = source.text.split("\n"), first = Math.max(0, op.line - 1 - around);
  const shown = lines.slice(first, op.line + around);
  return [el("h3", {}, `Source: ${op.file}:${op.line}`),
    el("pre", { tabindex: 0, "aria-label": `Lines of ${op.file}` }, shown.map((line, at) => {
      const number = first + at + 1, text = `${String(number).padStart(4)}  ${line}`;
      return [number === op.line ? el("span", { class: "at" }, text) : text, "\n"];
    }))];
}

function coresOf(op) {
  const cores = op.tensor_cores;
  if (!cores) return null;
  if (!cores.eligible) return `no: ${cores.why}`;
  if (!cores.narrow.length) return "yes";
  return ["yes, slowly:", listOf(cores.narrow.map((size) =>
    `${size.problem}; ${size.remedy}${size.worth_padding ? "" : ", more than it brings"}`))];
}

function castText(cast) {
  const bytes = `${cast.bytes} bytes (${formatBytes(bytesAt(cast.bytes_by_power_of_n))})`;
  return [el("code", {}, cast.value), " ", el("span", { class: "cast-word" }, `${cast.from} → ${cast.to}`),
    `, ${bytes}${cast.place ? `, ${cast.place}` : ""}${cast.phase && cast.phase !== "forward" ? `, ${cast.phase}` : ""}`];
}

function reasonOf(op) {
  return [
    ["decided by", op.override ? `an override of the model, ${originOf(op)}` : originOf(op)],
    ["rule", op.rule],
    ["line", op.policy_text && el("code", {}, op.policy_text.replace(/ +/g, " "))],
    ["because", op.because],
    ["forced by", op.neighbour && opLink(op.neighbour)],
  ];
}

function typesOf(op) {
  return [op.operands.flatMap((dtype, at) => [at ? " × " : "", dtypeMark(dtype)]), " → ", dtypeMark(op.dtype)];
}

function kernelItem(kernel) {
  const code = codeOf(kernel);
  return [kernelLink(kernel), ` ${kernel.where}: ${kernel.title}`,
    code && el("details", {}, el("summary", {}, "CUDA C"), el("pre", { tabindex: 0 }, code))];
}

// The others of its group, of which nothing differs but numbers in names.
function alikeOf(op) {
  const others = op.group === null ? [] : explain.decisions.filter((other) => other.group === op.group && other !== op);
  if (!others.length) return null;
  const named = others.slice(0, 8).map((other) => opLink(other.path));
  return [plural(others.length, "op"), ": ", joined(named), others.length > 8 ? " …" : ""];
}

function showOp(op) {
  const path = op.path, asked = castsByOp.get(path) || [], kept = keptBy.get(path) || [];
  const reads = (edgesTo.get(path) || []).map((edge) => (edge.input ? el("code", {}, edge.input) : opLink(edge.from)));
  const readBy = (edgesFrom.get(path) || []).map((edge) => opLink(edge.to));
  const own = kernelsByOp.get(path) || [];
  showDetails(
    el("h2", { class: "path" }, path),
    termList([
      ["op", op.layer && op.layer !== op.op ? `${op.op}, of ${op.layer}` : op.op],
      ["dtypes", typesOf(op)], ...reasonOf(op),
      ["tensor cores", coresOf(op)],
      ["reads", reads.length ? joined(reads) : null],
      ["read by", readBy.length ? joined(readBy) : null],
      ["told with", op.folded_into && opLink(op.folded_into)],
      ["the same", alikeOf(op)],
      ["statistics", kept.length ? joined(kept.map((other) => opLink(other.path))) : null],
    ]),
    asked.length ? [el("h3", {}, `Casts: ${formatBytes(castBytes(op))} at N = ${batch}`),
      listOf(asked.map(castText))] : null,
    sourceAround(op),
    own.length ? [el("h3", {}, "Kernels"), listOf(own.map(kernelItem))] : null);
}

function showInput(child) {
  const readers = explain.graph.edges.filter((edge) => edge.input === child.name);
  showDetails(el("h2", { class: "path" }, child.name),
    termList([["input", dtypeMark(child.input)], ["read by", joined(readers.map((edge) => opLink(edge.to)))]]));
}

function chooseOp(path) {
  const op = opByPath.get(path);
  if (!op) return;
  showOp(op);
  markChosen(path);
}

function chooseKernel(kernel) {
  const buffers = (key) => listOf(kernel[key].map((number) => {
    const buffer = kernel.program.buffers[number];
    return [el("code", {}, buffer.value), ` ${buffer.kind} ${buffer.storage}, ${formatBytes(bufferBytes(buffer))}`];
  }));
  const time = timeOf(kernel), code = codeOf(kernel);
  showDetails(
    el("h2", { class: "path" }, `${kernel.where} ${kernel.name}`),
    termList([
      ["title", kernel.title], ["kind", kernel.kind],
      ["time", time && `${time.microseconds.toPrecision(3)} µs on ${parts.times.gpu}, bound by ${time.bound}; ` +
        "a model, not a measurement"],
      ["ops", joined([...new Set(kernel.ops.map(forwardPath))].map(opLink))],
    ]),
    el("h3", {}, "Reads"), buffers("reads"), el("h3", {}, "Writes"), buffers("writes"),
    code && [el("h3", {}, "CUDA C"), el("pre", { tabindex: 0 }, code)],
    sourceAround(kernel));
}

// ---- of the model, while nothing is chosen

const tabLink = (name, words) => el("button", { type: "button", class: "link", onclick: () => showTab(name) }, words);

function peakText(program) {
  const alive = aliveBytes(program), most = alive.reduce((best, bytes, at) => (bytes > alive[best] ? at : best), 0);
  return [`${program.target} ${program.function}: ${formatBytes(alive[most] || 0)}, at `,
    kernelLink(kernels.find((kernel) => kernel.program === program && kernel.number === most))];
}

function largestCasts() {
  const rows = foldRows(explain.casts || [], foldCasts).sort((a, b) => bytesOfCast(b) - bytesOfCast(a)).slice(0, 5);
  return rows.length ? [el("h3", {}, "Largest casts"), listOf(rows.map((cast) => [opLink(membersOf(cast)[0].for), " ",
    el("span", { class: "cast-word" }, `${cast.from} → ${cast.to}`), `, ${formatBytes(bytesOfCast(cast))}` +
    (cast.members ? `, ${plural(cast.members.length, "cast")}` : "")]))] : null;
}

function trainingText() {
  const last = runSteps[runSteps.length - 1];
  return last && [tabLink("run", plural(runSteps.length, "step")), `, the last with a loss of ${shortNumber(numberOf(last.loss))}`];
}

function showOverview() {
  const programs = explain.programs.filter((program) => program.kernels.length), { cast_totals: casts } = explain;
  const dtypes = [...blocks[0].dtypes].sort((a, b) => b[1] - a[1]);
  showDetails(el("h2", {}, "Overview"),
    termList([
      ["model", explain.file], ["policy", explain.policy], ["low precision", explain.low],
      ["ops", joined(dtypes.map(([dtype, count]) => [count.toLocaleString("en"), " ", dtypeMark(dtype)]))],
      ["casts", casts && [tabLink("casts", plural(casts.count, "cast")),
        `, ${formatBytes(bytesAt(casts.bytes_by_power_of_n))}; ${casts.fused} fused`]],
      ["kernels", programs.length ? [tabLink("kernels", programs.map((program) =>
        `${program.target} ${program.function}: ${program.kernels.length}`).join(", "))] : null],
      ["lint", parts.lint && tabLink("lint", plural(parts.lint.findings.length, "finding"))],
      ["training", trainingText()],
    ]),
    largestCasts(),
    programs.length ? [el("h3", {}, `Most temporaries at N = ${batch}`), listOf(programs.map(peakText))] : null,
    note("Choose an op, a cast or a kernel: what is known of it is shown here."));
  detailsPane().firstChild.remove(); // the way back to here
  detailsPane().classList.add("overview");
}
