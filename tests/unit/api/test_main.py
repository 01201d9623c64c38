"""Which module has which command, and what happens without its packages."""

import argparse
import importlib
import sys

import pytest

from support.tree import ROOT
from tandem_cli.main import MODULES, Module, main


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
def test_a_module_has_the_commands_that_are_listed_for_it(module: Module) -> None:
    subparsers = argparse.ArgumentParser().add_subparsers()
    importlib.import_module(module.name).add_commands(subparsers)
    assert tuple(subparsers.choices) == module.commands


def test_a_missing_package_is_one_line_with_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.startswith("tandem_cli.checks") or name == "tandem_cli.validate_command"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    assert main(["validate", "file.yaml"]) == 1
    assert capsys.readouterr().err == (
        "tandem: the Python package 'jsonschema' is not installed; add it with: pip install 'tandem-serving[cli]'\n"
    )


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert [command for module in MODULES for command in module.commands if command not in text] == []


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
def test_the_page_about_commands_names_every_option(module: Module) -> None:
    subparsers = argparse.ArgumentParser().add_subparsers()
    importlib.import_module(module.name).add_commands(subparsers)
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    wanted = [f"tandem {command}" for command in module.commands]
    for parser in subparsers.choices.values():
        wanted += [option for option in parser._option_string_actions if option.startswith("--") and option != "--help"]  # noqa: SLF001 - argparse lists its options nowhere else
    assert [word for word in wanted if word not in page] == []
