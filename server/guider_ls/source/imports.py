"""Import statements: modules of the project are run once, all others are known by their names."""

from __future__ import annotations

import libcst as cst

from guider_ls.errors import InputError
from guider_ls.source.catalog import canonical
from guider_ls.source.functions import Functions
from guider_ls.source.modules import Modules
from guider_ls.source.trees import Tree, Trees
from guider_ls.source.values import Frame, Items, Known, Module, Name, Value, Where


class Imports(Functions):
    """Binds what programs import."""

    def __init__(self, modules: Modules | None = None, trees: Trees | None = None) -> None:
        """Follow the modules that ``modules`` finds; ``trees`` parses them."""
        super().__init__()
        self._parser = trees or Trees()
        self._finder = modules
        self._modules: dict[str, Module] = {}
        """By path, and by dotted name those that are only folders."""
        self.trees: dict[str, Tree | None] = {}
        """The modules that were followed, by path, in the order of import; ``None``: it cannot be parsed."""

    def block(self, body: Tree) -> None:
        """Run the statements of a module in the present frame."""
        raise NotImplementedError

    def run_import(self, node: cst.Import | cst.ImportFrom) -> None:
        """Run an import statement."""
        if isinstance(node, cst.Import):
            for alias in node.names:
                name = dotted(alias.name)
                module = self._module(name, 0)
                if alias.asname is not None:
                    self.assign(alias.asname.name, module or Name(canonical(name)))
                else:
                    first = name.split(".")[0]
                    package = self._package(name) if module is not None else self._module(first, 0)
                    self.frame.names[first] = package or Name(canonical(first))
            return
        level = len(node.relative)
        origin = dotted(node.module) if node.module is not None else ""
        module = self._module(origin, level)
        if isinstance(node.names, cst.ImportStar):
            if module is None:
                self.frame.stars.append(canonical("." * level + origin))
            else:
                self._import_star(module)
            return
        for alias in node.names:
            name = dotted(alias.name)
            bound = alias.asname.name if alias.asname is not None else alias.name
            if module is not None:
                self.assign(bound, self.module_attribute(module, name))
            else:
                inner = self._module(f"{origin}.{name}".strip("."), level)
                self.assign(bound, inner or Name(canonical(f"{'.' * level}{origin}.{name}")))

    def import_module(self, name: str) -> Value:
        """``importlib.import_module(name)``."""
        level = len(name) - len(name.lstrip("."))
        return self._module(name[level:], level) or Name(canonical(name))

    def module_attribute(self, module: Module, name: str) -> Value:
        """``module.name``: what it binds, or a module inside the package, be it imported or not."""
        found = self.look_up_in(module.frame, name)
        if found != Name(f"builtins.{name}"):
            return found
        inner = self._inside(module, name)
        return inner or Name(canonical(f"{module.name}.{name}"))

    def _inside(self, package: Module, name: str) -> Module | None:
        """A module right inside a package."""
        if not package.file:
            return self._module(f"{package.name}.{name}", 0)
        if package.file.endswith("__init__.py"):
            return self._module(name, 1, package.file)
        return None

    def _import_star(self, module: Module) -> None:
        """Bind all the public names of a module."""
        listed = module.frame.names.get("__all__")
        names = [name for name in module.frame.names if not name.startswith("_")]
        if isinstance(listed, Items) and listed.exact:
            chosen = [item.value for item in listed.items if isinstance(item, Known)]
            names = [name for name in chosen if name in module.frame.names]
        else:
            self.frame.stars += module.frame.stars
        self.frame.names.update((name, module.frame.names[name]) for name in names)

    def _package(self, name: str) -> Module:
        """The outermost package of a dotted name, with the packages and the module inside it bound."""
        first, *rest = name.split(".")
        outer = package = self._module(first, 0) or self._folder(first)
        for number, part in enumerate(rest, 2):
            path = ".".join(name.split(".")[:number])
            inner = self._module(path, 0) or self._folder(path)
            outer.frame.names[part] = inner
            outer = inner
        return package

    def _folder(self, name: str) -> Module:
        """A package without a file of its own."""
        return self._modules.setdefault(name, Module("", name, Frame({})))

    def _module(self, name: str, level: int, importer: str | None = None) -> Module | None:
        """A module of the project, run if it was not yet; ``None``: it is not of the project, or is no Python."""
        if self._finder is None or self.trace.dead or self.trace.exhausted:
            return None
        found = self._finder.find(name, level, self.frame.root().file if importer is None else importer)
        if found is None:
            return None
        path, text = found
        if path in self.trees:
            return self._modules.get(path)
        self.trees[path] = None
        try:
            tree = self.trees[path] = self._parser.tree(text)
        except (InputError, RecursionError):
            return None
        names: dict[str, Value] = {"__name__": Known(name or "__init__"), "__file__": Known("module.py")}
        module = self._modules[path] = Module(path, name, Frame(names, file=path))
        self._run(tree, module.frame)
        return module

    def _run(self, tree: Tree, frame: Frame) -> None:
        trace, outer = self.trace, self.frame
        state = trace.loops, trace.branches, trace.where
        self.frame, trace.loops, trace.branches, trace.where = frame, 0, 0, Where()
        try:
            self.block(tree)
        finally:
            self.frame = outer
            trace.loops, trace.branches, trace.where = state


def dotted(node: cst.BaseExpression) -> str:
    """A dotted name as text."""
    if isinstance(node, cst.Attribute):
        return f"{dotted(node.value)}.{node.attr.value}"
    return node.value if isinstance(node, cst.Name) else ""
