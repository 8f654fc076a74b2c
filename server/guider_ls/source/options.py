"""Options that a program takes when it is started: they have their defaults, unless somebody says otherwise."""

from __future__ import annotations

from dataclasses import replace

from guider_ls.source.values import UNKNOWN, Arguments, Items, Known, Parser, Record, Value

_FLAGS = {"store_true": False, "store_false": True}


def parser_method(parser: Parser, name: str, arguments: Arguments) -> Value:
    """Call a method of an ``argparse`` parser, or of a group of one."""
    if name == "add_argument":
        _add(parser, arguments)
    elif name == "set_defaults":
        parser.defaults.update({key: assume(value) for key, value in arguments.keywords.items()})
    elif name in {"add_argument_group", "add_mutually_exclusive_group"}:
        return parser
    elif name == "parse_args":
        return Record(parser.defaults)
    elif name == "parse_known_args":
        return Items([Record(parser.defaults), UNKNOWN], True)
    return UNKNOWN


def _add(parser: Parser, arguments: Arguments) -> None:
    names = [value.value for value in arguments.positional if isinstance(value, Known)]
    given = arguments.keywords.get("dest")
    if isinstance(given, Known):
        names = [given.value]
    names = [name for name in names if isinstance(name, str)]
    if not names:
        return
    long = [name for name in names if name.startswith("--")]
    name = (long or names)[0].lstrip("-").replace("-", "_")
    action = arguments.keywords.get("action")
    default = arguments.keywords.get("default", UNKNOWN)
    if default is UNKNOWN and isinstance(action, Known) and action.value in _FLAGS:
        default = Known(_FLAGS[action.value])
    parser.defaults[name] = assume(default)


def assume(value: Value) -> Value:
    """A value that whoever starts the program may replace."""
    if isinstance(value, Known):
        return replace(value, fixed=False, assumed=True)
    if isinstance(value, Items):
        return Items([assume(item) for item in value.items], value.is_tuple, value.exact)
    return value
