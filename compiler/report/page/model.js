// model.js: what the report shows, from the JSON in the page: the explanation, and the parts that may be there.

const explain = readPart("explain");
const parts = {};
for (const name of ["comparison", "lint", "times", "layout", "code", "run"]) parts[name] = readPart(name);

// A number of bytes at batch N, of [at N^0, at N^1, ...].
let batch = explain.batch;
function bytesAt(powers) {
  return (powers || []).reduceRight((sum, factor) => sum * batch + factor, 0);
}

const opByPath = indexBy(explain.decisions, "path");
const castsByOp = groupBy(explain.casts || [], (cast) => cast.for);
const keptBy = groupBy(explain.decisions.filter((op) => op.folded_into), (op) => op.folded_into);
const edgesTo = groupBy(explain.graph.edges, (edge) => edge.to);
const edgesFrom = groupBy(explain.graph.edges.filter((edge) => edge.from), (edge) => edge.from);
const sourceByFile = indexBy(explain.sources, "file");

const castBytes = (op) => (castsByOp.get(op.path) || []).reduce((sum, c) => sum + bytesAt(c.bytes_by_power_of_n), 0);

// Kernels of both targets, each with the program that it is of.
const kernels = explain.programs.flatMap((program) => program.kernels.map((kernel, number) => ({
  ...kernel, number, program, where: `${program.target} ${program.function}`,
})));

// "fc1.linear" of "fc1.linear.grad.weight": what a kernel of the backward pass is for.
const forwardPath = (path) => path.replace(/\.grad\..*$|\.grad$/, "");
const kernelsByOp = new Map();
for (const kernel of kernels)
  for (const path of new Set(kernel.ops.map(forwardPath))) {
    if (!kernelsByOp.has(path)) kernelsByOp.set(path, []);
    kernelsByOp.get(path).push(kernel);
  }

const timeByKernel = new Map();
for (const time of parts.times ? parts.times.kernels : []) timeByKernel.set(`${time.function} ${time.kernel}`, time);
const timeOf = (kernel) =>
  kernel.program.target === "cuda" ? timeByKernel.get(`${kernel.program.function} ${kernel.name}`) : undefined;

const bufferBytes = (buffer) => bytesAt(buffer.bytes_by_power_of_n);
const kernelBytes = (kernel, key) =>
  kernel[key].reduce((sum, number) => sum + bufferBytes(kernel.program.buffers[number]), 0);

// The CUDA C of a kernel: from the comment before it to the comment before the next.
function codeOf(kernel) {
  const text = parts.code && parts.code.cuda;
  if (!text || kernel.program.target !== "cuda") return null;
  const at = text.search(new RegExp(`\\b${kernel.program.function}_${kernel.name}\\(`));
  if (at < 0) return null;
  const from = text.lastIndexOf("\n/* k", at) + 1, to = text.indexOf("\n/* k", at);
  return text.slice(from, to < 0 ? undefined : to);
}

// "min-cast.policy:7", or the model's line of an override.
function originOf(op) {
  const name = op.origin || "?";
  const file = op.override || name.includes(".") ? name : `${name}.policy`;
  return `${file}:${op.origin_line}`;
}
