"""Files of numbers that a user brings: read as numbers, or refused by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from abi.files.arrays import load_array


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a,b\n1,2\n3,4\n", [[1, 2], [3, 4]]),
        ("# made by hand\n\na,b\n1,2\n", [[1, 2]]),
        ("\ufeff1.0,2.0\n3.0,4.0\n", [[1, 2], [3, 4]]),
        ("\ufeffa,b\n3.0,4.0\n", [[3, 4]]),
    ],
)
def test_numbers_and_a_line_of_names_are_read(
    tmp_path: Path, text: str, values: list[float]
) -> None:
    (tmp_path / "x.csv").write_text(text, encoding="utf-8")
    assert load_array(tmp_path / "x.csv", "--x").tolist() == values


@pytest.mark.parametrize(
    "text", ["1.0,,2.0\n3.0,4.0,5.0\n", "NA,0.4\n1,2\n", "1,2,\n5,6,\n", "a,b\nc,d\n1,2\n", "a,b\n"]
)
def test_a_row_is_never_taken_for_names(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(ValueError, match=r"`--x`: .*(which is no number|no line of numbers)"):
        load_array(tmp_path / "x.csv", "--x")


def test_damaged_and_odd_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "empty.npy").touch()
    np.savez(tmp_path / "whole.npz", theta=np.zeros((100, 2)))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "whole.npz").read_bytes()[:300])
    np.save(tmp_path / "complex.npy", np.array([1 + 2j]))
    np.save(tmp_path / "words.npy", np.array(["a", "b"]))
    for name in ("empty.npy", "cut.npz", "complex.npy", "words.npy"):
        with pytest.raises(ValueError, match=rf"`--x`: .*{name} could not be read as numbers"):
            load_array(tmp_path / name, "--x")


def test_one_array_is_not_taken_for_two(tmp_path: Path) -> None:
    np.save(tmp_path / "theta.npy", np.zeros((5, 2)))
    np.savetxt(tmp_path / "x.csv", np.zeros((5, 2)), delimiter=",")
    for name in ("theta.npy", "x.csv"):
        with pytest.raises(ValueError, match=r"`--data`: .*it must be an .npz that holds 'theta'"):
            load_array(tmp_path / name, "--data", "theta")
    np.savez(tmp_path / "both.npz", theta=np.ones((5, 2)), x=np.zeros((5, 1)))
    assert torch.equal(load_array(tmp_path / "both.npz", "--data", "theta"), torch.ones(5, 2))
