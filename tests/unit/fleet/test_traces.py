"""Recorded loads are read as they are, and turns of a conversation are known by what they begin with."""

import gzip

import pytest

from bench.choice.cases import QUICK, SUITE, load
from tandem_simulator.fleet.traces import BLOCK, read

HEAD = "arrival_s,prompt_tokens,output_tokens,prefix_group,block_hashes\n"


def write(tmp_path, *rows: str):
    path = tmp_path / "trace.csv.gz"
    path.write_bytes(gzip.compress((HEAD + "\n".join(rows) + "\n").encode()))
    return path


def test_a_prompt_that_begins_with_all_of_an_earlier_one_is_a_later_turn(tmp_path):
    path = write(
        tmp_path, "0,1100,5,0,0;1;2", "1,1100,5,0,0;7;8", "2,1700,5,0,0;1;3;4", "3,2200,5,0,0;1;3;5;6", "4,600,5,0,0;9"
    )
    assert [each.conversation for each in read(path)] == [0, 1, 0, 0, 2]


def test_only_whole_blocks_are_named_and_every_request_has_tokens(tmp_path):
    first, second = read(write(tmp_path, "0.5,1100,0,0,0;1;2", "1,0,5,,"))
    assert (first.at, first.prompt, first.output, first.blocks) == (0.5, 1100, 1, (0, 1))
    assert (second.prompt, second.blocks) == (1, ())


def test_a_piece_of_a_trace_is_its_beginning(tmp_path):
    assert len(read(write(tmp_path, "0,600,5,0,0;1", "9,600,5,0,2;3"), seconds=9)) == 1


@pytest.mark.parametrize("wanted", QUICK.loads, ids=lambda each: each.trace)
def test_the_recorded_loads_are_there(wanted):
    found = load(wanted, seed=0)
    assert len(found) > 300
    assert all(len(each.blocks) <= each.prompt / BLOCK for each in found)
    assert {each.trace for each in SUITE.loads} == {each.trace for each in QUICK.loads}
