# SPDX-License-Identifier: BSD-3-Clause
"""Takes the pictures of the dashboard in docs/dashboard/README.md. Run it as `make screenshots`.

    python docs/dashboard/screenshots.py SITE SYNTHETIC

with the sites of the example store and of the synthetic one. The browser is $CHROMIUM; in that of
`make chromium`, equal sites give equal pictures.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from playwright.sync_api import sync_playwright

from torch_backend_ci.dashboard import paths
from torch_backend_ci.dashboard.serve import HOST, server

FOLDER = Path(__file__).parent
DESK, PHONE = (1280, 900), (390, 844)
Pictures = dict[str, tuple[str, tuple[int, int]]]
#: Name of the picture: the page, and how much of it is shown, in CSS pixels.
PICTURES: Pictures = {
    "overview": (paths.OVERVIEW, DESK),
    "backend": (paths.of_backend("puone-sim"), DESK),
}
SYNTHETIC: Pictures = {
    "nights": (paths.OVERVIEW, DESK),
    "phone": (paths.OVERVIEW, PHONE),
}


def take(site: Path, pictures: Pictures) -> None:
    """Write the pictures of a site beside this file."""
    with server(site, 0) as listening, sync_playwright() as driver:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        browser = driver.chromium.launch(executable_path=os.environ["CHROMIUM"])
        for name, (path, (width, height)) in pictures.items():
            page = browser.new_page(viewport={"width": width, "height": height})
            page.emulate_media(color_scheme="light")
            page.goto(f"http://{HOST}:{listening.server_port}/{path}")
            page.screenshot(path=FOLDER / f"{name}.png")
        browser.close()
        listening.shutdown()


if __name__ == "__main__":
    take(Path(sys.argv[1]), PICTURES)
    take(Path(sys.argv[2]), SYNTHETIC)
