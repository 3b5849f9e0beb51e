// memory.js: temporaries that are alive at each kernel of a program, and which those are.

// Alive from the kernel that writes it to the last that reads it.
const temporaries = (program) => program.buffers.filter((buffer) => buffer.kind === "temp");

function aliveBytes(program) {
  const change = new Array(program.kernels.length + 1).fill(0);
  for (const buffer of temporaries(program)) {
    change[buffer.first] += bufferBytes(buffer);
    change[buffer.last + 1] -= bufferBytes(buffer);
  }
  let sum = 0;
  return change.slice(0, -1).map((more) => (sum += more));
}

function drawChart(alive, at, choose) {
  const most = Math.max(1, ...alive);
  const steps = alive.flatMap((bytes, i) => [[i, bytes], [i + 1, bytes]]);
  const points = [[0, 0], ...steps, [alive.length, 0]].map(([x, y]) => `${x},${100 - (95 * y) / most}`).join(" ");
  const chart = svg("svg", {
    class: "chart", viewBox: `0 0 ${Math.max(1, alive.length)} 100`, preserveAspectRatio: "none", role: "img",
    "aria-label": `Bytes of temporaries over ${plural(alive.length, "kernel")}, ${formatBytes(most)} at most`,
  }, svg("polygon", { class: "area", points }),
  svg("line", { class: "at", x1: at + 0.5, x2: at + 0.5, y1: 0, y2: 100 }));
  chart.addEventListener("click", (event) => {
    const box = chart.getBoundingClientRect();
    choose(Math.min(alive.length - 1, Math.floor(((event.clientX - box.left) / box.width) * alive.length)));
  });
  return chart;
}

const bufferColumns = [
  { title: "Value", width: "44%", value: (buffer) => buffer.value, cell: (b) => el("span", { class: "path" }, b.value) },
  { title: "Stored as", width: "14%", value: (buffer) => buffer.storage, cell: (buffer) => dtypeMark(buffer.storage) },
  { title: "Bytes", width: "16%", number: true, value: bufferBytes, cell: (buffer) => formatBytes(bufferBytes(buffer)) },
  { title: "First kernel", width: "13%", number: true, value: (buffer) => buffer.first },
  { title: "Last kernel", width: "13%", number: true, value: (buffer) => buffer.last },
];

function drawMemory(panel) {
  const programs = explain.programs.filter((program) => program.kernels.length);
  if (!programs.length) {
    panel.append(note("There are no kernels to tell of."));
    return null;
  }
  const chosen = el("select", { onchange: () => show(null) },
    programs.map((program, at) => el("option", { value: at }, `${program.target} ${program.function}`)));
  const place = el("div");
  const slider = el("input", { type: "range", class: "wide", min: 0, "aria-label": "Kernel" });
  const words = el("p", { "aria-live": "polite" });
  const table = new VirtualTable({
    label: "Buffers alive", columns: bufferColumns, rows: [], sortBy: 2, descending: true,
    searchText: (buffer) => `${buffer.value} ${buffer.name} ${buffer.storage}`,
    choose: (buffer) => {
      const program = programs[chosen.value];
      const kernel = kernels.find((k) => k.program === program && k.number === buffer.first);
      if (kernel) chooseKernel(kernel);
    },
  });
  // |at|: a kernel; null: the one where most is alive.
  function show(at) {
    const program = programs[chosen.value], alive = aliveBytes(program);
    const most = alive.reduce((best, bytes, i) => (bytes > alive[best] ? i : best), 0);
    const kernel = program.kernels[at ?? most];
    slider.max = program.kernels.length - 1;
    slider.value = at ?? most;
    place.replaceChildren(drawChart(alive, Number(slider.value), show));
    words.textContent = `${kernel.name} (${kernel.title}): ${formatBytes(alive[slider.value])} alive; ` +
      `the most is ${formatBytes(alive[most])}, at ${program.kernels[most].name}.`;
    table.rows = temporaries(program).filter((b) => b.first <= slider.value && slider.value <= b.last);
    table.update(findBox().value);
  }
  slider.addEventListener("input", () => show(Number(slider.value)));
  panel.append(
    el("div", { class: "legend" }, el("label", {}, "Program ", chosen)),
    note(`Temporaries at N = `, el("span", { id: "memory-batch" }, String(batch)),
      ", without what layouts round up; weights, moments and what the caller holds come on top."),
    place, slider, words, table.count, table.frame);
  show(null);
  return () => {
    document.getElementById("memory-batch").textContent = batch;
    show(Number(slider.value));
  };
}
