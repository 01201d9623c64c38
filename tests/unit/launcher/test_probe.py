"""Torch is asked in a child process, whose death is an answer too."""

import os
import signal

import pytest

from tandem_launcher.capacity import Device
from tandem_launcher.failures import Failure
from tandem_launcher.probe import ask

H100 = Device(name="NVIDIA H100", capability=(9, 0), memory=1)


def find_one() -> tuple[Device, ...]:
    return (H100,)


def lack_torch() -> tuple[Device, ...]:
    raise ImportError("libcuda.so.1: cannot open shared object file")


def get_killed() -> tuple[Device, ...]:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def leave() -> tuple[Device, ...]:
    os._exit(3)


def test_the_child_tells_which_gpus_it_found() -> None:
    assert ask(find_one) == (H100,)


def test_a_torch_that_cannot_be_imported_is_one_clear_line() -> None:
    with pytest.raises(
        Failure, match=r"torch cannot be imported \(libcuda\.so\.1: cannot open shared object file\): set engine"
    ):
        ask(lack_torch)


def test_a_child_that_was_killed_is_named_with_its_signal() -> None:
    with pytest.raises(Failure, match=r"was ended by SIGKILL: raise resources\.memory"):
        ask(get_killed)


def test_a_child_that_ends_without_an_answer_is_named_with_its_code() -> None:
    with pytest.raises(Failure, match="ended with exit code 3"):
        ask(leave)
