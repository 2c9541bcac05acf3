# SPDX-License-Identifier: Apache-2.0
"""A browser without a window, for the tests that look at pages as a reader sees them: the report and the site. Starting
it takes about a second, so the tests share one (conftest.py). Screenshots go to the build directory."""

import base64
import os
import shutil
from pathlib import Path

import pytest
from hakozuna_lab.paths import BUILD
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

SCREENSHOTS = BUILD / "test/lab"


def start() -> webdriver.Chrome:
    """Skips the test where there is no chromium."""
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
    return webdriver.Chrome(options=options, service=Service(driver))


def show(browser: webdriver.Chrome, address: str, scheme: str, width: int) -> None:
    """In a window as high as the page."""
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    for height in (1000, None):
        metrics = {"width": width, "height": height or page_height(browser), "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        if height:
            browser.get(address)


def page_height(browser: webdriver.Chrome) -> int:
    return int(browser.execute_script("return document.documentElement.scrollHeight"))


def log(browser: webdriver.Chrome) -> list[str]:
    return [str(entry["message"]) for entry in browser.get_log("browser")]  # type: ignore[no-untyped-call]


def screenshot(browser: webdriver.Chrome, name: str) -> Path:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    path = SCREENSHOTS / name
    path.write_bytes(base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", {})["data"]))
    return path
