"""The configuration of Sphinx: `python -m sphinx -j 2 docs site/html` builds the site."""

import os
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, metadata
from importlib.util import find_spec
from pathlib import Path
from urllib.request import urlopen

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), str(HERE.parent), os.environ.get("PYTHONPATH", "")])

import adjoint  # noqa: E402

project = "adjoint"
author = "the adjoint authors"
copyright = author
version = release = adjoint.__version__

OWNER, _, NAME = os.environ.get("GITHUB_REPOSITORY", "").partition("/")
"""The repository, if a workflow builds the site."""

LINKS = {}
with suppress(PackageNotFoundError):
    LINKS = dict(link.split(", ", 1) for link in metadata("adjoint-autograd").get_all("Project-URL") or ())
EDITED = os.environ.get("GITHUB_REPOSITORY") or LINKS.get("Source", "").partition("//github.com/")[2]
"""The repository to which the links "Edit on GitHub" lead. Outside of a workflow, the links of the installed package name it."""

extensions = [
    "myst_nb",
    "notfound.extension",
    "sphinx_sitemap",
    "sphinxext.opengraph",
    "sphinx.ext.intersphinx",
    "building.extension",
]


def is_reached(page: str) -> bool:
    """Return whether this machine can reach a site."""
    try:
        return bool(urlopen(page, timeout=10))
    except OSError:
        return False


PAGES = {"python": "https://docs.python.org/3", "numpy": "https://numpy.org/doc/stable"}
intersphinx_mapping = {name: (page, None) for name, page in PAGES.items() if OWNER or is_reached(page)}
"""Types link to the pages of Python and NumPy. If these sites cannot be reached, a workflow fails, and other builds
omit the links.
"""
intersphinx_timeout = 10
exclude_patterns = ["building", "reference/examples", "_build", "**.ipynb_checkpoints"]
if find_spec("jupyterlite_sphinx"):  # the lessons that run in the reader's browser
    extensions.append("jupyterlite_sphinx")
    jupyterlite_dir, jupyterlite_content_dir = str(HERE / "_build" / "lite"), str(HERE / "_build" / "lessons")
    jupyterlite_bind_ipynb_suffix = False
else:
    exclude_patterns.append("learn/in-your-browser.md")
nitpicky = False
default_role = "literal"
add_module_names = False
python_maximum_signature_line_length = 88
toc_object_entries = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True
suppress_warnings = [
    "toc.excluded",  # the page of the lessons
    "mystnb.unknown_mime_type",
    "misc.highlighting_failure",  # tracebacks that contain backticks
    "ref.python",  # short names of types, such as Node, that two modules define
]

html_baseurl = ogp_site_url = f"https://{OWNER}.github.io/{NAME}/" if OWNER else "http://localhost:8000/"
notfound_urls_prefix = f"/{NAME}/" if OWNER else "/"
sitemap_url_scheme = "{link}"
sitemap_excludes = ["404.html", "search.html", "genindex.html"]

html_theme = "pydata_sphinx_theme"
html_title = f"adjoint {version}"
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_context = {
    "default_mode": "auto",
    "github_user": EDITED.partition("/")[0],
    "github_repo": EDITED.partition("/")[2],
    "github_version": "main",
    "doc_path": "docs",
}
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "adjoint"},
    "navbar_align": "left",
    "show_toc_level": 2,
    "navigation_with_keys": True,
    "secondary_sidebar_items": ["page-toc", *(["edit-this-page"] if EDITED else [])],
    "use_edit_page_button": bool(EDITED),
    "switcher": {
        "json_url": f"{html_baseurl}_static/switcher.json",
        "version_match": os.environ.get("ADJOINT_DOCS_VERSION", "dev"),
    },
    "check_switcher": False,
    "navbar_end": ["version-switcher", "theme-switcher"],
    "collapse_navigation": True,
    "navigation_depth": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"reference/generated/**": ["sidebar-nav-bs"]}
linkcheck_ignore = [r"http://localhost.*"]
