"""A real browser, without a window, that looks at the operator's page."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from zerolayer_dev import vendored
from zerolayer_dev.cluster import prerequisites
from zerolayer_dev.testing.waiting import wait_for

VIEW: ViewportSize = {"width": 1280, "height": 900}
STANDARDS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")


def prepare_browser() -> None:
    """Gets the browser, and what judges the page in it, where they are missing.

    Raises:
        MissingPrerequisitesError: there is no browser and none can be installed.
    """
    prerequisites.provide(prerequisites.BROWSER)
    vendored.fetch(vendored.AXE)
    vendored.fetch(vendored.UPLOT)


@contextmanager
def browser() -> Iterator[Browser]:
    """Yields a browser that begins without a history."""
    with sync_playwright() as playwright:
        # Its sandbox cannot be had as root.
        launched = playwright.chromium.launch(executable_path=prerequisites.browser(), args=["--no-sandbox"])
        try:
            yield launched
        finally:
            launched.close()


def as_shown(scaling: Mapping[str, Any]) -> dict[str, str]:
    """What a pool's `status.scaling` says, in the words of the page and by what it calls its figures."""

    def said(field: str, unit: str = "", missing: str = "unknown") -> str:
        return f"{scaling[field]}{unit}" if field in scaling else missing

    return {
        "utilization": said("utilization", " %"),
        "window": said("window").replace("s", " s"),
        "hold": said("hold", missing="none"),
        "flatness": said("flatness"),
        "regrets": said("regrets"),
        "saved-seconds": said("replicaSecondsSaved"),
        "why": said("why"),
    }


class PoolPage:
    """The page in one tab.

    Args:
        opened: The browser.
        url: Where the page is.
        settings: Of the tab, such as `color_scheme="dark"`.
    """

    def __init__(self, opened: Browser, url: str, **settings: Any) -> None:
        self.page: Page = opened.new_page(viewport=VIEW, **settings)
        self.asked: list[str] = []
        self.complaints: list[str] = []
        self._url = url
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda message: self.complaints.append(message.text))

    def open(self) -> None:
        """Opens the page, and waits until it has been answered."""
        self.page.goto(self._url)
        # From here: in the page itself nothing may be waited for by evaluating text.
        wait_for(self.page.locator("#count").inner_text, what="the list of pools", seconds=30)

    def choose(self, namespace: str, name: str) -> None:
        """Follows the link of a pool by the keyboard, and waits until its charts are there."""
        link = self.page.get_by_role("row", name=namespace).get_by_role("link", name=name, exact=True)
        link.focus()
        self.page.keyboard.press("Enter")
        self.page.wait_for_selector("#charts canvas")

    def facts(self) -> dict[str, str]:
        """The newest figures of the chosen pool by what they are called."""
        return {
            cell.get_attribute("id").removeprefix("newest-"): cell.inner_text()  # pyright: ignore[reportOptionalMemberAccess]
            for cell in self.page.locator("#newest dd").all()
        } | {"why": self.page.locator("#why").inner_text()}

    def row(self, name: str) -> list[str]:
        """The cells of a pool in the list."""
        row = self.page.locator("#list tbody tr").filter(has=self.page.get_by_text(name, exact=True))
        return row.locator("td, th").all_inner_texts()

    def outside(self) -> list[str]:
        """What was asked of anybody else than the page's own server."""
        own = urlsplit(self._url).netloc
        return [url for url in self.asked if urlsplit(url).netloc != own]

    def barriers(self) -> list[str]:
        """What keeps people out, by the rules of axe."""
        self.page.evaluate(vendored.read(vendored.AXE, "axe.min.js").decode())
        found = self.page.evaluate("rules => axe.run({runOnly: rules})", list(STANDARDS))
        return [
            f"{rule['id']}: {node['html']}: {node['failureSummary']}"
            for rule in found["violations"]
            for node in rule["nodes"]
        ]

    def picture(self, path: Path) -> None:
        """Draws the whole page into a file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=path, full_page=True)
