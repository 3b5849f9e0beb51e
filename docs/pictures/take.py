"""Takes pictures in a headless Chromium; docs/pictures/make calls it.

    take.py FOLDER PICTURES    FOLDER: gpt2.html, prices.html, watch.txt, editor.ansi; PICTURES: where PNGs go
"""
import html
import pathlib
import re
import sys

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

BASIC = ["#000000", "#b3261e", "#1b7f3b", "#8a6100", "#1f5fbf", "#8e3fa8", "#00707a", "#c8c8c8"]
PAGE = """<!doctype html><meta charset="utf-8"><style>
body { margin: 0; background: #fff }
pre { display: inline-block; margin: 0; padding: 12px 14px; font: 14px/1.3 "DejaVu Sans Mono", "DejaVu Sans";
      color: #14161b; background: #fafafa; border: 1px solid #d0d0d0; border-radius: 6px }
</style><pre>"""


class Style:
    """What escape sequences have set: colours, and which of bold, italic, underlined, reversed."""

    def __init__(self):
        self.text = self.back = None
        self.set = set()

    def apply(self, codes):
        codes = [int(code or 0) for code in codes.split(";")]
        while codes:
            code = codes.pop(0)
            if code == 0:
                self.__init__()
            elif code in (1, 3, 4, 7):
                self.set.add(code)
            elif code in (22, 23, 24, 27):
                self.set.discard(code - 20 if code != 22 else 1)
            elif code in (38, 48):
                used = 2 if codes[0] == 5 else 4
                colour = BASIC[codes[1] % 8] if used == 2 else "#%02x%02x%02x" % tuple(codes[1:4])
                codes = codes[used:]
                self.text, self.back = (colour, self.back) if code == 38 else (self.text, colour)
            elif code == 39:
                self.text = None
            elif code == 49:
                self.back = None
            elif 30 <= code < 38 or 90 <= code < 98:
                self.text = BASIC[code % 10]
            elif 40 <= code < 48 or 100 <= code < 108:
                self.back = BASIC[code % 10]

    def css(self):
        text, back = (self.back or "#fafafa", self.text or "#14161b") if 7 in self.set else (self.text, self.back)
        return ";".join(part for part in (
            text and f"color:{text}", back and f"background:{back}", 1 in self.set and "font-weight:bold",
            3 in self.set and "font-style:italic", 4 in self.set and "text-decoration:underline") if part)


def terminal_page(text):
    """The screen of a terminal, as a page."""
    style, out = Style(), []
    for part in re.split(r"(\x1b\[[0-9;:]*m)", text.rstrip("\n")):
        if part.startswith("\x1b["):
            style.apply(part[2:-1].replace(":", ";"))
        elif part:
            out.append(f'<span style="{style.css()}">{html.escape(part)}</span>')
    return PAGE + "".join(out) + "</pre>"


def start():
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    options.binary_location = "/usr/bin/chromium"
    return webdriver.Chrome(options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))


def size_page(browser, width, height):
    """Of what is shown, without the window's own edges."""
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})


def take_terminal(browser, source, picture):
    page = source.with_suffix(".page.html")
    page.write_text(terminal_page(source.read_text()))
    size_page(browser, 1400, 1200)
    browser.get(page.resolve().as_uri())
    browser.find_element(By.TAG_NAME, "pre").screenshot(str(picture))


def open_report(browser, report, width, height):
    size_page(browser, width, height)
    browser.get(report.resolve().as_uri())
    browser.find_element(By.CSS_SELECTOR, "svg .node")
    if "dark" in browser.execute_script("return document.documentElement.dataset.theme || ''"):
        browser.find_element(By.ID, "theme").click()


def take_graph(browser, report, picture):
    """A layer of GPT-2, and what is told of its layer norm."""
    open_report(browser, report, 1280, 717)
    browser.find_element(By.ID, "find").send_keys("h.0.ln_2.layer_norm" + Keys.ENTER)
    browser.execute_script("document.activeElement.blur()")
    browser.save_screenshot(str(picture))


def take_training(browser, report, picture):
    open_report(browser, report, 1280, 700)
    browser.find_element(By.ID, "tab-run").click()
    browser.find_element(By.CSS_SELECTOR, "#view-run .findings a, #view-run .findings button").click()
    browser.find_element(By.ID, "tab-run").click()
    browser.save_screenshot(str(picture))


def main(folder, pictures):
    folder, pictures = pathlib.Path(folder), pathlib.Path(pictures)
    browser = start()
    try:
        take_graph(browser, folder / "gpt2.html", pictures / "graph.png")
        take_training(browser, folder / "prices.html", pictures / "training.png")
        take_terminal(browser, folder / "watch.txt", pictures / "watch.png")
        take_terminal(browser, folder / "editor.ansi", pictures / "editor.png")
    finally:
        browser.quit()


main(*sys.argv[1:])
