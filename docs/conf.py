"""The site: `make docs` builds it into `out/docs`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from _ext.hooks import project as _project, repository as _repository

from steepest import __version__

project = "steepest"
author = "the authors of steepest"
copyright = author
version = release = __version__

extensions = ["myst_parser", "sphinx_copybutton", "sphinx_design", "_ext.hooks"]
exclude_patterns = ["_ext"]
myst_enable_extensions = ["colon_fence", "fieldlist"]
myst_heading_anchors = 4  # as the repository's page makes them
highlight_language = "none"  # most blocks without a language are commands

# Signatures name types of JAX, jaxtyping and Python, which are not documented here.
nitpick_ignore_regex = [("py:class", ".*")]
python_maximum_signature_line_length = 80
toc_object_entries_show_parents = "hide"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "sphinx_book_theme"
html_title = "steepest"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_theme_options = {
    "show_navbar_depth": 1,
    "show_toc_level": 2,
    "navbar_persistent": [],  # one search field is enough
    "use_download_button": False,
    "pygments_light_style": "default",
    "pygments_dark_style": "github-dark",
}
if _repository():
    html_theme_options |= {
        "repository_url": _repository(),
        "repository_branch": "main",
        "path_to_docs": "docs",
        "use_repository_button": True,
        "use_issues_button": True,
    }
html_context = {"description": _project()["description"]}
