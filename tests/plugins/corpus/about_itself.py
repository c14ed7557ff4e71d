"""
title: About itself
author: gateway tests
author_url: https://example.org
funding_url: https://example.org/give
version: 9.9.9
license: MIT
required_open_webui_version: 0.4.3
description: Reads its own header and file.
"""

import logging
import os
import re

logging.basicConfig(level=logging.DEBUG, format="BROKEN %(message)s", force=True)
logger = logging.getLogger(__name__)
logger.setLevel(logging.INFO)

VERSION = re.search(r"^version:\s*(\S+)", __doc__, re.MULTILINE).group(1)
print(f"{__name__} is being loaded")


class Pipe:
    def __init__(self):
        self.folder = os.path.dirname(os.path.abspath(__file__))
        with open(__file__, encoding="utf-8") as file:
            self.lines = len(file.readlines())

    def pipe(self, body: dict, **kwargs) -> str:
        print("asked", body["messages"][-1]["content"])
        logger.info("answering")
        return f"{VERSION} {__name__} {self.lines > 10} {sorted(kwargs)}"
