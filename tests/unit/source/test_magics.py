from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guider_ls.source.magics import as_python


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("%matplotlib inline", ""),
        ("%", ""),
        ("%timeit?", ""),
        ("!pip install keras", ""),
        ("!!ls", ""),
        ("? Dense", ""),
        ("layers.Dense?", ""),
        ("layers.Dense??  # what is it", ""),
        ("/f 1", ""),
        (",f a b", ""),
        (";f a b", ""),
        ("pip install -q 'keras>3'", ""),
        ("conda install keras", ""),
        ("cd ..", ""),
        ("ls -la", ""),
        ("load_ext tensorboard", ""),
        ("files = !ls *.keras", "files ="),
        ("a, b.c = %who_ls str", "a, b.c ="),
        ("files: list = !ls", "files: list ="),
        ("%time model.fit(x)", "model.fit(x)"),
        ("%timeit -n 10 -r3 -o f(x)", "f(x)"),
        ("%prun -s cumulative -q f(x)", "f(x)"),
        ("result = %time f('!ls')", "result = f('!ls')"),
        ("%time", ""),
        ("%time for i in x: f(i)", ""),
        ("%time %run other.py", ""),
        ("%time !ls", ""),
        ("%run train.py -n 3", ""),
    ],
)
def test_what_is_not_python_becomes_an_expression(line: str, kept: str) -> None:
    for indent in ("", "    "):
        text = as_python(indent + line)
        assert len(text) == len(indent + line)
        assert text.startswith(indent)
        ast.parse(f"if 1:\n{text}" if indent else text)
        words = [word for word in text.replace(";", " ").split() if word != "0"]
        assert words == kept.split()
        for word in words:
            assert text.index(word) == (indent + line).index(word)


@pytest.mark.parametrize(
    "line",
    [
        "x = a % b",
        "x %= 3",
        "x = [i % 2 for i in y]",
        "if a != b: pass",
        "x = '= !ls'",
        "f(a=1)  # = %time",
        "ls = 3",
        "ls - x",
        "cat in x",
        "less < more",
        "pip.main()",
        "cd, ls = 1, 2",
        "'why?'",
        "f('a?')  # why?",
        "# %time x",
        "x = \"it's\" + '\"'",
        "f'{a[0]!r}'",
        "f\"{x['a']:>{n}}\"",
        "r'\\'",
        "",
        "   ",
        "\tx",
        "await f()",
        "x = await f(Dense(3))",
    ],
)
def test_python_is_left_as_it_is(line: str) -> None:
    assert as_python(line) == line


def test_lines_inside_of_something_are_python() -> None:
    cell = (
        's = """\n%magic\n!shell\nwhat?\n"""\nx = (a\n% b\n)\ny = a \\\n% b\nz = \'one \\\n%two\'\n'
        "t = r'''\\'''' + '''\n!ls\n'''\nd = {\n!x\n}"
    )
    assert as_python(cell) == cell


def test_a_command_goes_on_after_a_backslash() -> None:
    cell = "!pip install \\\n    keras \\\n    numpy\nx = !ls \\\n  (\ny = Dense(3)\n%run \\\n a"
    assert as_python(cell).split("\n") == [
        "0".ljust(14),
        " " * 11,
        " " * 9,
        "x = 0".ljust(9),
        " " * 3,
        "y = Dense(3)",
        "0".ljust(6),
        "  ",
    ]


def test_an_error_on_one_line_does_not_hide_the_next() -> None:
    # A string that is not closed ends with its line.
    assert as_python("x = 'a\n!ls").split("\n")[1] == "0  "
    assert as_python("x = )\n!ls").split("\n")[1] == "0  "


@pytest.mark.parametrize(
    "magic", ["%%time", "%%capture output", "%%timeit -n 1", "\n%%time", "%%capture\n%%time"]
)
def test_a_cell_magic_that_runs_python_leaves_the_rest(magic: str) -> None:
    cell = f"{magic}\nmodel = Dense(3)\n!ls"
    (*before, model, shell) = as_python(cell).split("\n")
    assert [line.strip() for line in before if line.strip()] == ["0"] * magic.count("%%")
    assert (model, shell) == ("model = Dense(3)", "0  ")


@pytest.mark.parametrize(
    "magic", ["%%bash", "%%html", "%%writefile net.py", "%%javascript", "%%sql", "%%time\n%%sh"]
)
def test_a_cell_of_another_language_is_empty(magic: str) -> None:
    cell = f"{magic}\nx = Dense(3)\n'"
    text = as_python(cell)
    assert text.strip() == ""
    assert list(map(len, text.split("\n"))) == list(map(len, cell.split("\n")))


def test_two_percents_further_down_are_a_line() -> None:
    assert as_python("x = 1\n%%bash\ny = 2") == "x = 1\n0     \ny = 2"


SNIPPETS = st.sampled_from(
    [
        "%",
        "!",
        "?",
        "%%",
        "time",
        "=",
        " ",
        "\n",
        "\\",
        '"""',
        "'",
        '"',
        "(",
        ")",
        "x",
        "#",
        "await ",
        "pip install ",
        "ß😀",
        "\t",
    ]
)


@given(st.lists(SNIPPETS, max_size=30).map("".join))
def test_no_line_and_no_column_moves(cell: str) -> None:
    text = as_python(cell)
    assert list(map(len, text.split("\n"))) == list(map(len, cell.split("\n")))
    # What is kept stands where it stood.
    assert all(new in " 0;" or new == old for new, old in zip(text, cell, strict=True))


def test_hostile_lines_take_no_time() -> None:
    as_python("%timeit" + " -n1" * 5000)
    as_python("%timeit" + " -n" * 5000 + " ")
    as_python("'" * 20001 + "\\" * 20001)
    as_python("pip " + "a" * 100_000)
