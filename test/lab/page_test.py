# SPDX-License-Identifier: Apache-2.0
"""The report's page in a real browser, light and dark, wide and narrow: nothing is empty, runs over or is hard to read,
nothing is loaded, nothing is logged. Screenshots go to the build directory. Skipped without chromium."""

from pathlib import Path

import pytest
from browsing import log, screenshot, show
from selenium import webdriver

CHECKS = Path(__file__).with_name("page_checks.js").read_text(encoding="utf-8")
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


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page(browser: webdriver.Chrome, page: Path, scheme: str, width: int) -> None:
    show(browser, page.as_uri(), scheme, width)
    assert browser.execute_script(CHECKS) == []
    assert log(browser) == []
    ground = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (int(ground.removeprefix("rgb(").partition(",")[0]) > 128) == (scheme == "light")
    assert screenshot(browser, f"report-{scheme}-{width}.png").stat().st_size > 50_000


@pytest.mark.parametrize(("script", "found"), SPOILERS)
def test_the_checks_see_what_is_wrong(browser: webdriver.Chrome, page: Path, script: str, found: str) -> None:
    show(browser, page.as_uri(), "light", 1280)
    browser.execute_script(script)
    assert [line for line in browser.execute_script(CHECKS) if line.startswith(found)]


def test_errors_are_logged(browser: webdriver.Chrome, page: Path) -> None:
    broken = page.with_name("broken.html")
    broken.write_text(page.read_text(encoding="utf-8").replace("</body>", "<script>nothing()</script></body>"))
    show(browser, broken.as_uri(), "light", 1280)
    assert "nothing is not defined" in log(browser)[0]


def test_a_picture_alone_follows_the_scheme(browser: webdriver.Chrome, page: Path) -> None:
    inks = []
    for scheme in ("light", "dark"):
        show(browser, page.with_name("heat-hz3.svg").as_uri(), scheme, 800)
        inks.append(browser.execute_script("return getComputedStyle(document.querySelector('text')).fill"))
    assert inks[0] != inks[1]
