"""The site in a browser: no errors, search, light and dark, and the width of a telephone.

The tests need `site/html` and Chromium.
"""

import functools
import http.server
import re
import sys
import threading
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SITE = ROOT / "site" / "html"
sys.path.insert(0, str(ROOT / "tests" / "inspect"))

from chromium import Browser, why_not  # noqa: E402

PAGES = """
    index.html learn/index.html learn/ten-pictures.html learn/implicit-differentiation.html learn/memory.html howto/index.html
    howto/notebooks.html
    coming-from/jax.html examples/vae-digits.html reference/index.html reference/performance.html architecture.html
    reference/generated/operators/math.pointwise.html reference/generated/modules/torch.nn.html
    reference/generated/modules/torch.nn.Module.html
""".split()

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(not SITE.exists(), reason="the site is not built: python -m sphinx -j 2 docs site/html"),
    pytest.mark.skipif(why_not() is not None, reason=str(why_not())),
]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def server():
    """Serve the site over HTTP, because the search needs it."""
    handler = functools.partial(Quiet, directory=str(SITE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{served.server_address[1]}"
        served.shutdown()


@pytest.fixture(scope="module")
def browser():
    opened = Browser(1400, 900)
    yield opened
    opened.close()


def visit(browser, server, page, width=1400, height=900):
    browser.size(width, height)
    browser.problems.clear()
    browser.events.clear()
    browser.call("Page.navigate", url=f"{server}/{page}")
    browser.until("document.readyState === 'complete' && location.href !== 'about:blank'", 20)
    time.sleep(0.3)


def outside(browser, server):
    """Collect the requests to other servers."""
    return [event["url"] for event in browser.events if not re.match(rf"{server}|data:|blob:|about:", event["url"])]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_no_errors_and_no_other_requests(browser, server, page):
    visit(browser, server, page)
    assert browser.problems == []
    assert outside(browser, server) == []
    assert browser.evaluate("document.querySelector('h1') !== null")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits_a_telephone(browser, server, page):
    visit(browser, server, page, 390, 844)
    assert browser.evaluate("document.documentElement.scrollWidth") <= 391


@pytest.mark.parametrize("page", PAGES[:4])
def test_light_and_dark(browser, server, page):
    visit(browser, server, page)
    brightness = (
        "(() => { const c = getComputedStyle(document.body).backgroundColor.match(/[0-9.]+/g).map(Number);"
        " return (c[0] + c[1] + c[2]) / 3; })()"
    )
    seen = {}
    for mode in ("light", "dark"):
        browser.evaluate(f"localStorage.setItem('mode', '{mode}'); localStorage.setItem('theme', '{mode}')")
        visit(browser, server, page)
        seen[mode] = browser.evaluate(brightness)
    browser.evaluate("localStorage.clear()")
    assert seen["light"] > 200
    assert seen["dark"] < 60


def test_pictures_and_tables_stand_on_the_page_itself_in_the_dark(browser, server):
    browser.evaluate("localStorage.setItem('mode', 'dark'); localStorage.setItem('theme', 'dark')")
    visit(browser, server, "howto/notebooks.html")
    grounds = browser.evaluate(
        "[...document.querySelectorAll('.cell_output .text_html')].map((one) => getComputedStyle(one).backgroundColor)"
    )
    browser.evaluate("localStorage.clear()")
    assert len(grounds) >= 3
    assert set(grounds) == {"rgba(0, 0, 0, 0)"}


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("logsumexp", "nn.softmax"),
        ("eligibility", "eligibility-traces"),
        ("safetensors", "safetensors"),
        ("gradcheck", "torch.autograd"),
    ],
)
def test_search_finds(browser, server, words, found):
    visit(browser, server, f"search.html?q={words}")
    browser.until("document.querySelectorAll('#search-results li a').length > 0", 20)
    time.sleep(0.5)
    links = browser.evaluate(
        "[...document.querySelectorAll('#search-results li a')].map((a) => a.getAttribute('href')).join(' ')"
    )
    assert found in links


def test_the_players_play(browser, server):
    visit(browser, server, "learn/ten-pictures.html")
    players = browser.evaluate(
        "[...document.querySelectorAll('iframe.player')].map((frame) => frame.getAttribute('src'))"
    )
    assert len(players) == 10
    for player in players:
        visit(browser, server, f"learn/{player}".replace("learn/../", ""))
        browser.until("document.documentElement.dataset.ready !== undefined", 20)
        assert browser.problems == []


def test_links_and_anchors_lead_somewhere():
    """Check every link within the site, including its anchor."""
    places, links = {}, []
    for path in SITE.rglob("*.html"):
        if {"players", "source"} & set(path.relative_to(SITE).parts):
            continue
        text = path.read_text(encoding="utf-8")
        places[path.resolve()] = set(re.findall(r'\bid="([^"]+)"', text))
        links += [(path, link) for link in re.findall(r'<a\b[^>]*\bhref=["\']([^"\']+)["\']', text)]
    missing = set()
    for path, link in links:
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        target = target.partition("?")[0]
        base = SITE if target.startswith("/") else path.parent  # the server may show the page 404 at any address
        where = (base / target.lstrip("/")).resolve() if target else path.resolve()
        if where.is_dir():
            where /= "index.html"
        if not where.exists() or (anchor and where in places and anchor not in places[where]):
            missing.add((str(path.relative_to(SITE)), link))
    assert sorted(missing)[:20] == []
