// main.js: starts the page.  A view more is a line here.

function describeModel() {
  const counts = [...blocks[0].dtypes].sort((a, b) => b[1] - a[1]).map(([dtype, count]) => `${count} ${dtype}`);
  document.getElementById("title").textContent = explain.model;
  document.getElementById("summary").textContent =
    `${explain.file}: policy ${explain.policy}, low precision ${explain.low}; ${plural(blocks[0].size, "op")}` +
    (counts.length ? `: ${counts.join(", ")}` : "");
}

function startBatch() {
  const input = document.getElementById("batch");
  input.value = batch;
  input.addEventListener("input", () => {
    if (!(Number(input.value) >= 1)) return;
    batch = Math.floor(Number(input.value));
    refreshShown();
    if (detailsPane().classList.contains("overview")) showOverview();
  });
}

// The op of that path, else one whose path begins with the word, else one that has it; what is drawn goes first.
function findOp(word) {
  const drawn = [...placeOfOp.keys()], all = [...drawn, ...opByPath.keys()];
  const ways = [(path) => path === word, (path) => path.startsWith(word), (path) => path.includes(word)];
  for (const fits of ways) {
    const found = all.find((path) => fits(path.toLowerCase()));
    if (found) return found;
  }
  return null;
}

function startFind() {
  findBox().addEventListener("input", () => {
    if (shownTab().name !== "graph") refreshShown();
  });
  findBox().addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || shownTab().name !== "graph" || !findBox().value) return;
    const found = findOp(findBox().value.toLowerCase());
    if (!found) return;
    chooseOp(found);
    showOpInGraph(found);
  });
}

startTheme();
describeModel();
addTab("graph", "Graph", drawGraph);
addTab("ops", "Ops", drawOps);
addTab("casts", "Casts by bytes", drawCasts);
addTab("kernels", "Kernels", drawKernels);
addTab("memory", "Memory", drawMemory);
addTab("comparison", "Comparison", drawComparison);
addTab("lint", "Lint", drawLint);
addTab("run", "Training", drawRun);
startBatch();
startFind();
showOverview();
showTab("graph");
