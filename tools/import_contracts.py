"""A contract for import-linter: packages import each other only through `__init__`.

A package is a top-level one (`surgeval.datasets`) or a protocol (`surgeval.protocols.focus`). Its own modules import
each other freely. Modules that other packages import on purpose are listed as `public`.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class PublicModules(Contract):
    """Packages import each other only through `__init__`, apart from the modules listed as public."""

    root = fields.StringField()
    nested = fields.ListField(subfield=fields.StringField())  # packages whose children count as packages of their own
    public = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Collect every import of a module that is not public, and the public modules that no other package imports."""
        public = set(cast("list[str]", self.public))
        foreign = [
            (importer, imported)
            for importer in sorted(graph.modules)
            for imported in sorted(graph.find_modules_directly_imported_by(importer))
            if self._is_foreign(importer, imported)
            and not self._is_package(graph, imported)
            and not self._is_export(graph, importer, imported)
        ]
        broken = [pair for pair in foreign if pair[1] not in public]
        unused = sorted(public - {imported for _, imported in foreign})
        return ContractCheck(kept=not broken and not unused, metadata={"broken": broken, "unused": unused})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print one line per import."""
        for importer, imported in check.metadata["broken"]:
            output.print_error(f"{importer} imports {imported}; import from {self._package(imported)} instead")
        for module in check.metadata["unused"]:
            output.print_error(f"{module} is listed as public, but no other package imports it")

    def _is_foreign(self, importer: str, imported: str) -> bool:
        if not imported.startswith(f"{self.root}."):
            return False
        package = self._package(imported)
        return imported != package and not (importer == package or importer.startswith(f"{package}."))

    def _is_package(self, graph: ImportGraph, module: str) -> bool:
        return bool(graph.find_children(module))

    def _is_export(self, graph: ImportGraph, importer: str, imported: str) -> bool:
        """Whether `from surgeval.engine import run` takes the function that the package exports, not its module."""
        package, _, name = imported.rpartition(".")
        stub = Path("src", *package.split("."), "__init__.pyi")
        if not stub.is_file() or f" as {name}\n" not in stub.read_text(encoding="utf-8"):
            return False
        details = graph.get_import_details(importer=importer, imported=imported)
        return all(detail["line_contents"].startswith(f"from {package} import ") for detail in details)

    def _package(self, module: str) -> str:
        parts = module.split(".")
        nested = ".".join(parts[:2]) in cast("list[str]", self.nested)
        return ".".join(parts[: 3 if nested else 2])
