# SPDX-License-Identifier: Apache-2.0
"""The report's page in a real browser, light and dark, wide and narrow: nothing is empty, runs over or is hard to read,
nothing is loaded, nothing is logged. Screenshots go to the build directory. Skipped without chromium."""

import base64
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hakozuna_lab.paths import BUILD
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

CHECKS = Path(__file__).with_name("page_checks.js").read_text(encoding="utf-8")
SCREENSHOTS = BUILD / "test/lab"
# Each is put into the page to see that the checks find it: (script, what is found)
SPOILERS = [
    ("document.body.insertAdjacentHTML('beforeend', '<div style=\"width: 5000px\">x</div>')", "the page is"),
    ("document.querySelector('td').style.color = 'var(--rule)'", "contrast"),
    ("document.querySelector('svg text').style.fill = 'var(--page)'", "contrast"),
    ("document.documentElement.style.setProperty('--behind4', 'var(--ink)')", "contrast"),
    ("document.querySelector('svg text').textContent = 'x'.repeat(500)", "outside of its picture"),
    ("document.querySelector('svg').replaceChildren()", "empty picture"),
    ("document.querySelector('tbody').replaceChildren()", "empty table"),
    ("document.querySelector('td').textContent = 'nan M'", "no value"),
    ("document.querySelector('h2').nextElementSibling.replaceChildren()", "nothing under"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    driver, chromium = shutil.which("chromedriver"), shutil.which("chromium")
    if not driver or not chromium:
        pytest.skip("chromium and chromium-driver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for argument in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # which does not work for root
    opened = webdriver.Chrome(options=options, service=Service(driver))
    yield opened
    opened.quit()


def show(browser: webdriver.Chrome, page: Path, scheme: str, width: int) -> None:
    """In a window as high as the page."""
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    for height in (1000, None):
        metrics = {"width": width, "height": height or page_height(browser), "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        if height:
            browser.get(page.as_uri())


def page_height(browser: webdriver.Chrome) -> int:
    return int(browser.execute_script("return document.documentElement.scrollHeight"))


def log(browser: webdriver.Chrome) -> list[str]:
    return [str(entry["message"]) for entry in browser.get_log("browser")]  # type: ignore[no-untyped-call]


def screenshot(browser: webdriver.Chrome, name: str) -> Path:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    path = SCREENSHOTS / name
    path.write_bytes(base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", {})["data"]))
    return path


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page(browser: webdriver.Chrome, page: Path, scheme: str, width: int) -> None:
    show(browser, page, scheme, width)
    assert browser.execute_script(CHECKS) == []
    assert log(browser) == []
    ground = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (int(ground.removeprefix("rgb(").partition(",")[0]) > 128) == (scheme == "light")
    assert screenshot(browser, f"report-{scheme}-{width}.png").stat().st_size > 50_000


@pytest.mark.parametrize(("script", "found"), SPOILERS)
def test_the_checks_see_what_is_wrong(browser: webdriver.Chrome, page: Path, script: str, found: str) -> None:
    show(browser, page, "light", 1280)
    browser.execute_script(script)
    assert [line for line in browser.execute_script(CHECKS) if line.startswith(found)]


def test_errors_are_logged(browser: webdriver.Chrome, page: Path) -> None:
    broken = page.with_name("broken.html")
    broken.write_text(page.read_text(encoding="utf-8").replace("</body>", "<script>nothing()</script></body>"))
    show(browser, broken, "light", 1280)
    assert "nothing is not defined" in log(browser)[0]


def test_a_picture_alone_follows_the_scheme(browser: webdriver.Chrome, page: Path) -> None:
    inks = []
    for scheme in ("light", "dark"):
        show(browser, page.with_name("heat-hz3.svg"), scheme, 800)
        inks.append(browser.execute_script("return getComputedStyle(document.querySelector('text')).fill"))
    assert inks[0] != inks[1]
