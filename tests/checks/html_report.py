"""Reports of `ampc explain --html` as a person uses them, in a headless Chromium.

    html_report.py SHOTS [--seconds S] REPORT...

Of each report every check is one line, "pass REPORT: WHAT" or "FAIL REPORT: WHAT: why"; SHOTS gets pictures of every
view. --seconds: a report that takes longer to open fails.
"""
import pathlib
import re
import sys
import time

from axe_selenium_python import Axe
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

TABS = ["graph", "ops", "casts", "kernels", "memory", "comparison", "lint", "run"]
SERIOUS = ("serious", "critical")


def start():
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1400,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    options.binary_location = "/usr/bin/chromium"
    return webdriver.Chrome(options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))


class Report:
    """One report, open in the browser."""

    def __init__(self, browser, path, shots):
        self.browser, self.path, self.shots = browser, path, shots
        self.dark = False
        begin = time.monotonic()
        browser.get(path.resolve().as_uri())
        self.js("return document.querySelector('svg .node').getBoundingClientRect().width")
        self.seconds = time.monotonic() - begin
        self.explain = self.js("return explain")

    def js(self, text, *arguments):
        return self.browser.execute_script(text, *arguments)

    def find(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def tab(self, name):
        self.find(f"#tab-{name}").click()

    def details(self):
        return self.find("#details").text

    def search(self, text):
        box = self.find("#find")
        box.clear()
        # clear() alone sends the page no event if the box was empty
        box.send_keys(text or "x" + Keys.BACKSPACE)

    def shot(self, name):
        self.browser.save_screenshot(str(self.shots / f"{self.path.stem}-{name}.png"))

    def press(self, key):
        """A key, to what has the focus."""
        ActionChains(self.browser).send_keys(key).perform()

    def row_with_focus(self):
        return self.js("return document.activeElement.dataset.at")

    def wait_a_frame(self):
        self.browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")

    def rows(self, view):
        """The cells of the rows that are there, a list for each."""
        return self.js("return [...document.querySelectorAll(arguments[0])].map("
                       "row => [...row.cells].map(cell => cell.textContent))", f"#view-{view} tbody tr")

    def row_count(self, view):
        return int(self.find(f"#view-{view} table").get_attribute("aria-rowcount")) - 1

    def shown_ops(self):
        return [op for op in self.explain["decisions"] if not op["folded_into"]]


# ---- checks: each takes a report and raises where it is wrong

def opens(r):
    assert r.find("#title").text == r.explain["model"]
    assert not r.js("return performance.getEntriesByType('resource').map(e => e.name)"), "it asked for other files"
    assert str(len(r.shown_ops())) in r.find("#summary").text.replace(",", ""), r.find("#summary").text


def overview_is_told(r):
    """What is beside the views while nothing is chosen."""
    told = r.details()
    programs = [program for program in r.explain["programs"] if program["kernels"]]
    for part in ("Overview", r.explain["policy"], f"Most temporaries at N = {r.explain['batch']}",
                 *(f"{program['target']} {program['function']}: " for program in programs)):
        assert part in told, (part, told)
    r.find("#details ul button").click()
    assert "Overview" != r.find("#details h2").text
    r.find("#details > button").click()
    assert r.details() == told


# headers and numbers that are cut
CUT = """return [...document.querySelectorAll("[role=tabpanel]:not([hidden]) :is(th, td.number)")]
    .filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent)"""


def headers_and_numbers_are_whole(r):
    for width in (1280, 1920):
        r.browser.set_window_size(width, 900)
        for name in TABS:
            r.tab(name)
            assert not r.js(CUT), (width, name, r.js(CUT))
            for frame in r.all(f"#view-{name} .table-frame"):
                assert r.js("return arguments[0].scrollWidth - arguments[0].clientWidth", frame) < 1, (width, name)
    r.browser.set_window_size(1400, 900)
    if r.rows("ops"):
        r.tab("ops")
        r.js("document.querySelector('#view-ops th').style.width = '10px';"
             "document.querySelector('#view-ops col').style.width = '10px'")
        assert r.js(CUT), "a planted narrow column is not seen"
        r.js("document.querySelector('#view-ops col').style.width = ''")


# edges that go through a node that they do not join; an edge ends on the border of its own, so nodes are taken smaller
CROSSED = """
    const crossed = [];
    for (const drawing of document.querySelectorAll(".drawing > svg")) {
      const boxes = [...drawing.querySelectorAll(".node")].map((node) => {
        const { e: x, f: y } = node.transform.baseVal.consolidate().matrix, rect = node.querySelector("rect");
        return [x + 4, y + 4, x + rect.width.baseVal.value - 4, y + rect.height.baseVal.value - 4, node];
      });
      for (const edge of drawing.querySelectorAll(".edge"))
        for (let at = 0, length = edge.getTotalLength(); at < length; at += 6) {
          const { x, y } = edge.getPointAtLength(at);
          const hit = boxes.find(([x1, y1, x2, y2]) => x1 < x && x < x2 && y1 < y && y < y2);
          if (hit) crossed.push(hit[4].textContent);
        }
    }
    return crossed;"""


def edges_pass_nodes_by(r):
    r.tab("graph")
    r.js("openSome()")
    crossed = r.js(CROSSED)
    assert not crossed, crossed[:5]
    r.js("const node = document.querySelector('svg .node'), edge = document.querySelector('svg .edge');"
         "if (edge) node.parentNode.append(edge.cloneNode());"
         "if (edge) node.parentNode.lastChild.setAttribute('d', 'M-1000,30 L1000,30')")
    assert r.js(CROSSED) or not r.all("svg .edge"), "a planted edge through nodes is not seen"
    r.js("const planted = document.querySelector('svg .edge[d=\"M-1000,30 L1000,30\"]'); if (planted) planted.remove()")
    r.js("closeAll()")


# axe does not look at texts of drawings
PALE = """
    const light = (colour) => {
      const [r, g, b] = colour.match(/[0-9.]+/g).slice(0, 3).map((c) => c / 255)
        .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
    const page = getComputedStyle(document.body).backgroundColor;
    return [...document.querySelectorAll("svg text")].filter((text) => {
      const rect = text.parentNode.querySelector(":scope > rect");
      return ratio(getComputedStyle(text).fill, rect ? getComputedStyle(rect).fill : page) < 4.5;
    }).map((text) => text.textContent);"""


def contrast_is_enough(r):
    r.tab("graph")
    for theme in range(2):
        assert not r.js(PALE), r.js(PALE)[:5]
        r.find("#theme").click()
    r.js("document.querySelector('svg text').style.fill = getComputedStyle(document.body).backgroundColor")
    assert r.js(PALE), "a planted pale text is not seen"
    r.js("document.querySelector('svg text').style.fill = ''")


def tabs_switch(r):
    for name in TABS:
        r.tab(name)
        shown = [view.get_attribute("id") for view in r.all("[role=tabpanel]") if view.is_displayed()]
        assert shown == [f"view-{name}"], shown
        assert r.find(f"#tab-{name}").get_attribute("aria-selected") == "true"
        r.shot(name)
    r.find("#tab-lint").send_keys(Keys.HOME)
    r.find("#tab-graph").send_keys(Keys.ARROW_RIGHT)
    assert r.find("#view-ops").is_displayed(), "arrow keys do not go from tab to tab"
    assert r.js("return document.activeElement.id") == "tab-ops"


def op_is_told(r):
    """Of an op with a source line that casts, where there is one."""
    op = max(r.shown_ops(), key=lambda op: (len(op["casts"]), op["line"]))
    r.tab("graph")
    r.search(op["path"] + Keys.ENTER)
    told = r.details()
    assert "[object" not in told, told
    for part in (op["path"].split("\n")[0], op["rule"], f"{op['file']}:{op['line']}", "Kernels"):
        assert part in told, (part, told)
    for cast in op["casts"]:
        assert f"{cast['from']} → {cast['to']}" in told, (cast, told)
    source = {file["file"]: file["text"] for file in r.explain["sources"]}[op["file"]].split("\n")[op["line"] - 1]
    marked = r.js("return document.querySelector('#details pre .at').textContent")
    assert marked == f"{op['line']:4}  {source}", marked
    node = r.js("return document.querySelector('svg .node.chosen').dataset.op")
    assert node == op["path"], node
    r.search("")


def node_is_told_when_clicked(r):
    r.tab("graph")
    node = r.find("svg .node[data-op]")
    r.js("arguments[0].scrollIntoView({block: 'center'})", node)
    node.click()
    path = node.get_attribute("data-op")
    assert r.find("#details h2").text == path, r.details()
    assert "decided by" in r.details()


def blocks_open_and_close(r):
    r.tab("graph")
    r.js("closeAll()")
    closed = r.all("svg .node[aria-expanded=false]")
    assert bool(closed) == (len(r.explain["graph"]["blocks"]) > 1)
    if not closed:
        return
    sections = len(r.all("section.block"))
    r.js("arguments[0].scrollIntoView({block: 'center'})", closed[0])
    closed[0].click()
    assert closed[0].get_attribute("aria-expanded") == "true"
    assert len(r.all("section.block")) == sections + 1
    r.shot("block")
    r.js("arguments[0].focus()", closed[0])
    closed[0].send_keys(Keys.ENTER)
    assert closed[0].get_attribute("aria-expanded") == "false"
    assert len(r.all("section.block")) == sections


def op_rows(r):
    """The ops of each row; a group's ops are in one."""
    rows = {}
    for op in r.shown_ops():
        rows.setdefault(op["path"] if op["group"] is None else op["group"], []).append(op)
    return list(rows.values())


def ops_are_found(r):
    r.tab("ops")
    rows = op_rows(r)
    assert r.row_count("ops") == len(rows)
    last = rows[-1][0]["path"]
    r.search(last)
    fields = ("path", "op", "layer", "dtype", "rule", "origin", "neighbour", "because")
    found = [ops for ops in rows
             if any(last.lower() in " ".join(str(op[field]) for field in fields).lower() for op in ops)]
    name = last if len(rows[-1]) == 1 else f"{r.explain['groups'][rows[-1][0]['group']]}, {len(rows[-1])} ops"
    assert name in [row[0] for row in r.rows("ops")] or len(found) > 20
    assert r.row_count("ops") == len(found), (last, r.row_count("ops"), len(found))
    r.search("no such op anywhere")
    assert r.row_count("ops") == 0
    r.search("")
    assert r.row_count("ops") == len(rows)
    switch = r.all("#view-ops input[type=checkbox]")
    assert len(switch) == (len(rows) < len(r.explain["decisions"]))
    for box in switch:
        box.click()
        assert r.row_count("ops") == len(r.explain["decisions"])
        box.click()
        assert r.row_count("ops") == len(rows)


def ops_are_sorted(r):
    r.tab("ops")
    heads = r.all("#view-ops th")
    heads[0].find_element(By.TAG_NAME, "button").click()
    assert heads[0].get_attribute("aria-sort") == "ascending"
    heads[0].find_element(By.TAG_NAME, "button").click()
    assert heads[0].get_attribute("aria-sort") == "descending"
    heads[5].find_element(By.TAG_NAME, "button").click()
    assert heads[5].get_attribute("aria-sort") == "descending" and not heads[0].get_attribute("aria-sort")
    first = r.rows("ops")[0][5]
    most = max(r.js("return arguments[0].reduce((sum, path) => sum + castBytes(opByPath.get(path)), 0)",
                    [op["path"] for op in ops]) for ops in op_rows(r))
    assert r.js("return formatBytes(arguments[0])", most) == first


def keyboard_is_enough(r):
    r.tab("ops")
    r.js("document.querySelector('#view-ops .table-frame').scrollTop = 0")
    r.js("document.querySelector('#view-ops .table-frame').focus()")
    r.press(Keys.HOME)
    assert r.row_with_focus() == "0"
    r.press(Keys.ARROW_DOWN)
    assert r.row_with_focus() == ("1" if r.row_count("ops") > 1 else "0")
    assert r.js("return getComputedStyle(document.activeElement).outlineStyle") != "none", "focus is not seen"
    name = r.js("return document.activeElement.cells[0].textContent")
    r.press(Keys.ENTER)
    path = r.find("#details h2").text
    group = next(op["group"] for op in r.explain["decisions"] if op["path"] == path)
    alike = [op["path"] for op in r.explain["decisions"] if group is not None and op["group"] == group]
    assert name == (f"{r.explain['groups'][group]}, {len(alike)} ops" if alike else path)
    assert not alike or alike[0] == path
    r.press(Keys.END)
    assert r.row_with_focus() == str(r.row_count("ops") - 1)
    # the row is taken out of sight by the mouse, and keys still reach the table
    r.js("document.querySelector('#view-ops .table-frame').scrollTop = 0")
    r.wait_a_frame()
    r.press(Keys.HOME)
    assert r.row_with_focus() == "0"


def batch_counts(r):
    r.tab("casts")
    batch = r.find("#batch")
    before = r.rows("casts")
    batch.clear()
    batch.send_keys("100000")
    of_batch = any(len(cast["bytes_by_power_of_n"]) > 1 for cast in r.explain["casts"])
    assert (r.rows("casts") != before) == of_batch
    numbers = r.js("return foldRows(explain.casts, foldCasts).map(bytesOfCast).sort((a, b) => b - a)")
    if numbers:
        assert r.js("return formatBytes(arguments[0])", numbers[0]) == r.rows("casts")[0][4]
    batch.clear()
    batch.send_keys(str(r.explain["batch"]))


def title_key(title):
    """The title without the numbers that count repetitions in the path before its colon."""
    path, colon, rest = title.partition(":")
    parts = ["*" if part.isdigit() else re.sub(r"(?<=.)_[0-9]+$", "", part) for part in path.split(".")]
    return ".".join(parts) + colon + rest


def kernels_are_told(r):
    r.tab("kernels")
    kernels = [(program["target"], program["function"], kernel["kind"], title_key(kernel["title"]))
               for program in r.explain["programs"] for kernel in program["kernels"]]
    assert r.row_count("kernels") == len(set(kernels)), (r.row_count("kernels"), len(set(kernels)))
    switch = r.all("#view-kernels input[type=checkbox]")
    assert len(switch) == (len(set(kernels)) < len(kernels))
    for box in switch:
        box.click()
        assert r.row_count("kernels") == len(kernels)
        box.click()
    r.search("cuda")
    first = r.find("#view-kernels tbody tr")
    first.click()
    assert "Writes" in r.details() and "CUDA C" in r.details(), r.details()
    assert "__global__" in r.find("#details > pre").text
    r.search("")


def memory_moves(r):
    r.tab("memory")
    words = r.find("#view-memory p[aria-live]")
    peak = words.text
    assert "the most is" in peak
    slider = r.find("#view-memory input[type=range]")
    slider.send_keys(Keys.HOME)
    assert words.text.startswith(r.explain["programs"][0]["kernels"][0]["name"] + " "), words.text
    alive = r.js("const p = explain.programs[0]; return [aliveBytes(p), temporaries(p).map(bufferBytes)]")
    assert max(alive[0]) <= sum(alive[1])
    ticks = [tick.text for tick in r.all("#view-memory .values span:not(.widest)")]
    assert len(ticks) > 1 and ticks[0].startswith("0"), ticks
    assert all(re.fullmatch(r"[0-9.]+\s[kMGT]?B", tick) for tick in ticks), ticks
    assert r.find("#view-memory .numbers .word").text == "kernel"
    each = r.find("#view-memory input[type=checkbox]")
    folded = r.row_count("memory")
    each.click()
    assert folded <= r.row_count("memory") <= len(alive[1])
    each.click()


def comparison_is_told(r):
    r.tab("comparison")
    compared = r.js("return parts.comparison")
    if compared is None:
        assert "--against" in r.find("#view-comparison").text
        return
    assert r.row_count("comparison") == r.js("return foldRows(parts.comparison.changed, foldChanges).length")
    assert compared["before"]["policy"] in r.find("#view-comparison").text


def lint_is_told(r):
    r.tab("lint")
    lint = r.js("return parts.lint")
    assert len(r.all("#view-lint li")) == len(lint["findings"])


def theme_switches(r):
    background = r.js("return getComputedStyle(document.body).backgroundColor")
    r.find("#theme").click()
    assert r.js("return getComputedStyle(document.body).backgroundColor") != background
    r.tab("graph")
    r.shot("other-theme")


def is_accessible(r):
    axe = Axe(r.browser)
    axe.inject()
    for theme in range(2):
        for name in TABS:
            r.tab(name)
            found = [v for v in axe.run()["violations"] if v["impact"] in SERIOUS]
            assert not found, (name, [(v["id"], v["nodes"][0]["html"][:200]) for v in found])
        r.find("#theme").click()


def nothing_was_logged(r):
    errors = [entry["message"] for entry in r.browser.get_log("browser")]
    assert not errors, errors


def training_is_told(r):
    r.tab("run")
    steps = r.js("return runSteps.length")
    if not steps:
        assert "--log" in r.find("#view-run").text
        return
    assert len(r.all("#view-run figure svg path")) == 2, "a curve of the loss, one of its scale"
    assert [len(figure.find_elements(By.CSS_SELECTOR, ".values span:not(.widest)")) > 1
            for figure in r.all("#view-run figure")] == [True, True], "no values beside a curve"
    apart = """return [...document.querySelectorAll("#view-run figure")].flatMap((figure) => {
        const lines = [...figure.querySelectorAll(".grid")].map((line) => line.getBoundingClientRect().top);
        return [...figure.querySelectorAll(".values span:not(.widest)")].map((value, at) => {
            const box = value.getBoundingClientRect();
            return Math.abs((box.top + box.bottom) / 2 - lines[at]);
        });
    }).filter((pixels) => pixels > 2)"""
    assert not r.js(apart), "values are not beside their lines"
    r.js("document.querySelector('#view-run .values').style.transform = 'translateY(9px)'")
    assert r.js(apart), "planted values that are apart are not seen"
    r.js("document.querySelector('#view-run .values').style.transform = ''")
    r.find("#view-run input[type=range]").send_keys(Keys.HOME)
    first = r.js("return runSteps[0]")
    told = r.find("#view-run p[aria-live]").text
    assert told.startswith(f"Iteration {first['iteration']}: loss ") and told.endswith(
        f"loss scale {first['scale']:,}{'; skipped' if first['skipped'] else ''}."), told
    r.js("const box = document.querySelector('#view-run .frame').getBoundingClientRect();"
         "document.querySelector('#view-run .frame').dispatchEvent("
         "new PointerEvent('pointermove', {clientX: box.right - 1, clientY: box.top + 5}))")
    last = r.js("return runSteps[runSteps.length - 1].iteration")
    assert r.find("#view-run p[aria-live]").text.startswith(f"Iteration {last}: ")
    assert {r.js("return arguments[0].style.left", cursor) for cursor in r.all("#view-run .cursor")} == {
        f"{100 * (steps - 0.5) / steps:.6g}%"}
    faults = r.js("return runFaults")
    alike = {tuple(str(fault.get(key)) for key in ("fault", "path", "decided", "file", "line", "expected"))
             for fault in faults}
    assert len(r.all("#view-run .findings li")) == len(alike)
    assert r.row_count("run") == r.js("return foldRows(runStats.tensors, foldTensors).length")
    assert len(r.all("#view-run .exponents")) == len(r.rows("run")) > 0


CHECKS = [opens, overview_is_told, headers_and_numbers_are_whole, edges_pass_nodes_by, contrast_is_enough, tabs_switch,
          node_is_told_when_clicked, op_is_told, blocks_open_and_close, ops_are_found, ops_are_sorted,
          keyboard_is_enough, batch_counts, kernels_are_told, memory_moves, comparison_is_told, lint_is_told,
          training_is_told, theme_switches, is_accessible, nothing_was_logged]


def check_report(browser, path, shots, seconds):
    report = Report(browser, path, shots)
    checks = list(CHECKS)
    if seconds:
        def is_quick(r):
            assert r.seconds < seconds, f"it took {r.seconds:.2f} s to open"
        checks.insert(0, is_quick)
    for check in checks:
        what = f"{path.stem}: {check.__name__.replace('_', ' ')}"
        try:
            check(report)
            print("pass", what)
        except Exception as why:  # a report's other checks go on
            report.shot("failed-" + check.__name__)
            report.search("")
            print(f"FAIL {what}: {type(why).__name__}: {' '.join(str(why).split())[:600]}")


def main():
    arguments = sys.argv[1:]
    shots = pathlib.Path(arguments.pop(0))
    seconds = None
    if arguments[0] == "--seconds":
        seconds = float(arguments[1])
        del arguments[:2]
    shots.mkdir(parents=True, exist_ok=True)
    browser = start()
    try:
        for path in arguments:
            check_report(browser, pathlib.Path(path), shots, seconds)
    finally:
        browser.quit()


if __name__ == "__main__":
    main()
