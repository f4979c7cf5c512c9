"""Look up things by name: the built-in ones in a table, those of other packages by entry point.

Every kind of thing (dataset format, model family, protocol …) has one `Registry`. A target is written
`module:attribute` and imported on first use. It is a light declaration: what needs torch is named in it as text.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from surgeval.errors import BadInput, LeftOut, bounded, did_you_mean, told, visible

__all__ = ["Registry"]

T = TypeVar("T")


class Registry(Generic[T]):
    """The things of one kind by name, each loaded on first use.

    `builtin` maps names to targets; other packages add theirs under the entry-point group `group`. A target is an
    `expected` object, or a class that makes one when called, and its `name` is the one it is registered under. `noun`
    names the kind in messages.

    A plug-in that cannot be loaded, or whose name is taken, is left out with one warning (`LeftOut`).

    >>> codecs = Registry("example.codecs", {"utf-8": "encodings.utf_8:getregentry"}, object, "codec")
    >>> codecs.names(), "utf-8" in codecs
    (('utf-8',), True)
    >>> codecs["utf8"]
    Traceback (most recent call last):
    surgeval.errors.BadInput: Unknown codec 'utf8'. Known: utf-8; did you mean 'utf-8'?
    """

    def __init__(self, group: str, builtin: Mapping[str, str], expected: type[T], noun: str) -> None:
        self.group, self.noun = group, noun
        self._builtin, self._expected = dict(builtin), expected
        self._loaded: dict[str, T] = {}
        self._path: tuple[str, ...] | None = None  # sys.path when the plug-ins below were listed
        self._plugins: dict[str, EntryPoint] = {}
        self._broken: dict[str, str] = {}  # why a plug-in cannot be used, by name
        self._warned: set[str] = set()

    def names(self) -> tuple[str, ...]:
        """All names, without loading anything: the built-in ones in the order of their table, then plug-ins."""
        return (*self._builtin, *self.plugins())

    def plugins(self) -> dict[str, str]:
        """The targets of other packages by name, without loading them."""
        self._list_plugins()
        return {name: point.value for name, point in self._plugins.items() if name not in self._broken}

    def is_builtin(self, name: str) -> bool:
        """Whether the name is one of surgeval's own."""
        return name in self._builtin

    def __contains__(self, name: object) -> bool:
        if name in self._builtin:
            return True
        self._list_plugins()
        return name in self._plugins

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __getitem__(self, name: str) -> T:
        """Load the thing of this name, or raise `BadInput` if there is none or it cannot be loaded."""
        if name not in self._builtin:
            self._list_plugins()
        if name not in self._loaded:
            if name in self._builtin:
                module, _, attribute = self._builtin[name].partition(":")
                self._loaded[name] = self._make(name, getattr(import_module(module), attribute))
            elif name in self._plugins:
                self._loaded[name] = self._load_plugin(name)
            else:
                raise BadInput(
                    f"Unknown {self.noun} {bounded(str(name))!r}. Known: {', '.join(self.names())}"
                    f"{did_you_mean(name, self.names())}"
                )
        return self._loaded[name]

    def load_all(self) -> dict[str, T]:
        """Load everything that can be loaded."""
        loaded = {name: self[name] for name in self._builtin}
        self._list_plugins()
        for name in self._plugins:
            try:
                loaded[name] = self[name]
            except BadInput as error:
                if name not in self._warned:
                    self._warned.add(name)
                    warnings.warn(str(error), LeftOut, stacklevel=3)
        return loaded

    def _list_plugins(self) -> None:
        """List the entry points again where `sys.path` has changed; searching it takes milliseconds."""
        if self._path == tuple(sys.path):
            return
        for name in self._plugins:
            self._loaded.pop(name, None)
        self._path, self._plugins, self._broken, self._warned = tuple(sys.path), {}, {}, set()
        for point in sorted(entry_points(group=self.group), key=lambda point: point.name):
            taken = self._builtin.get(point.name) or getattr(self._plugins.get(point.name), "value", None)
            if taken is None:
                self._plugins[point.name] = point
            elif taken != point.value:
                warnings.warn(self._explain(point, f"{taken} has this name already"), LeftOut, stacklevel=4)

    def _load_plugin(self, name: str) -> T:
        if name in self._broken:
            raise BadInput(self._broken[name])
        try:
            return self._make(name, self._plugins[name].load())
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a module of another package can raise anything, even SystemExit
            self._broken[name] = self._explain(self._plugins[name], told(error))
            raise BadInput(self._broken[name]) from error

    def _make(self, name: str, target: Any) -> T:
        thing = target() if isinstance(target, type) else target
        if not isinstance(thing, self._expected) or getattr(thing, "name", None) != name:
            raise BadInput(f"expected the {self._expected.__name__} {name!r}, got {thing!r:.80}")
        return thing

    def _explain(self, point: EntryPoint, reason: str) -> str:
        return f"{self.noun} {point.name!r} of another package ({point.value}) cannot be used: {visible(reason)}"
