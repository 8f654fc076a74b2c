"""From the bytes of a Python file to its text, as Python itself would read them (PEP 263)."""

from __future__ import annotations

import io
import tokenize

from guider_ls.errors import InputError


def decode(data: bytes) -> str:
    """The text of a program; newlines are kept as they are, a byte order mark is not part of it.

    Raises:
        InputError: code ``program-encoding``; the coding cookie or the bytes are wrong.
    """
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        raise InputError(
            "program-encoding",
            f"The program's encoding is not usable: {error.msg}. "
            "Save it as UTF-8, or name its encoding in a first line such as `# -*- coding: latin-1 -*-`.",
        ) from error
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            "program-encoding",
            f"Line {line} of the program is not {encoding}: byte 0x{data[error.start]:02x} does not fit there. "
            "Save the file as UTF-8, or name its encoding in a first line such as `# -*- coding: latin-1 -*-`.",
        ) from error
