# SPDX-License-Identifier: Apache-2.0
"""The page of `hz prof --flame` in a real browser, light and dark, wide and narrow: nothing is hard to read, loaded or
logged; clicks, keys, search and the buttons do what they say; names are text whatever is in them. Screenshots go to the
build directory. Skipped without chromium."""

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from browsing import log, screenshot, show
from hakozuna_observe import flame
from hakozuna_observe.profile import Figures
from hakozuna_observe.symbols import Frame
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

CHECKS = Path(__file__).with_name("page_checks.js").read_text(encoding="utf-8")
HOSTILE = "</script><script>document.title='x'</script><img src=x onerror=\"document.title='y'\">&amp;@@DATA@@"
MIB = 1 << 20

Shop = Callable[..., Path]


def figures(live: int, allocated: int = 0, peak: int = 0) -> Figures:
    return Figures(live // 64, live, allocated // 64, allocated, peak // 64, peak, 100)


def stack(*names: str) -> tuple[Frame, ...]:
    """Main is the first of the names, and the last of a stack."""
    modules = {"malloc_more": "/usr/lib/libmore.so", "[anon]": "[anon]"}
    return tuple(Frame(name, "shop.cpp", 7, modules.get(name, "/usr/bin/shop"), True) for name in reversed(names))


SITES = [
    (stack("main", "serve", "shop::Cart<int>::grow(int)"), figures(6 * MIB, 60 * MIB, 8 * MIB)),
    (stack("main", "serve", "malloc_more"), figures(2 * MIB, 20 * MIB, 3 * MIB)),
    (stack("main", "load", "shop::Cart<int>::grow(int)"), figures(1 * MIB, 1 * MIB, 1 * MIB)),
    (stack("main", "load", HOSTILE), figures(1 * MIB, 1 * MIB, 1 * MIB)),
    (stack("[anon]"), figures(0, 5 * MIB, 0)),
]


@pytest.fixture
def shop(tmp_path: Path, browser: webdriver.Chrome) -> Shop:
    """Shows the page of these sites."""

    def open_(
        *, sites: flame.Sites = SITES, before: flame.Sites | None = None, width: int = 1600, scheme: str = "light"
    ) -> Path:
        page = tmp_path / "page.html"
        page.write_text(flame.render(f"shop {HOSTILE}", ["live 10 MiB", HOSTILE], "live", sites, before))
        log(browser)
        show(browser, page.as_uri(), scheme, width)
        return page

    return open_


def labels(browser: webdriver.Chrome) -> list[str]:
    return list(browser.execute_script("return [...document.querySelectorAll('.frame')].map((one) => one.textContent)"))


def width_of(browser: webdriver.Chrome, name: str) -> float:
    """Of the first box of that name, beside the whole."""
    return float(
        browser.execute_script(
            "const all = [...document.querySelectorAll('.frame')];"
            "const one = all.find((box) => box.textContent === arguments[0]);"
            "return one.getBoundingClientRect().width / document.getElementById('graph').clientWidth",
            name,
        )
    )


def click(browser: webdriver.Chrome, name: str) -> None:
    boxes = [*browser.find_elements("css selector", ".frame"), *browser.find_elements("css selector", "button")]
    next(one for one in boxes if one.text == name).click()


def press(browser: webdriver.Chrome, *keys: str) -> None:
    ActionChains(browser).send_keys(*keys).perform()


@pytest.mark.parametrize(
    ("form", "scheme", "width"),
    [("one", "light", 1600), ("one", "dark", 600), ("difference", "dark", 1600), ("difference", "light", 600)],
)
def test_page(form: str, scheme: str, width: int, shop: Shop, browser: webdriver.Chrome) -> None:
    before = [(frames, figures(3 * MIB)) for frames, _ in SITES[:3]] if form == "difference" else None
    shop(before=before, scheme=scheme, width=width)
    assert [line for line in browser.execute_script(CHECKS) if not line.startswith("no value")] == []
    assert log(browser) == []
    ground = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (int(ground.removeprefix("rgb(").partition(",")[0]) > 128) == (scheme == "light")
    assert screenshot(browser, f"flame-{form}-{scheme}-{width}.png").stat().st_size > 10_000


def test_widths_are_shares_and_names_are_text(shop: Shop, browser: webdriver.Chrome) -> None:
    shop()
    assert browser.title == f"shop {HOSTILE}"
    assert browser.find_elements("css selector", "img") == []
    assert HOSTILE in labels(browser)
    assert width_of(browser, "serve") == pytest.approx(0.8, abs=0.01)
    assert width_of(browser, "load") == pytest.approx(0.2, abs=0.01)
    assert "[anon]" not in labels(browser)
    click(browser, "allocated")
    assert width_of(browser, "[anon]") == pytest.approx(5 / 87, abs=0.01)
    assert width_of(browser, "serve") == pytest.approx(80 / 87, abs=0.01)
    click(browser, "from malloc up")
    assert width_of(browser, "shop::Cart<>::grow") == pytest.approx(61 / 87, abs=0.01)
    assert log(browser) == []


def test_zoom_by_mouse_and_keys(shop: Shop, browser: webdriver.Chrome) -> None:
    shop()
    click(browser, "load")
    assert width_of(browser, "load") == pytest.approx(1, abs=0.01)
    assert width_of(browser, "shop::Cart<>::grow") == pytest.approx(0.5, abs=0.01)
    assert "serve" not in labels(browser)
    press(browser, Keys.ESCAPE)
    assert width_of(browser, "load") == pytest.approx(0.2, abs=0.01)
    press(browser, Keys.HOME, Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_RIGHT, Keys.ENTER)
    assert width_of(browser, "load") == pytest.approx(1, abs=0.01)
    press(browser, Keys.ARROW_UP)
    assert browser.switch_to.active_element.text == "main"
    press(browser, Keys.HOME)
    assert width_of(browser, "serve") == pytest.approx(0.8, abs=0.01)
    assert log(browser) == []


def test_search_and_what_a_box_tells(shop: Shop, browser: webdriver.Chrome) -> None:
    shop()
    press(browser, "/", "CART")
    found = browser.find_element("id", "found")
    assert found.text == "found in 70.0 %"
    assert len(browser.find_elements("css selector", ".frame.hit")) == 2
    press(browser, "q")
    assert found.text == "not found"
    press(browser, Keys.ESCAPE)
    assert found.text == ""
    box = next(one for one in browser.find_elements("css selector", ".frame") if one.text == "malloc_more")
    ActionChains(browser).move_to_element(box).perform()
    tip = browser.find_element("id", "tip")
    assert tip.text.splitlines() == [
        "malloc_more shop.cpp:7",
        "/usr/lib/libmore.so",
        "2.0 MiB in 32,768 blocks live, 20.0 % of all",
    ]
    press(browser, Keys.ARROW_DOWN, Keys.ARROW_DOWN)  # by keys as well
    assert tip.is_displayed()
    assert "10.0 MiB" in tip.text


def test_two_colours_of_a_difference(shop: Shop, browser: webdriver.Chrome) -> None:
    gone = [(stack("main", "gone"), figures(4 * MIB)), (stack("main", "kept"), figures(MIB))]
    come = [(stack("main", "come"), figures(5 * MIB)), (stack("main", "kept"), figures(MIB))]
    shop(sites=come, before=gone)
    colours = {
        one.text: str(one.get_attribute("style")).partition("background: ")[2].rstrip(";")
        for one in browser.find_elements("css selector", ".frame")
    }
    assert colours["gone"] == "var(--less3)"
    assert colours["come"] == "var(--more3)"
    assert colours["kept"] == "var(--level)"
    assert colours["main"] == "var(--more1)"
    assert width_of(browser, "gone") == pytest.approx(0.4, abs=0.01)


def test_nothing_to_see_and_much(shop: Shop, browser: webdriver.Chrome) -> None:
    shop(sites=[])
    assert "Nothing of it is live" in browser.find_element("tag name", "body").text
    chance = random.Random(5)
    sites = [
        (
            stack(*(f"f{level}_{number // 3 ** (11 - level)}" for level in range(12))),
            figures(int(chance.paretovariate(1) * 999)),
        )
        for number in range(10_000)
    ]
    began = time.monotonic()
    page = shop(sites=sites)
    assert page.stat().st_size < 8 * MIB
    assert time.monotonic() - began < 8
    assert log(browser) == []
    assert len(labels(browser)) > 100
