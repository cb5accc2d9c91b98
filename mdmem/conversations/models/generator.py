"""Language models: asked once, and not for long, and what they answer looked at before it counts.

A model is a function of the caller's, or a program (`models.program`). Without a sound answer the caller goes
on by rules and keeps the reason, so that nothing here raises an error but `answered`.
"""

from __future__ import annotations

import contextvars
import json
import os
import threading
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple, NoReturn, Protocol

from mdmem.conversations.models.program import Program
from mdmem.document.secret import ALLOW_MARK, masked
from mdmem.document.text.regex import regex
from mdmem.document.text.tokens import clipped, estimate, in_line, visible
from mdmem.errors import MdmemError


class Generator(Protocol):
    """Asks a language model; any function of these four, in this order, is one, and so is `mdmem.Program`."""

    def __call__(self, prompt: str, most: int, temperature: float, seconds: float, /) -> str:
        """Return what the model answers.

        Args:
            prompt: what it is asked, in one text.
            most: tokens that the answer should have at most; a longer one may be cut.
            temperature: from 0, as the model takes it.
            seconds: how long it may take. An answer that comes later counts for nothing.

        Raises:
            Exception: any; mdmem goes on by rules, and tells why.
        """


_TEMPERATURE = 0.3
_SECONDS = 120.0
_LONGEST_NAME = 100  # characters
_MOST_QUOTED = 300  # characters of an error


def answered(generator: Generator, prompt: str, most: int) -> str:
    """Ask a generator. A program is ended when its time is over, a function's thread is left alone."""
    if isinstance(generator, Program):
        # It ends by itself, and in this thread an interrupt ends it as well.
        return generator(prompt, most, _TEMPERATURE, _SECONDS).strip()
    answers: list[str] = []
    errors: list[Exception] = []

    def ask() -> None:
        try:
            answers.append(generator(prompt, most, _TEMPERATURE, _SECONDS).strip())
        except Exception as error:  # noqa: BLE001 - it is raised where somebody waits for it
            errors.append(error)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(ask,), daemon=True)
    thread.start()
    thread.join(_SECONDS)
    if errors:
        raise errors[0]
    if not answers:
        raise TimeoutError(f"no answer within {_SECONDS:g} seconds")
    return answers[0]


class Reply(NamedTuple):
    """What came of asking a model once: a value, or else a problem in one line.

    `by` is the name of the model, `asked` and `answered` are estimates of tokens.
    """

    value: Any = None
    problem: str = ""
    by: str = ""
    asked: int = 0
    answered: int = 0


def reply(generator: Generator, prompt: str, most: int) -> Reply:
    """Ask a generator, and take hidden characters and secrets out of its answer.

    Whatever goes wrong is the problem of the reply, and no exception.

    Args:
        prompt: what it is asked. What others said stands in it `fenced`.
        most: tokens that the answer should have at most. A longer one is not cut.
    """
    asked = Reply(by=named(generator), asked=estimate(prompt))
    try:
        answer: Any = answered(generator, prompt, most)
        if not isinstance(answer, str):
            return asked._replace(problem="the answer is not text")
        asked = asked._replace(answered=estimate(answer))
        text = _clean_answer(answer).strip()
    except Exception as error:  # noqa: BLE001 - whatever a program of others does not expect
        return asked._replace(problem=_describe_error(error))
    return asked._replace(value=text) if text else asked._replace(problem="the answer was blank")


def structured(generator: Generator, prompt: str, most: int, schema: dict[str, Any]) -> Reply:
    """Ask a generator for a JSON value, which may stand in a fence or among words; else as `reply`.

    Args:
        generator, prompt, most: as `reply`.
        schema: JSON Schema 2020-12, of our own. Where several values follow it, the last one counts.
    """
    asked = reply(generator, prompt, most)
    if asked.problem:
        return asked
    from mdmem.vault.schema.validator import fault  # noqa: PLC0415 - jsonschema is needed here alone

    problem = ""
    try:
        for value in reversed([*_json_values(asked.value)]):
            wrong = fault(schema, value)
            if not wrong:
                return asked._replace(value=value)
            problem = problem or f"the answer does not fit: {in_line(wrong)}"
    except RecursionError:
        problem = "the answer is nested too deeply"
    return asked._replace(value=None, problem=problem or "the answer holds no JSON")


def named(generator: Generator) -> str:
    """Return the name of a generator, in one line."""
    name = getattr(generator, "__name__", None) or type(generator).__name__
    return clipped(masked(in_line(str(name))), _LONGEST_NAME)


@cache
def prompt(name: str) -> str:
    """Read a built-in prompt by its name without suffix; `{target}` in it stands for a number.

    Neither a vault nor a setting replaces one: what a vault holds never becomes an instruction.
    """
    with open(os.path.join(os.path.dirname(__file__), "prompts", f"{name}.md"), encoding="utf-8") as file:
        return file.read()


def _describe_error(error: Exception) -> str:
    said = error.message if isinstance(error, MdmemError) else str(error)
    return clipped(_clean_answer(in_line(said)), _MOST_QUOTED) or type(error).__name__


def _clean_answer(text: str) -> str:
    """Return a text of others with nothing hidden in it, nothing that cannot be encoded, and no secret.

    The mark that lets a secret stand is for people to write.
    """
    sound = text.encode("utf-8", "backslashreplace").decode()
    return masked(visible(sound).replace(ALLOW_MARK, ALLOW_MARK.replace(":", " ")))


_BEGINS = regex(r"[\[{]")
_MOST_READ = 50_000_000  # characters that are read again and again to find JSON: a second
_DEEP = 10_000  # characters that are read before JSON is nested too deeply, at most


def _json_values(text: str) -> Iterator[Any]:
    decoder = json.JSONDecoder(parse_constant=_refuse_constant)
    at = read = 0
    while read < _MOST_READ and (begins := _BEGINS.search(text, at)):
        at = begins.end()
        try:
            value, at = decoder.raw_decode(text, begins.start())
        except json.JSONDecodeError as error:
            read += error.pos  # the error counts the lines before it
        except (ValueError, RecursionError):
            read += begins.start() + _DEEP
        else:
            yield _map_texts(value, _clean_answer)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_map_texts(each, change) for each in value]
    if isinstance(value, dict):
        return {change(key): _map_texts(each, change) for key, each in value.items()}
    return value
