"""The page in a real browser, without a network: it opens, reads, answers, and fits the screen."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pages import check_of, judged, page_for, stub
from power_maps import MAP

import validation
from abi.report.assemble import page_of
from abi.report.fit_page import prepare
from validation.page import render

pytest.importorskip("matplotlib")
webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="no chromium and chromedriver"
)
WORDS = (
    "headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run",
    "disable-background-networking", "disable-component-update", "disable-sync", "hide-scrollbars",
    "force-prefers-reduced-motion",
)  # fmt: skip


def start(profile: Path) -> Any:
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for word in (*WORDS, f"user-data-dir={profile}"):
        options.add_argument(f"--{word}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(DRIVER))
    browser.execute_cdp_cmd("Network.enable", {})
    browser.execute_cdp_cmd(
        "Network.emulateNetworkConditions",
        {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0},
    )
    return browser


@pytest.fixture(scope="module")
def pages(
    tmp_path_factory: pytest.TempPathFactory, report: validation.Report, hundred: str
) -> dict[str, Path]:
    from validation.report import report_data

    folder = tmp_path_factory.mktemp("pages")
    fit = prepare(stub(3), 0, 0, "fit1")
    tests = [("tests.json", report_data(report, ["a", "b"]))]
    made = {
        "both": render(page_of([fit], tests, None, ())),
        "hundred": hundred,
        "judged": page_for(judged(stub(20), check_of(20, 0.001, 0.9))),
        "map": render(page_of([], [], None, (), [("power.json", MAP)])),
        "rare": page_for(judged(stub(3), check_of(3, 0.001, 0.9), x_o_p_value=0.002)),
    }
    for name, text in made.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in made}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    found = start(tmp_path_factory.mktemp("profile"))
    yield found
    found.quit()


def open_page(browser: Any, path: Path, width: int = 1400) -> None:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
    )
    browser.get(path.as_uri())


@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("name", ["both", "hundred", "judged", "map"])
def test_the_page_opens_without_errors_and_fits_the_screen(
    browser: Any, pages: dict[str, Path], name: str, width: int
) -> None:
    open_page(browser, pages[name], width)
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    # Labels end inside their pictures' boxes (2 px for the rounding of fonts), and none overlap.
    outside = browser.execute_script(
        """
        const bad = [];
        for (const picture of document.querySelectorAll(".picture")) {
          const box = picture.getBoundingClientRect();
          if (!box.width) continue;
          const labels = [...picture.querySelectorAll("text")].map((t) => [t.textContent,
            t.getBoundingClientRect()]);
          for (const [i, [words, b]] of labels.entries()) {
            if (b.left < box.left - 2 || b.right > box.right + 2 || b.top < box.top - 2 ||
                b.bottom > box.bottom + 2) bad.push(["outside", words]);
            for (const [other, c] of labels.slice(i + 1)) {
              const w = Math.min(b.right, c.right) - Math.max(b.left, c.left);
              const h = Math.min(b.bottom, c.bottom) - Math.max(b.top, c.top);
              if (w > 1 && h > 3) bad.push(["overlap", words, other]);
            }
          }
        }
        return bad;
        """
    )
    assert outside == []


def test_the_first_screen_holds_the_answer_the_verdict_and_one_picture(
    browser: Any, pages: dict[str, Path]
) -> None:
    ends = """return [...document.querySelectorAll("#verdict, .first .picture")].map(
          (part) => part.getBoundingClientRect().bottom)"""
    for name in ("judged", "rare"):
        open_page(browser, pages[name], 1280)
        found = browser.execute_script(ends)
        assert len(found) == 2
        assert max(found) <= 800  # of a laptop's screen
    first = "return document.querySelector('main').children[1].className"
    assert browser.execute_script(first) == "notice"


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["both", "hundred", "judged", "map", "rare"])
def test_no_box_cuts_what_it_holds_or_it_says_that_it_scrolls(
    browser: Any, pages: dict[str, Path], name: str, width: int
) -> None:
    open_page(browser, pages[name], width)
    cut = browser.execute_script(
        """
        document.querySelectorAll("details").forEach((part) => { part.open = true; });
        dispatchEvent(new Event("resize"));
        return [...document.querySelectorAll("main *")].filter((part) =>
          !part.closest("svg, .wider, .unseen") && part.clientWidth > 1 && !part.matches("thead *")
          && part.scrollWidth > part.clientWidth + 2).map((part) => part.outerHTML.slice(0, 90));
        """
    )
    assert cut == []
    if width == 390:
        wider = "return [...document.querySelectorAll('.wider table')].map((t) => t.className)"
        assert all(word != "cards" for word in browser.execute_script(wider))


def test_the_reader_chooses_parameters(browser: Any, pages: dict[str, Path]) -> None:
    from selenium.webdriver.common.by import By

    open_page(browser, pages["both"])
    boxes = browser.find_elements(By.CSS_SELECTOR, ".choices input")
    shown = ".triangle td:not(.empty) .picture"

    def count() -> int:
        return sum(e.is_displayed() for e in browser.find_elements(By.CSS_SELECTOR, shown))

    assert count() == 6
    boxes[0].click()
    assert count() == 3
    boxes[0].send_keys(" ")
    assert count() == 6


def test_pictures_are_read_by_pointer_and_by_keys(browser: Any, pages: dict[str, Path]) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    open_page(browser, pages["both"])
    picture = browser.find_element(By.CSS_SELECTOR, ".picture[data-readout]")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", picture)
    ActionChains(browser).move_to_element(picture).perform()
    says = picture.find_element(By.XPATH, "following-sibling::span[@class='says']")
    # The middle of a symmetric picture of a standard normal.
    assert says.is_displayed()
    assert says.text.startswith("theta_1")
    share = int(says.text.split("below: ")[1].split(" ")[0])
    assert 35 <= share <= 65
    slide = picture.find_element(By.XPATH, "following-sibling::input")
    slide.send_keys(Keys.HOME)
    assert slide.get_attribute("aria-valuetext").endswith("below: 0 %")
    slide.send_keys(Keys.END)
    assert slide.get_attribute("aria-valuetext").endswith("below: 100 %")


def test_tables_are_sorted_and_filtered(browser: Any, pages: dict[str, Path]) -> None:
    from selenium.webdriver.common.by import By

    open_page(browser, pages["hundred"])
    table = browser.find_element(By.CSS_SELECTOR, "table[data-sortable]")
    means = "return [...arguments[0].tBodies[0].rows].map((r) => Number(r.cells[2].dataset.value))"
    table.find_elements(By.CSS_SELECTOR, "thead button")[1].click()
    values = browser.execute_script(means, table)
    assert values == sorted(values)
    assert table.find_element(By.CSS_SELECTOR, "[aria-sort=ascending]").text.startswith("mean")
    browser.find_element(By.CSS_SELECTOR, "input[type=search]").send_keys("theta_10")
    rows = table.find_elements(By.CSS_SELECTOR, "tbody tr")
    assert sum(row.is_displayed() for row in rows) == 2  # theta_10 and theta_100


def test_a_power_map_is_sorted_by_strength_with_what_is_not_seen_last(
    browser: Any, pages: dict[str, Path]
) -> None:
    from selenium.webdriver.common.by import By

    open_page(browser, pages["map"])
    table = browser.find_element(By.CSS_SELECTOR, "table[data-sortable]")
    table.find_elements(By.CSS_SELECTOR, "thead button")[2].click()  # c2st
    rows = [row.text for row in table.find_elements(By.CSS_SELECTOR, "tbody th")]
    assert rows == ["too wide", "correlated <0.7>"]
    table.find_elements(By.CSS_SELECTOR, "thead button")[2].click()
    rows = [row.text for row in table.find_elements(By.CSS_SELECTOR, "tbody th")]
    assert rows == ["correlated <0.7>", "too wide"]
    table.find_elements(By.CSS_SELECTOR, "thead button")[1].click()  # sbc sees one of them
    rows = [row.text for row in table.find_elements(By.CSS_SELECTOR, "tbody th")]
    assert rows == ["too wide", "correlated <0.7>"]
    shades = [
        cell.value_of_css_property("background-color")
        for cell in table.find_elements(By.CSS_SELECTOR, "td.heat4, td.heat2")
    ]
    assert len(set(shades)) == 2


def test_colours_follow_the_system_and_the_button(browser: Any, pages: dict[str, Path]) -> None:
    from selenium.webdriver.common.by import By

    open_page(browser, pages["both"])
    ground = "return getComputedStyle(document.body).backgroundColor"
    line = "return getComputedStyle(document.querySelector('.picture path[style*=posterior]')).fill"

    def prefer(scheme: str) -> tuple[str, str]:
        browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
        )
        return browser.execute_script(ground), browser.execute_script(line)

    light, dark = prefer("light"), prefer("dark")
    assert light[0] == "rgb(251, 250, 247)"
    assert dark[0] == "rgb(21, 24, 28)"
    browser.find_element(By.ID, "theme").click()
    assert browser.execute_script(ground) == light[0]
    browser.find_element(By.ID, "theme").click()
    prefer("light")
    assert browser.execute_script(ground) == dark[0]


def test_code_can_be_taken_along(browser: Any, pages: dict[str, Path]) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    open_page(browser, pages["both"])
    button = browser.find_element(By.CSS_SELECTOR, "button.copy")
    button.click()
    WebDriverWait(browser, 5).until(lambda _: button.text.split(":")[0] in ("Copied", "Selected"))
    assert browser.get_log("browser") == []


def test_the_keyboard_reaches_the_content_first(browser: Any, pages: dict[str, Path]) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    open_page(browser, pages["both"])
    ActionChains(browser).send_keys(Keys.TAB).perform()
    assert browser.switch_to.active_element.text == "Skip to the content"
    ActionChains(browser).send_keys(Keys.ENTER).perform()
    assert browser.switch_to.active_element.get_attribute("id") == "main"


def test_everything_is_there_without_javascript_and_on_paper(
    browser: Any, pages: dict[str, Path]
) -> None:
    texts = []
    for disabled in (False, True):
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": disabled})
        open_page(browser, pages["both"])
        texts.append(browser.execute_script("return document.querySelector('main').innerText"))
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    paper = browser.execute_script("return document.querySelector('main').innerText")
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})["data"]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    kept = [line for line in texts[0].splitlines() if line.strip() and line.strip() != "Copy"]
    missing = [line for line in kept if line not in texts[1]]
    assert missing == []
    for words in ("Rejected by", "What this rests on", "Simulation-based calibration", "To repeat"):
        assert words in paper
    assert len(printed) > 10_000
