# SPDX-License-Identifier: Apache-2.0
"""The page that the tests of the report look at: made once, of made-up results."""

from pathlib import Path

import made_up
import pytest
from hakozuna_lab import report


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    return report.make([made_up.write(folder / "made-up.jsonl")], folder / "out")
