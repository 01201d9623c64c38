"""The page on the routers' signals names every field of the message, and no other."""

import re

import pytest

from support.tree import ROOT
from tandem_api.wire import RecentRequests, RouterSignals

_PAGE = (ROOT / "docs" / "reference" / "signals.md").read_text()


@pytest.mark.parametrize(("message", "part"), [(RouterSignals, 0), (RecentRequests, 1)])
def test_every_field_stands_in_its_table_once(message: type[RouterSignals | RecentRequests], part: int) -> None:
    rows = re.findall(r"^\| (`[^|]*) \|", _PAGE.split("## The sample")[part], re.MULTILINE)
    assert sorted(name for row in rows for name in re.findall(r"`(\w+)`", row)) == sorted(message.model_fields)
