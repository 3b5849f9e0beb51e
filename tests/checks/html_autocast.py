"""The report of `ampc autocast --html` in a headless Chromium.

    html_autocast.py REPORT.html REPORT.json SHOT.png

Each check is one line, "pass WHAT" or "FAIL WHAT: why"; SHOT.png is a picture of the nodes.
"""
import json
import pathlib
import sys

from selenium.webdriver.common.by import By

import html_report


def check(what, good, why=""):
    print(f"pass {what}" if good else f"FAIL autocast: {what}: {why}")


def main(page, told, shot):
    told = json.loads(pathlib.Path(told).read_text(encoding="utf-8"))
    browser = html_report.start()
    browser.get(pathlib.Path(page).resolve().as_uri())

    def all_of(selector):
        return browser.find_elements(By.CSS_SELECTOR, selector)

    views = {"reasons": "groups", "nodes": "decisions", "casts": "cast_values", "weights": "weights",
             "ranges": "ranges"}
    for view, rows in views.items():
        all_of(f"#tab-{view}")[0].click()
        shown = len(all_of(f"#view-{view} tbody tr"))
        check(f"{view} has a row of each", shown == len(told[rows]) > 0, f"{shown} of {len(told[rows])}")
        all_of(f"#view-{view} tbody tr")[0].click()
        details = all_of("#details")[0].text
        check(f"a row of {view} is told", details.startswith("Overview\n") and len(details) > 20, details)
    all_of("#tab-nodes")[0].click()
    all_of("#find")[0].send_keys("matmul")
    check("nodes are found", len(all_of("#view-nodes tbody tr")) == 1)
    browser.save_screenshot(shot)
    results = html_report.Axe(browser)
    results.inject()
    faults = [v["id"] for v in results.run()["violations"] if v["impact"] in html_report.SERIOUS]
    check("is accessible", not faults, faults)
    log = browser.get_log("browser")
    check("nothing was logged", not log, log)
    browser.quit()


main(*sys.argv[1:])
