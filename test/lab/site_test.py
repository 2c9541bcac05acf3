# SPDX-License-Identifier: Apache-2.0
"""The pages of the tree as a site (site/mkdocs.yml): it is built without a dead link, and a browser finds in it what a
reader needs: search, pictures, tables that sort, pages that fit a phone, nothing from elsewhere. Building takes four
seconds, and all tests share the site."""

import functools
import http.server
import os
import re
import runpy
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]  # of MkDocs
from browsing import log, screenshot, show
from hakozuna_lab.paths import ROOT
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

SECONDS = 20
NINE_LINES = "doc/results/2026-11-30-nine-lines/"
WIDE = ("", "doc/lanes/", "doc/decisions/", NINE_LINES, "doc/results/2026-11-30-real-programs/")


def build(tree: Path, site: Path) -> str:
    """What MkDocs says; nothing when all is well."""
    command = [sys.executable, "-B", "-m", "mkdocs", "build", "--strict", "-f", "site/mkdocs.yml", "-d", str(site)]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # an advertisement of the theme's
    done = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr if done.returncode else ""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name is the library's
        pass


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    assert build(ROOT, folder) == ""
    return folder


@pytest.fixture(scope="session")
def site(folder: Path) -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def wait_for(browser: webdriver.Chrome, selector: str) -> WebElement:
    def seen(driver: webdriver.Chrome) -> list[WebElement]:
        return [one for one in driver.find_elements(By.CSS_SELECTOR, selector) if one.is_displayed()]

    return WebDriverWait(browser, SECONDS).until(seen)[0]


def test_every_page_of_the_tree_is_there(folder: Path) -> None:
    for page in (ROOT / "doc").rglob("*.md"):
        place = page.relative_to(ROOT).with_suffix("")
        assert (folder / (place.parent if place.name == "README" else place) / "index.html").is_file(), page


def test_what_leads_nowhere_ends_the_build(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "site", tmp_path / "site")
    (tmp_path / "doc").mkdir()
    for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE", "doc/page.md"):
        (tmp_path / name).write_text("# Page\n", encoding="utf-8")
    good = "# All\n\n[page](doc/page.md#page)\n"
    (tmp_path / "README.md").write_text(good, encoding="utf-8")
    assert build(tmp_path, tmp_path / "good") == ""
    bad = "[page](doc/nowhere.md) [heading](doc/page.md#nothing) ![picture](doc/picture.svg)\n"
    (tmp_path / "README.md").write_text(good + bad, encoding="utf-8")
    said = build(tmp_path, tmp_path / "bad")
    assert "Aborted with 3 warnings" in said
    for dead in ("'doc/nowhere.md'", "'doc/page.md#nothing'", "'doc/picture.svg'"):
        assert dead in said


def test_the_parts_of_the_site_have_their_pages() -> None:
    """One that is not there would be left out without a word."""
    hooks = runpy.run_path(str(ROOT / "site/hooks.py"))
    names = hooks["USING"] + hooks["WORKING"]
    assert len(set(names)) == len(names)
    assert [name for name in names if not (ROOT / f"doc/{name}.md").exists()] == []


def test_the_navigation_leads_to_the_glossary_and_to_the_guides(folder: Path) -> None:
    first = (folder / "index.html").read_text(encoding="utf-8")
    for place in ("doc/design/", "doc/guides/kubernetes/"):
        assert f'href="{place}"' in first
    assert "Design, and the glossary" in first


@pytest.mark.parametrize("word", ["purger", "tuning", "kubernetes", "container"])
def test_search_finds_a_word(browser: webdriver.Chrome, site: str, word: str) -> None:
    show(browser, site, "light", 1280)
    wait_for(browser, "input.md-search__input").send_keys(word)
    assert word in wait_for(browser, "li.md-search-result__item").text.lower()
    wait_for(browser, "a.md-search-result__link").click()
    WebDriverWait(browser, SECONDS).until(lambda driver: driver.current_url != site)
    assert word in browser.find_element(By.TAG_NAME, "article").text.lower()


def test_manifests_of_the_guides_are_whole() -> None:
    """Each document of Kubernetes, whose containers preload the library by the name that it has."""
    blocks = re.findall(
        r"^```yaml\n(.*?)^```$", (ROOT / "doc/guides/kubernetes.md").read_text(), re.MULTILINE | re.DOTALL
    )
    assert blocks
    for block in blocks:
        manifest = yaml.safe_load(block)
        assert {"apiVersion", "kind", "metadata", "spec"} <= set(manifest)
        pod = manifest["spec"]["template"]["spec"]
        library = {variable["value"] for one in pod["containers"] for variable in one.get("env", [])
                   if variable["name"] == "LD_PRELOAD"}  # fmt: skip
        assert library == set(re.findall(r"^ENV LD_PRELOAD=(.*)$", (ROOT / "Containerfile").read_text(), re.MULTILINE))


def test_pictures_have_come(browser: webdriver.Chrome, folder: Path, site: str) -> None:
    pages = [page.parent for page in folder.rglob("index.html") if "<img" in page.read_text(encoding="utf-8")]
    assert folder in pages  # README's own
    for page in pages:
        show(browser, f"{site}{page.relative_to(folder)}/", "dark", 1280)
        widths = browser.execute_script("return [...document.images].map((image) => image.naturalWidth)")
        assert widths, page
        assert min(widths) > 0, page


@pytest.mark.parametrize("page", WIDE)
def test_no_page_is_wider_than_a_phone(browser: webdriver.Chrome, site: str, page: str) -> None:
    show(browser, site + page, "light", 400)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 400
    assert screenshot(browser, f"site-{page.rstrip('/').replace('/', '-') or 'first'}-400.png").stat().st_size > 20_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_first_page_follows_the_scheme_and_loads_nothing_from_elsewhere(
    browser: webdriver.Chrome, site: str, scheme: str
) -> None:
    log(browser)
    show(browser, site, scheme, 1280)
    ground = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    lightness = ground.removeprefix("rgb(").removeprefix("rgba(").partition(",")[0]
    assert (int(lightness) > 128) == (scheme == "light"), ground
    loaded = browser.execute_script("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert loaded
    assert [name for name in loaded if not name.startswith(site)] == []
    assert log(browser) == []
    assert screenshot(browser, f"site-first-{scheme}.png").stat().st_size > 50_000


def test_a_table_sorts_itself_by_numbers(browser: webdriver.Chrome, site: str) -> None:
    show(browser, site + NINE_LINES, "light", 1280)
    browser.find_element(By.CSS_SELECTOR, "article details summary").click()  # its rows, which are a file of data
    heads = browser.find_elements(By.CSS_SELECTOR, "article details table th button")
    titles = [head.text for head in heads]
    column = titles.index("ops_per_s")
    script = f"""return [...document.querySelectorAll('article details table')[0].tBodies[0].rows].map(
        (row) => row.cells[{column}].textContent)"""

    def speeds() -> list[float]:
        return [float(text) for text in browser.execute_script(script)]

    as_written = speeds()
    heads[column].click()
    assert speeds() == sorted(as_written) != as_written
    heads[column].click()
    assert speeds() == sorted(as_written, reverse=True)


@pytest.mark.parametrize("page", sorted((ROOT / "doc/results").glob("20*.md")), ids=lambda page: page.stem)
def test_a_page_of_results_begins_with_what_came_out(page: Path) -> None:
    """Two to six sentences, that fit a screen."""
    _, title, summary, *_ = re.split(r"\n(?=# )|\n\n", page.read_text(encoding="utf-8"))
    assert title.startswith("# ")
    assert summary.startswith("**In short.** ")
    told = summary.removeprefix("**In short.** ")
    assert 2 <= len(re.findall(r"[.)](?:\s+(?=[A-Za-z])|$)", told)) <= 6
    assert len(told) < 900
