"""A contract for import-linter: a module whose name starts with an underscore is private to its package.

The package is the top-level one (`surgeval.datasets`), or the protocol's own (`surgeval.protocols.focus`): rooms of one
house may share private modules, houses may not.
"""

from __future__ import annotations

from typing import cast

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class PrivateModules(Contract):
    """No package imports another's private modules."""

    root = fields.StringField()
    houses = fields.ListField(subfield=fields.StringField())  # packages whose children are apart

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Every import whose target is private to another package."""
        broken = [
            (importer, imported)
            for importer in sorted(graph.modules)
            for imported in sorted(graph.find_modules_directly_imported_by(importer))
            if self._private_elsewhere(importer, imported)
        ]
        return ContractCheck(kept=not broken, metadata={"broken": broken})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """One line per import."""
        for importer, imported in check.metadata["broken"]:
            output.print_error(f"{importer} imports {imported}, which is private to {self._house(imported)}")

    def _private_elsewhere(self, importer: str, imported: str) -> bool:
        if not imported.startswith(f"{self.root}."):
            return False
        house = self._house(imported)
        inner = imported.removeprefix(house)
        return "._" in inner and not (importer == house or importer.startswith(f"{house}."))

    def _house(self, module: str) -> str:
        parts = module.split(".")
        apart = ".".join(parts[:2]) in cast("list[str]", self.houses)
        return ".".join(parts[: 3 if apart else 2])
