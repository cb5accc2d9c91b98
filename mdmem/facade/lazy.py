"""Lazy: an attribute that imports its class, and makes its object, when it is first used."""

from __future__ import annotations

from importlib import import_module
from typing import Generic, TypeVar, overload

T_co = TypeVar("T_co", covariant=True)


class Lazy(Generic[T_co]):
    """An attribute of a class, made on first use and kept in the object; most commands use one, or none.

    Args:
        path: the module and the class, `package.module:Class`.
        arguments: the names of the attributes of the object that the class is called with.
    """

    def __init__(self, path: str, *arguments: str, doc: str) -> None:
        self._path, self._arguments, self._name = path, arguments, ""
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Lazy[T_co]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T_co: ...

    def __get__(self, instance: object | None, owner: type) -> Lazy[T_co] | T_co:
        if instance is None:
            return self
        module, _, name = self._path.partition(":")
        arguments = (getattr(instance, each) for each in self._arguments)
        made: T_co = getattr(import_module(module), name)(*arguments)
        vars(instance)[self._name] = made  # which Python finds first from now on
        return made
