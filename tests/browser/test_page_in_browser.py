"""The page in a real browser: it can be read and used by everybody, asks nobody, and nothing in it acts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super.store.run_folder import RunFolder
from tests.browser.conftest import served, write_file
from tests.stored import a_result, a_run, a_step, add_trial
from tests.unit.test_page import HOSTILE, a_hostile_result, a_hostile_step, talk

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page, ViewportSize

pytestmark = pytest.mark.browser

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
PHONE: ViewportSize = {"width": 360, "height": 740}
DESKTOP: ViewportSize = {"width": 1280, "height": 900}


def a_mixed_run(folder: Path, name: str = "mixed", solved: int = 3) -> RunFolder:
    """Trials of all outcomes, with landmarks, long outputs and flags."""
    run = a_run(folder, name)
    landmark = {"pattern": "half way", "step": 1, "is_echo": True, "timed_out": False}
    for number in range(5):
        result = a_result(
            f"task{number}",
            accuracy=float(number < solved),
            category=("data", "goal")[number % 2],
            cost_usd=0.01 * number,
            compute_seconds=2.0 * number,
            steps=number,
            difference="n is 2, not 3",
            landmarks_found=[landmark],
            worker=f"gw{number % 2}",
            started=f"2026-11-23T10:15:{10 * number:02}.000+00:00",
        )
        steps = [
            a_step(1, thought="First I look.", observation="half way\n" + "line of output\n" * 500),
            a_step(2, type="submit", content='{"n": 2}'),
        ]
        add_trial(run, result, steps)
        talk(run, result, "Look.", f"and_{name}_" * 500)
    error: dict[str, Any] = {"metrics": {"accuracy": None}, "solved": False}
    add_trial(run, a_result("broken", error="the engine does not answer", stop_reason="error", **error))
    add_trial(run, a_result("stopped", error="Ctrl-C", stop_reason="interrupted", **error))
    return run


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with browser.new_context(viewport=DESKTOP) as context:
        yield context.new_page()


def barriers(browser: Browser, url: str, scheme: Any, viewport: Any) -> list[str]:
    """What axe finds on a page with everything open."""
    from axe_playwright_python.sync_playwright import Axe

    # Its own script is foreign to the page's policy.
    with browser.new_context(color_scheme=scheme, viewport=viewport, bypass_csp=True) as context:
        page = context.new_page()
        page.goto(url)
        page.evaluate("document.querySelectorAll('details').forEach((one) => one.open = true)")
        found = Axe().run(page, options={"runOnly": RULES, "resultTypes": ["violations"]}).response
        assert found["passes"]
        # Nothing has to be scrolled sideways.
        shown = "[...document.querySelectorAll('main *')].filter((one) => !one.closest('svg, [hidden]'))"
        cut = "(one) => one.getBoundingClientRect().right > innerWidth"
        assert page.evaluate(f"{shown}.filter({cut}).map((one) => one.outerHTML)") == []
        assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
        return [f"{one['id']}: {node['html']}" for one in found["violations"] for node in one["nodes"]]


# No rule of the page's style holds for one size and one scheme alone.
@pytest.mark.parametrize(("scheme", "viewport"), [("light", DESKTOP), ("dark", PHONE)])
def test_nobody_meets_a_barrier(browser: Browser, tmp_path: Path, scheme: str, viewport: Any) -> None:
    run, other = a_mixed_run(tmp_path), a_mixed_run(tmp_path, "other", solved=1)
    assert barriers(browser, write_file(run, tmp_path / "page.html"), scheme, viewport) == []
    with served(run.path, other.path) as url:
        for path in ("", "0/", "0/trials/task4/1.0"):
            assert barriers(browser, url + path, scheme, viewport) == []


def test_the_one_file_asks_nobody_for_anything(page: Page, tmp_path: Path) -> None:
    url = write_file(a_mixed_run(tmp_path), tmp_path / "page.html")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(url)
    page.locator("#trials a").first.click()
    page.wait_for_timeout(2500)
    assert asked == [url]


def test_hostile_output_does_nothing(page: Page, tmp_path: Path) -> None:
    run = a_run(tmp_path, arguments=[HOSTILE], versions={HOSTILE: HOSTILE})
    add_trial(run, a_hostile_result(HOSTILE), [a_hostile_step(HOSTILE)])
    talk(run, a_hostile_result(HOSTILE), HOSTILE)
    seen: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        seen.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismiss)
    page.on("console", lambda message: seen.append(message.text))
    page.on("pageerror", lambda error: seen.append(str(error)))
    with served(run.path) as served_url:
        for url in (
            write_file(run, tmp_path / "page.html"),
            served_url,
            f"{served_url}0/trials/mean/1.0",
            f"{served_url}0/trials/mean/1.0/trajectory.jsonl",
        ):
            page.goto(url)
            page.evaluate("document.querySelectorAll('details').forEach((one) => one.open = true)")
            assert page.locator("img, iframe, object, embed, link, base, [onerror]").count() == 0
            assert page.locator("script").count() <= 1
            assert page.evaluate("globalThis.caught") is None
    # Chromium asks a server for an icon by itself.
    assert [text for text in seen if "404" not in text] == []


def test_a_policy_forbids_even_an_element_that_came_through(page: Page, tmp_path: Path) -> None:
    page.goto(write_file(a_mixed_run(tmp_path), tmp_path / "page.html"))
    page.evaluate(
        """() => { document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='globalThis.caught=1'>");
        const script = document.createElement("script");
        script.textContent = "globalThis.caught = 1";
        document.body.append(script); }"""
    )
    page.wait_for_timeout(200)
    assert page.evaluate("globalThis.caught") is None


def test_the_keyboard_alone_leads_to_the_steps_of_a_trial(page: Page, tmp_path: Path) -> None:
    page.goto(write_file(a_mixed_run(tmp_path), tmp_path / "page.html"))
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "task4":
            break
    page.keyboard.press("Enter")
    page.wait_for_function("document.activeElement.closest('details.trial')?.open")
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('details')?.className") == "step":
            break
    step = page.locator("details.step:focus-within").first
    assert "Step 1" in step.inner_text()
    assert step.locator("pre").first.is_visible()
    page.keyboard.press("Enter")
    assert not step.locator("pre").first.is_visible()


def test_trials_are_filtered_and_sorted(page: Page, tmp_path: Path) -> None:
    page.goto(write_file(a_mixed_run(tmp_path), tmp_path / "page.html"))
    names = page.locator("#trials tbody tr:visible th")
    page.get_by_label("Outcome").select_option("missed")
    assert names.all_inner_texts() == ["task3", "task4"]
    assert page.locator("#found").inner_text() == "2 of 7"
    page.get_by_label("Outcome").select_option("")
    page.get_by_label("Text").fill("masked goal")
    assert names.all_inner_texts() == ["task3", "task1"]
    page.get_by_label("Text").fill("task")
    for _ in range(2):
        page.get_by_role("button", name="compute s").click()
    assert names.all_inner_texts() == [f"task{number}" for number in (4, 3, 2, 1, 0)]
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("compute s")


def test_a_page_follows_its_run_and_keeps_what_is_open_and_typed(page: Page, tmp_path: Path) -> None:
    run = a_mixed_run(tmp_path)
    with served(run.path) as url:
        page.goto(url)
        page.locator("#bars-table summary").click()
        page.get_by_label("Text").fill("task")
        page.get_by_label("Text").press("End")
        add_trial(run, a_result("task9"), [a_step()])
        page.locator("#trials tbody tr", has_text="task9").wait_for(timeout=15_000)
        assert page.locator("#bars-table").get_attribute("open") is not None
        assert page.get_by_label("Text").input_value() == "task"
        assert page.evaluate("document.activeElement.id") == "words"
        assert page.locator("#found").inner_text() == "6 of 8"
    page.get_by_text("The server does not answer").wait_for(timeout=30_000)


def test_a_trial_is_read_without_javascript(browser: Browser, tmp_path: Path) -> None:
    url = write_file(a_mixed_run(tmp_path), tmp_path / "page.html")
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(url)
        page.locator("details.trial", has_text="task4").locator("> summary").click()
        assert page.get_by_text("First I look.").locator("visible=true").count() == 1


def test_arrow_keys_lead_to_the_trials_before_and_after(page: Page, tmp_path: Path) -> None:
    with served(a_mixed_run(tmp_path).path) as url:
        page.goto(f"{url}0/trials/task3/1.0")
        page.keyboard.press("ArrowRight")
        page.wait_for_url("**/0/trials/task4/1.0")
        page.keyboard.press("Shift+ArrowLeft")
        page.keyboard.press("ArrowLeft")
        page.wait_for_url("**/0/trials/task3/1.0")
        assert page.url == f"{url}0/trials/task3/1.0"
