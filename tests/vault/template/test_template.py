"""Templates: found by name, rendered strictly, and bounded whatever is in them."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import assume, example, given, settings, strategies as st

from mdmem.document.document import parse_text
from mdmem.document.markdown.blocks import scan
from mdmem.document.yaml import parse
from mdmem.errors import NamedNotFound, PathRefused, TemplateFailed, Usage
from mdmem.vault.builtin import builtin_folder
from mdmem.vault.template import filters, rendering
from mdmem.vault.template.rendering import Variable
from mdmem.vault.template.templates import Templates
from tests import speed
from tests.speed import examples, soak_most
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable

DATA = os.path.join(os.path.dirname(__file__), "..", "..", "data", "template")
NOW = datetime(2025, 11, 20, 10, 36, 5, tzinfo=UTC)
BUILTIN = sorted(file.removesuffix(".md") for file in os.listdir(builtin_folder("templates")))
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60)
# Texts that are likelier to mean something to Markdown, YAML or Jinja than random ones.
MARKS = ["#", "##", "---", "===", "```", "~~~", "<!--", "<pre>", "<?", "<!X", "<![CDATA[", "{{", "}}", "{%"]
MARKS += [
    *('"', "'", ":", "-", ">", "^x", "no", "2025-01-02", "12:30", "&a", "*a", "!t", "%", "@", "`", ","),
    *("[", "{#"),
]
BLANKS = [" ", "    ", "\t", "\n", "\r\n", "\r", "\n\n", "\u2028", "\x85", "\ufeff", "a"]
TRICKY = st.one_of(TEXTS, st.lists(st.sampled_from([*MARKS, *BLANKS]), max_size=12).map("".join))


def render(source: str, variables: dict[str, Any] | None = None, **options: Any) -> str:
    return Templates({"inline": source}).render("inline", variables or {}, now=NOW, **options)


def failure(
    source: str, variables: dict[str, Any] | None = None, own: dict[str, str] | None = None
) -> TemplateFailed:
    with pytest.raises(TemplateFailed) as caught:
        Templates({**(own or {}), "inline": source}).render("inline", variables or {}, now=NOW)
    return caught.value


def data(name: str) -> str:
    with open(os.path.join(DATA, name), encoding="utf-8", newline="") as file:
        return file.read()


# ------------------------------------------------------------------------------------------------- names


def test_the_built_in_templates_are_listed_with_their_descriptions() -> None:
    infos = Templates({}).names()
    assert [info.name for info in infos] == BUILTIN
    assert all(info.builtin and info.description.endswith(".") for info in infos)


def test_a_vaults_own_template_replaces_the_built_in_one_of_its_name() -> None:
    own = Templates({"note.md": "{#- Ours -#}\n# {{ title }}", "logs/x.md": "x", "data.json": "{}"})
    infos = {info.name: info for info in own.names()}
    assert set(infos) == {*BUILTIN, "logs/x", "data.json"}
    assert (infos["note"].builtin, infos["note"].description) == (False, "Ours")
    assert infos["decision"].builtin
    assert infos["logs/x"].description == ""
    assert own.render("note", {"title": "T"}, now=NOW) == "# T\n"


def test_an_own_template_can_extend_the_built_in_one_that_it_replaces() -> None:
    source = '{% extends "builtin/note.md" %}{% block fields %}reviewed: false\n{% endblock %}'
    text = Templates({"note.md": source}).render("note.md", {"title": "T", "body": "B"}, now=NOW)
    assert text == "---\ntype: note\ntitle: T\ncreated: 2025-11-20\nreviewed: false\n---\n\n# T\n\nB\n"
    assert (
        Templates({"note.md": source}).render("builtin/note", {"title": "T"}, now=NOW).count("reviewed") == 0
    )


def test_an_own_template_that_extends_itself_is_told_how_to_reach_the_built_in_one() -> None:
    with pytest.raises(TemplateFailed) as caught:
        Templates({"note.md": '{% extends "note.md" %}'}).render("note", {}, now=NOW)
    assert "without end" in caught.value.reason
    assert "builtin/" in caught.value.remedy


def test_templates_that_extend_each_other_without_end_are_found_before_they_are_rendered() -> None:
    own = Templates(
        {
            "a.md": 'text\n{% extends "b" %}',
            "b.md": '{% extends "a" %}',
            "c.md": '{% extends "a" %}',
            "decision.md": '{% extends "decision" %}',
            "note.md": '{% extends "builtin/note" %}',
            "fine.md": '{% if deep %}{% extends "fine" %}{% endif %}',
        }
    )
    found = {each.path.removeprefix(".mdmem/templates/"): each for each in own.lint()}
    assert list(found) == ["a.md", "b.md", "c.md", "decision.md"]
    assert {each.message for each in found.values()} == {"it extends itself without end"}
    assert found["a.md"].position.line == 2
    for name in ("a", "decision"):
        with pytest.raises(TemplateFailed) as caught:
            own.render(name, {"title": "T"}, now=NOW, refuse_unread=True)
        assert "without end" in caught.value.reason
        assert "builtin/" in caught.value.remedy


def test_own_templates_that_cannot_be_compiled_are_found_with_their_line_and_reason() -> None:
    own = {
        "daily.md": "a\n\n{% if %}\n",
        "deep/filter.md": "{{ a | none_such }}",
        "builtin/x.md": "{{",
        "back\\slash.md": "{% nothing %}",
        "long.md": "x" * 200_001,
        "note.md": '\ufeff{% extends "builtin/note.md" %}{% block fields %}a: {{ b }}\n{% endblock %}',
        "fine.json": '{"a": {{ a | tojson }}}',
        "uses.md": '{% include "daily.md" %}{{ unknown.attribute }}',
    }
    found = Templates(own).lint()
    assert [(each.path.removeprefix(".mdmem/templates/"), each.position.line) for each in found] == [
        *(("back\\slash.md", 1), ("builtin/x.md", 1), ("daily.md", 3), ("deep/filter.md", 1), ("long.md", 1)),
    ]
    assert {(each.code, each.severity) for each in found} == {("template-broken", "error")}
    assert found[2].message == "Expected an expression, got 'end of statement block'"
    assert all(each.hint for each in found)
    assert Templates({}).lint() == []


def test_an_own_template_that_names_one_that_is_not_there_is_found() -> None:
    own = {
        "a.md": 'text\n{% extends "nosuch" %}',
        "b.md": '{% include "none.md" %}',
        "c.md": '{% include "none.md" ignore missing %}{% include ["none.md", "a.md"] %}{% include name %}',
        "d.md": '{% include "note" %}{% extends "builtin/note.md" %}',
        "e.md": '{% include "broken.md" %}',
        "f.md": "caf\udce9",
        "broken.md": "{% if %}",
    }
    found = {each.path.removeprefix(".mdmem/templates/"): each.message for each in Templates(own).lint()}
    assert found.pop("broken.md")
    assert found == {
        "a.md": "there is no template 'nosuch'",
        "b.md": "there is no template 'none.md'",
        "f.md": "'f.md' is not UTF-8",
    }


def test_a_name_is_looked_up_exactly_then_with_md_then_with_json() -> None:
    own = Templates({"a": "1", "a.md": "2", "b.md": "3", "b.json": "4", "c.json": "5"})
    assert [own.render(name, {}, now=NOW) for name in ("a", "a.md", "b", "b.json", "c")] == [
        "1\n",
        "2\n",
        "3\n",
        "4\n",
        "5\n",
    ]
    assert own.show("c").name == "c.json"


def test_an_unknown_name_is_answered_with_all_names_the_nearest_first() -> None:
    with pytest.raises(NamedNotFound) as caught:
        Templates({}).render("desicion", {}, now=NOW)
    assert (caught.value.kind, caught.value.name, caught.value.near) == (
        "template",
        "desicion",
        ("decision", *(name for name in BUILTIN if name != "decision")),
    )
    with pytest.raises(NamedNotFound) as caught:
        Templates({}).show("qqqqq")
    assert caught.value.near == tuple(BUILTIN)
    with pytest.raises(NamedNotFound):
        Templates({"builtin/mine.md": "x"}).render("builtin/mine", {}, now=NOW)


@cases("name", ["../x", "/etc/passwd", "a\\b", "a/../b", "", "a//b", "./a", "a/"])
def test_a_name_that_leaves_the_folder_is_refused(name: str) -> None:
    with pytest.raises(PathRefused):
        Templates({}).render(name, {}, now=NOW)
    with pytest.raises(PathRefused):
        Templates({}).show(name)
    for tag in ("include", "extends"):
        error = failure(f"{{% {tag} {name!r} %}}".replace("'", '"'))
        assert "template's name" in error.reason
    assert "template's name" in failure("{% include name %}", {"name": name}).reason
    assert (
        "template's name" in failure("{% include [name, 'daily.md'] ignore missing %}", {"name": name}).reason
    )


@given(name=st.text(st.sampled_from("./\\ab~:"), max_size=12))
def test_no_name_reaches_a_template_that_is_not_in_the_mapping(name: str) -> None:
    with pytest.raises((PathRefused, NamedNotFound)):
        Templates({"x/only.md": "secret"}).render(name, {}, now=NOW)


# --------------------------------------------------------------------------------------------- variables


@cases(
    "source, required, optional",
    [
        ("{{ b.c }}{{ a }}", "a b", ""),
        ("{{ a|default('x') }}{{ b|d(c) }}", "c", "a b"),
        ("{{ a.b|default('x') }}", "a", ""),
        ("{{ a|default('x') }}{{ a }}", "", "a"),
        ("{% if a is defined %}{{ a }}{% endif %}{{ 1 if b is undefined else b }}", "", "a b"),
        ("{% if a %}{{ a }}{% endif %}", "a", ""),
        ("{{ now }}{{ today }}{{ range(3) }}{{ namespace(x=1).x }}", "", ""),
        ("{% set a = a|default('x') %}{{ a }}", "", "a"),
        ("{% for a in b %}{{ a }}{{ loop.index }}{% else %}{{ c }}{% endfor %}", "b c", ""),
        ("{% set x = a|default('') %}{% block b %}{{ x }}{{ c }}{% endblock %}", "c", "a"),
        ("{% include 'part.md' %}", "partvar", ""),
        ("{% include ['nothing.md', 'part.md'] %}{% include unknown %}", "partvar unknown", ""),
        ("{% extends 'base.md' %}{% block b %}{{ mine }}{{ super() }}{% endblock %}", "basevar mine", "kept"),
        ("{% include 'loop.md' %}", "x", ""),
    ],
)
def test_the_variables_of_a_template_are_listed_the_required_ones_first(
    source: str, required: str, optional: str
) -> None:
    own = {
        "t.md": source,
        "part.md": "{{ partvar }}",
        "base.md": "{{ basevar }}{% block b %}{{ kept|default('') }}{% endblock %}",
        "loop.md": "{{ x }}{% include 'loop.md' %}",
    }
    wanted = [Variable(name=name, required=True) for name in required.split()]
    wanted += [Variable(name=name, required=False) for name in optional.split()]
    assert list(Templates(own).show("t").variables) == wanted


def test_show_gives_the_source_and_the_full_name() -> None:
    own = Templates({"t.md": "{{ a }}\r\n"})
    assert (own.show("t").name, own.show("t").source) == ("t.md", "{{ a }}\r\n")


@pytest.mark.parametrize(("name", "source"), [("t.md", "\n{{ 1|nofilter }}"), ("a.md", "\n{% nope %}")])
def test_a_template_that_cannot_be_parsed_is_not_shown_and_its_place_is_named(name: str, source: str) -> None:
    with pytest.raises(TemplateFailed) as caught:
        Templates({"t.md": "{% include 'a.md' %}", name: source}).show("t")
    assert (caught.value.name, caught.value.line) == (name, 2)


def test_templates_of_which_each_names_two_others_are_read_once_each() -> None:
    own = {
        f"i{n}.md": f"{{% include 'i{n + 1}.md' %}}{{{{ x{n} }}}}{{% include 'i{n + 1}.md' %}}"
        for n in range(40)
    }
    assert len(Templates(own).show("i0").variables) == 40


def test_a_missing_variable_is_named_with_its_place() -> None:
    error = failure("{{ b|default('') }}\n{{ a }}{{ c }}", {})
    assert (error.name, error.line, error.reason) == ("inline", 2, "missing variable: a")
    assert error.remedy.startswith("give --var a=…; ")
    assert failure("{{ a }}{{ c }}", {"a": 1}).reason == "missing variable: c"


def test_a_variable_that_is_not_reached_need_not_be_given() -> None:
    source = "{% if a %}{{ a }}{% else %}{{ b }}{% endif %}"
    assert render(source, {"a": 1}) == "1\n"
    assert failure(source, {"a": 0}).reason == "missing variable: b"


def test_a_variable_that_only_a_computed_include_reads_is_named_when_it_is_missed() -> None:
    error = failure("{% include name %}", {"name": "part.md"}, {"part.md": "\n{{ deep }}"})
    assert (error.name, error.line, error.reason) == ("part.md", 2, "missing variable: deep")
    assert error.remedy.startswith("give --var deep=…; ")


@cases("value", [object(), print, {"a": {1, 2}}, [b"x"], 1j])
def test_a_variable_that_is_no_plain_value_is_refused(value: Any) -> None:
    assert "is not a value" in failure("{{ a }}", {"a": value}).reason


def test_a_moment_without_a_time_zone_is_refused() -> None:
    with pytest.raises(Usage):
        Templates({}).render("daily", {}, now=datetime(2025, 1, 1))  # noqa: DTZ001 - what is tested


# ---------------------------------------------------------------------------------------------- failures


@cases(
    "source, line, reason",
    [
        ("a\n{% if %}", 2, "Expected an expression, got 'end of statement block'"),
        ("a\n\n{{ 'x'|nofilter }}", 3, "No filter named 'nofilter'."),
        ("{% for a in b %}", 1, "Unexpected end of template"),
        ("a\n{{ [1, 'a']|sort }}", 2, "TypeError"),
        ("\n\n{{ 'a' + 1 }}", 3, "arithmetic is not offered: join texts with `~`"),
        ("\n{{ {}.x.y }}", 2, "'dict object' has no attribute 'x'"),
        ("\n{{ [1]|join('', attribute='a') }}", 2, "'int object' has no attribute 'a'"),
        ("\n{% include 'absent.md' %}", 2, "there is no template 'absent.md'"),
        ("\n{% include ['a.md', 'b.md'] %}", 2, "there is no template 'a.md' or 'b.md'"),
        ("\n{% include 'bad.md' %}", 3, "TypeError"),
        ("\n{% include 'worse.md' %}", 2, "Encountered unknown tag 'nope'"),
        ("\n{% include '../x.md' %}", 2, "'../x.md': a template's name has no empty part"),
        ("\n{% include 'worst.md' %}", 2, "No filter named 'nofilter'."),
        ("{{ 'x'|truncate(1) }}", 1, "AssertionError"),
        ("\n{{ range() }}", 2, "TypeError"),
        ("\n{% macro m() %}{% endmacro %}", 2, "macros are not offered"),
        ("\n{% call m() %}{% endcall %}", 2, "`call` is not offered"),
        ("\n{% import 'bad.md' as m %}", 2, "imports are not offered"),
        ("\n{% from 'bad.md' import m %}", 2, "imports are not offered"),
        ("\n{% include 'old.md' %}", 3, "macros are not offered"),
        ("\n{% for i in b recursive %}{{ loop(b) }}{% endfor %}", 2, "`recursive` is not offered"),
        ("\n{{ 'abc'.upper() }}", 2, "access to attribute 'upper' of 'str' object is unsafe."),
        ("{{ 'x'|date }}", 1, "ValueError"),
    ],
)
def test_a_failure_says_where_and_why(source: str, line: int, reason: str) -> None:
    own = {"bad.md": "\n\n{{ [1, 'a']|sort }}", "worse.md": "\n{% nope %}", "worst.md": "\n{{ 1|nofilter }}"}
    own["old.md"] = "\n\n{% macro m() %}{% endmacro %}"
    error = failure(source, {"b": []}, own)
    included = re.search(r"include '(bad|worse|worst|old)\.md'", source)
    assert (error.name, error.line) == (f"{included[1]}.md" if included else "inline", line)
    assert error.reason.startswith(reason)
    assert str(error).startswith(f"template {error.name}:{line}: ")


REFUSED = (
    r" is unsafe\.$|^a \w+ is not a value that a template can use here$|^No filter named |^autoescape is not|"
    r"^missing variable: (request|environment|config|dict|cycler|joiner|lipsum)$"
)


@cases(
    "source",
    [
        *("{{ ''.__class__ }}", "{{ ''['__class__'] }}", "{{ ''.__class__.__mro__[1].__subclasses__() }}"),
        *("{{ ''|attr('__class__') }}", "{{ [''|string]|map(attribute='__class__')|list }}"),
        *("{{ range.__init__.__globals__ }}", "{{ namespace.mro() }}", "{{ namespace().__class__ }}"),
        *("{{ now.__class__ }}", "{{ now.now() }}", "{{ now.tzinfo }}", "{{ self.__init__ }}"),
        "{{ self._TemplateReference__context }}",
        *("{% for i in [1] %}{{ loop._iterable }}{% endfor %}", "{% for i in [1] %}{{ loop }}{% endfor %}"),
        *("{{ [].append(1) }}", "{{ {}.update({}) }}", "{{ 'x'.encode() }}", "{{ 'x'.translate({}) }}"),
        *("{{ '{0.__class__}'.format(1) }}", "{{ '{a}'.format_map({'a': 1}) }}"),
        *("{{ 5 .to_bytes(1000, 'big') }}", "{% autoescape true %}{{ '<' }}{% endautoescape %}"),
        *("{{ request }}", "{{ environment }}", "{{ config }}", "{{ dict() }}", "{{ cycler(1) }}"),
        *("{{ joiner() }}", "{{ lipsum() }}", "{{ 'x'|random }}", "{{ 'x'|safe }}"),
        *("{% set n = namespace() %}{% set n.a = n %}{{ n }}", "{% set n = namespace() %}{{ [n] }}"),
        *("{% set n = namespace() %}{{ n|string }}", "{% set n = namespace() %}{{ n is lower }}"),
        "{% set n = namespace() %}{{ n ~ 'x' }}",
    ],
)
def test_a_template_reaches_nothing_but_its_values(source: str) -> None:
    assert re.search(REFUSED, failure(source).reason)


def doubling(operation: str, start: str = "{% set x = 'aaaaaaaa' %}", end: str = "{{ x }}") -> str:
    return start + operation * 40 + end


LONG = "{% set long = range(99999)|join %}"


def sharing(use: str) -> str:
    return doubling("{% set x = (x, x) %}", end=f"{{{{ {use} }}}}")


BOMBS = {
    "numbers of one hash": "{{ [" + ",".join(str(n * (2**61 - 1)) for n in range(8000)) + "]|unique|list }}",
    "keys of one hash": "{{ {" + ",".join(f"{n * (2**61 - 1)}: 0" for n in range(6000)) + "} }}",
    "long number": "{{ " + "9" * 100_000 + " }}",
    "format width": "{{ '{:>1000000000}'.format(1) }}",
    "format width given": "{{ '{:{}}'.format(1, 1000000000) }}",
    "format by item": "{{ 'x'['format'](1) }}",
    "center": "{{ 'a'|center(1000000000) }}",
    "center method": "{{ 'a'.center(1000000000) }}",
    "ljust": "{{ 'a'.ljust(1000000000) }}",
    "zfill": "{{ 'a'.zfill(1000000000) }}",
    "expandtabs": "{{ '\t'.expandtabs(1000000000) }}",
    "indent": "{{ 'a\nb'|indent(1000000000) }}",
    "indent by text": LONG + "{{ range(9999)|join('\n')|indent(long) }}",
    "batch": "{{ [1]|batch(1000000000, 0)|list }}",
    "slice": "{{ [1]|slice(1000000000)|list }}",
    "round": "{{ 1.5|round(1000000000, 'ceil') }}",
    "round down": "{{ 1|round(-1000000000) }}",
    "json indent": "{{ [[1]]|tojson(indent=1000000000) }}",
    "range loop": "{% for i in range(1000000000) %}{% endfor %}",
    "range list": "{{ range(1000000000)|list }}",
    "range unique": "{{ range(10000000)|unique }}",
    "nested loops": "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
    "filtered loops": "{% for i in range(9999) %}{% for j in range(9999) if false %}{% endfor %}{% endfor %}",
    "include itself": "{% include 'self.md' %}",
    "extends itself": "{% extends 'self.md' %}",
    "includes twice, and so on": "{% set name = 'i0.md' %}{% include name %}",
    "include in a loop": "{% for i in range(100000) %}{% include 'empty.md' %}{% endfor %}",
    "block itself": "{% block a %}{{ self.a() }}{% endblock %}",
    "double by tilde": doubling("{% set x = x ~ x %}"),
    "double by block": doubling("{% set x %}{{ x }}{{ x }}{% endset %}"),
    "double by join": doubling("{% set x = [x, x]|join %}"),
    "double by filter block": doubling(
        "{% set x %}{% filter upper %}{{ x }}{{ x }}{% endfilter %}{% endset %}"
    ),
    "shared lists written": doubling("{% set x = [x, x] %}"),
    "shared lists compared": "{% set y = 'aaaaaaaa' %}"
    + doubling("{% set x = [x, x] %}{% set y = [y, y] %}", end="{{ x == y }}"),
    "shared tuples looked up": sharing("{}[x]"),
    "shared tuples compared": sharing("x == x[0]"),
    "shared tuples tested": sharing("x is lower"),
    "shared tuples hashed": doubling("{% set x = (x, x) %}", end="{{ {x: 1} }}"),
    "deep tuple": "{% set x = () %}" + "{% set x = (x,) %}" * 2500 + "{{ {x: 1} }}",
    "replace": LONG + "{{ long|replace('9', long) }}",
    "replace nothing": LONG + "{{ long|replace('', long) }}",
    "join by": LONG + "{{ range(100000)|join(long) }}",
    "trim": LONG + "{{ long|trim(long) }}",
    "slices": LONG + "{% for i in range(1000) %}{% set y = long[1:] %}{% endfor %}",
    "strftime": "{{ now.strftime('%1000000000Y') }}",
    "date": "{{ now|date('%1000000000Y') }}",
    "time": "{{ now|time('%01000000000H') }}",
    "under in a loop": "{% set x = range(9999)|join('\n# a') %}"
    "{% for i in range(10000) %}{% set y = x|under(2) %}{% endfor %}",
    "output": "{% for i in range(90000) %}" + "x" * 1000 + "{% endfor %}",
    "output kept": "{% set x %}{% for i in range(90000) %}" + "x" * 1000 + "{% endfor %}{% endset %}",
    "output of a block": "{% block b %}"
    + "x" * 100000
    + "{% endblock %}{% for i in range(99999) %}{% set y = self.b() %}{% endfor %}",
    "deep brackets": "{{ " + "(" * 50000 + "1" + ")" * 50000 + " }}",
    "deep lists": "{{ " + "[" * 5000 + "]" * 5000 + " }}",
    "deep conditions": "{% if 1 %}" * 3000 + "{% endif %}" * 3000,
    "deep loops": "{% for a in [1] %}" * 60 + "{% endfor %}" * 60,
    "many operators": "{{ 1" + " and 1" * 20000 + " }}",
    "many filters": "{{ 1" + "|abs" * 20000 + " }}",
    "large source": "x" * 200_001,
}


@cases("bomb", BOMBS)
def test_a_template_that_would_do_too_much_is_stopped(bomb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own = {f"i{n}.md": "{% include name %}" for n in range(30)}
    own = {
        name: f"{{% set name = 'i{n + 1}.md' %}}{source * 2}" for n, (name, source) in enumerate(own.items())
    }
    own |= {"self.md": BOMBS[bomb], "empty.md": "", "i30.md": "x"}
    # A tenth of the work that is allowed, or less, is reached by the same way, and sooner.
    fewer = 10 if speed.is_all else 80
    monkeypatch.setattr(rendering, "_LEAST_WORK", rendering._LEAST_WORK // fewer)
    with pytest.raises(TemplateFailed):
        Templates(own).render("self", {}, now=NOW, max_chars=1_000_000 // fewer)


def test_work_is_bounded_as_it_is_shipped() -> None:
    with pytest.raises(TemplateFailed, match="more work than a template may"):
        render("{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}")


def test_the_result_is_bounded() -> None:
    assert render("{{ 'xxxxxxxxx' }}", max_chars=10) == "xxxxxxxxx\n"
    with pytest.raises(TemplateFailed, match="more than 10 characters"):
        render("{{ 'xxxxxxxxxxx' }}", max_chars=10)


@pytest.mark.parametrize("lines", soak_most([40_000, 8_000], quick=(1,)))
def test_a_body_as_long_as_a_result_may_be_is_rendered(monkeypatch: pytest.MonkeyPatch, lines: int) -> None:
    monkeypatch.setattr(rendering, "_LEAST_WORK", rendering._LEAST_WORK * lines // 40_000)
    body = "# Heading\n\nSome text.\n\n" * lines
    made = Templates({}).render("note", {"title": "T", "body": body}, now=NOW, max_chars=lines * 25)
    assert len(made) > len(body)


# ------------------------------------------------------------------------------------------------ output


@cases(
    "source, expected",
    [
        ("a", "a\n"),
        ("a\n\n\n", "a\n"),
        ("", "\n"),
        ("{{ '<&>' }}", "<&>\n"),
        ("  {% if true %}\na\n  {% endif %}\nb", "a\nb\n"),
        ("a\r\nb", "a\nb\n"),
        ("{{ '{{ x }}' }}", "{{ x }}\n"),
        ("{{ now }}", "2025-11-20 10:36:05+00:00\n"),
        ("{{ today }}", "2025-11-20\n"),
        ("{{ now.year }}-{{ now.strftime('%m') }}", "2025-11\n"),
        ("{{ now|date('%d.%m.%Y') }} {{ now|time }}", "20.11.2025 10:36\n"),
        ("{{ '2025-01-02'|date('%d %B') }} {{ '09:05:01'|time('%H:%M:%S') }}", "02 January 09:05:01\n"),
        ("{{ '2025-01-02T03:04'|time }}", "03:04\n"),
        (
            "{% for x in [3, 1, 2]|sort %}{{ loop.index }}{{ x }}{{ ',' if not loop.last }}{% endfor %}",
            "11,22,33\n",
        ),
        (
            "{% set n = namespace(t='') %}{% for i in range(5) %}{% set n.t = n.t~i %}{% endfor %}{{ n.t }}",
            "01234\n",
        ),
        ("{{ [{'n': 'b'}, {'n': 'a'}]|map(attribute='n')|sort|join(', ') }}", "a, b\n"),
        ("{% for k, v in {'a': 1}.items() %}{{ k }}={{ v }}{% endfor %}", "a=1\n"),
        (
            "{% for k, v in [{'x': 1}, {'x': 1, 'y': 3}]|groupby('x') %}{{ k }}:{{ v|length }}{% endfor %}",
            "1:2\n",
        ),
        ("{% for g in [{'x': 1}]|groupby('x') %}{{ g.grouper }}{{ g.list|length }}{% endfor %}", "11\n"),
        ("{{ 'a\nb\n\nc'|indent(2) }}", "a\n  b\n\n  c\n"),
        ("{{ 'a\nb'|indent('> ', first=true) }}", "> a\n> b\n"),
        ("{{ 'aXbX'|replace('X', '-') }}{{ 'aXbX'|replace('X', '', 1) }}", "a-b-abX\n"),
        ("{{ [1, 2]|join('+') }}", "1+2\n"),
        ("{{ 2.567|round(1) }}", "2.6\n"),
        (
            "{{ {'b': [1, none, true], 'a': now}|tojson }}",
            '{"b": [1, null, true], "a": "2025-11-20T10:36:05+00:00"}\n',
        ),
        ("{{ '<é>'|tojson }}{{ ' x '|trim }}{{ 'xx'|trim('x') }}", '"<é>"x\n'),
        (
            "{{ 'a, b,,c'|listed }} {{ none|listed }} {{ ['x']|listed }} {{ 1|listed }}",
            "['a', 'b', 'c'] [] ['x'] [1]\n",
        ),
        (
            "{{ 1 < 2 < 3 }} {{ 'a' in 'abc' }} {{ 2 not in [1] }} {{ 'abc'[1:] }} {{ [1,2,3][-1] }}",
            "True True True bc 3\n",
        ),
        ("{% set a, b = (1, 2) %}{{ a ~ b }}{% set c %}x{{ a }}{% endset %}{{ c }}", "12x1\n"),
        ("{% extends 'base.md' %}{% block b %}[{{ super() }}]{% endblock %}", "A[B]C\n"),
        ("{% include 'absent.md' ignore missing %}x{% include ['absent.md', 'part'] %}", "xpart\n"),
    ],
)
def test_what_is_rendered(source: str, expected: str) -> None:
    own = {
        "base.md": "\ufeffA{% block b %}B{% endblock %}C",
        "part.md": "part",
    }
    assert Templates({**own, "inline": source}).render("inline", {}, now=NOW) == expected


def test_now_is_given_in_utc() -> None:
    now = datetime(2025, 1, 1, 1, 30, tzinfo=timezone(timedelta(hours=2)))
    templates = Templates({"inline": "{{ today }} {{ now|time }}"})
    assert templates.render("inline", {}, now=now) == "2024-12-31 23:30\n"


def test_making_and_listing_templates_imports_no_jinja() -> None:
    program = (
        "import sys; from mdmem.vault.template.templates import Templates; Templates({'a.md': '{{'}).names();"
        "sys.exit('jinja2' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


# ----------------------------------------------------------------------------------------------- filters

PLAIN = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**20), 10**20), st.floats(allow_nan=False), TRICKY
)
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TRICKY, inner, max_size=4),
    max_leaves=8,
)


@given(value=VALUES)
@example(value="no")
@example(value="12:30")
@example(value="0b1")
@example(value="1e3")
@example(value="y")
@example(value="=")
@example(value=1e16)
@example(value=math.inf)
@example(value={"a": ["x, y", {"null": "~"}]})
@example(value={"": {"{{": None}})
def test_yaml_reads_back_as_the_same_value_in_yaml_1_1_and_1_2(value: Any) -> None:
    text = filters.to_yaml(value)
    assert "\n" not in text
    parsed = parse(f"key: {text}\n", max_depth=64, max_values=10_000)
    assert not parsed.flaws
    assert parsed.node
    assert parsed.node.value == {"key": value}
    # An ISO date stands plain on purpose, and is a date to YAML 1.1. PyYAML's own reader, unlike libyaml's,
    # ends a plain text at a `?` inside brackets.
    assume(not re.search(r"[0-9]{4}-[0-9]{2}-[0-9]{2}|[\[{].*\?", text))
    assert yaml.safe_load(f"key: {text}\n") == {"key": value}


@cases(
    "value, expected",
    [
        ("simple words", "simple words"),
        ("no", '"no"'),
        ("12:30", '"12:30"'),
        ("2025-01-02", "2025-01-02"),
        ("a: b", '"a: b"'),
        ("", '""'),
        ("a\nb", r'"a\nb"'),
        (date(2025, 1, 2), "2025-01-02"),
        (NOW, "2025-11-20T10:36:05Z"),
        (["a", "b, c", 1, None, True], '[a, "b, c", 1, null, true]'),
        (("a",), "[a]"),
        ({"a": {"b": []}}, "{a: {b: []}}"),
        (range(3), "[0, 1, 2]"),
    ],
)
def test_yaml_stays_plain_where_nobody_can_misread_it(value: Any, expected: str) -> None:
    assert filters.to_yaml(value) == expected


@pytest.mark.parametrize("value", [{1: 2}, {"k" * 1001: 1}, object()])
def test_yaml_refuses_what_frontmatter_has_no_form_for(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        filters.to_yaml(value)


@cases("name", ["yaml", "heading", "line", "slug", "listed", "date", "trim", "tojson"])
def test_a_filter_does_not_hide_a_missing_value(name: str) -> None:
    assert failure(f"{{{{ {{}}.x|{name} }}}}").reason == "'dict object' has no attribute 'x'"


@cases(
    "text, expected",
    [
        ("Hello, World!", "hello-world"),
        ("  A_b  c-d ", "a_b-c-d"),
        ("Größe 日本語 №5", "größe-日本語-5"),
        ("C++ & C#", "c--c"),
        ("a\nb", "a-b"),
        (5, "5"),
    ],
)
def test_slug(text: Any, expected: str) -> None:
    assert filters.slug(text) == expected


@cases(
    "text, expected",
    [
        ("a\n# b", "a # b"),
        ("## # a", "a"),
        ("#tag", "tag"),
        ("C #", r"C \#"),
        ("C#", "C#"),
        ("fact ^id", r"fact \^id"),
        ("2^10", "2^10"),
        (" ", "Untitled"),
        ("###", "Untitled"),
        (5, "5"),
    ],
)
def test_heading(text: Any, expected: str) -> None:
    assert filters.heading(text) == expected


@given(text=TRICKY)
def test_a_heading_is_one_heading_whatever_its_text(text: str) -> None:
    title = filters.heading(text)
    found = scan(f"# {title}\n\nafter\n")
    assert [(h.level, h.title) for h in found.headings] == [(1, title)]
    assert not found.blocks


@given(text=TRICKY, level=st.integers(0, 5))
@example(text="# a\n```\nb", level=2)
@example(text="a\n===\n<!-- b", level=1)
@example(text="\u2028\n===", level=1)
@settings(max_examples=examples(500))
def test_a_text_put_under_a_heading_stays_in_its_section(text: str, level: int) -> None:
    placed = filters.under(text, level)
    marks = "#" * max(level, 1)
    headings = scan(f"{marks} before\n\n{placed}\n\n{marks} after\n").headings
    assert (headings[0].title, headings[-1].title) == ("before", "after")
    assert all(h.level > level for h in headings[1:-1])
    assert filters.under(placed, level) == placed


def test_a_text_that_fits_its_section_is_left_as_it_is() -> None:
    text = "Some text.\n\n### Deeper\n\n- a ^id\n\n```sh\n# comment\n```"
    assert filters.under(text, 2) == text


def test_no_heading_is_put_deeper_than_markdown_has_them() -> None:
    assert filters.under("# a\n\n##### b\n\n###### c", 4) == "##### a\n\n###### b\n\n###### c"


# ------------------------------------------------------------------------------------ built-in templates

EXAMPLES: dict[str, dict[str, Any]] = {
    "note": {"title": "Backups", "body": "# When\n\nEvery night at 02:00.\n", "tags": "ops, no"},
    "decision": {
        "title": "Use SQLite: one file",
        "status": "proposed",
        "context": "We need a store that a laptop can run.",
        "decision": "SQLite, in WAL mode.\n\n- one writer\n- many readers",
        "consequences": "No server to run.\n\n```sh\n# a backup is a copy",
        "tags": ["storage"],
    },
    "preference": {"value": "dark", "why": "Bright screens tire the eyes at night.", "strength": "0.8"},
    "rule": {
        "text": "# Style\n\nType everything.\n",
        "globs": ["src/**/*.py", "*.pyi"],
        "priority": "7",
        "title": "T",
    },
    "project": {"title": "Demo", "description": "A library for demonstrations."},
    "working": {"goal": "Make the tests pass.", "state": "Two of three are green."},
    "daily": {"date": "2025-01-02"},
    "context": {
        "parts": [{"name": "project", "title": "Project memory", "blocks": ["```memory A.md\na\n```"] * 2}],
        "left_out": "```left-out\nproject: B.md, 12 tokens\n```",
    },
}


@cases("name", EXAMPLES)
def test_a_built_in_template_with_all_its_variables(name: str) -> None:
    assert {v.name for v in Templates({}).show(name).variables} == set(EXAMPLES[name])
    assert Templates({}).render(name, EXAMPLES[name], now=NOW) == data(f"{name}-full.md")


@cases("name", EXAMPLES)
def test_a_built_in_template_with_only_what_it_requires(name: str) -> None:
    required = {v.name for v in Templates({}).show(name).variables if v.required}
    assert required <= {"title", "value"}
    given_ = {key: value for key, value in EXAMPLES[name].items() if key in required}
    assert Templates({}).render(name, given_, now=NOW) == data(f"{name}-least.md")


def built_in(name: str, variables: dict[str, Any]) -> Any:
    document = parse_text(f"{name}.md", Templates({}).render(name, variables, now=NOW))
    # A block id that the texts repeat is theirs.
    assert [f for f in document.findings if f.code != "duplicate-block-id"] == []
    return document


def outline(document: Any, level: int) -> list[str]:
    return [h.title for h in document.headings if h.level <= level]


def texts(*names: str) -> Callable[[Any], Any]:
    optional = dict.fromkeys(names[1:], TRICKY)
    return given(variables=st.fixed_dictionaries({names[0]: TRICKY} if names[0] else {}, optional=optional))


@texts("title", "body", "tags")
def test_a_note_is_well_formed_whatever_its_variables(variables: dict[str, str]) -> None:
    document = built_in("note", variables)
    assert document.fields["title"] == " ".join(variables["title"].split())
    assert document.fields["type"] == "note"
    assert document.fields["created"] == "2025-11-20"
    assert all(isinstance(tag, str) for tag in document.fields.get("tags", []))
    assert outline(document, 1) == [filters.heading(variables["title"])]


@texts("title", "context", "decision", "consequences", "status", "tags")
def test_a_decision_is_well_formed_whatever_its_variables(variables: dict[str, str]) -> None:
    document = built_in("decision", variables)
    title = filters.heading(variables["title"])
    assert document.fields["title"] == " ".join(variables["title"].split())
    assert document.fields["status"] == " ".join(variables.get("status", "accepted").split())
    assert outline(document, 2) == [title, "Context", "Decision", "Consequences"]


@texts("value", "why", "strength")
def test_a_preference_is_well_formed_whatever_its_variables(variables: dict[str, str]) -> None:
    document = built_in("preference", variables)
    assert document.fields["value"] == variables["value"]
    assert document.fields["type"] == "preference"


@texts("title", "description")
def test_a_project_memory_is_well_formed_whatever_its_variables(variables: dict[str, str]) -> None:
    document = built_in("project", variables)
    title = filters.heading(variables["title"])
    assert document.fields == {}
    assert outline(document, 1) == [title]
    assert outline(document, 2)[-3:] == ["Commands", "Conventions", "Decisions"]


@texts("", "goal", "state")
def test_a_working_memory_is_well_formed_whatever_its_variables(variables: dict[str, str]) -> None:
    assert outline(built_in("working", variables), 2) == ["Working memory", "Goal", "State", "Next"]


@texts("", "date")
def test_a_daily_log_is_well_formed_whatever_its_date(variables: dict[str, str]) -> None:
    document = built_in("daily", variables)
    day = variables.get("date", "2025-11-20")
    assert document.fields["title"] == " ".join(day.split())
    assert outline(document, 2) == [filters.heading(day), "Done", "Learned", "Next"]


# --------------------------------------------------------------------------------- variables nobody reads


def test_a_variable_that_a_template_does_not_read_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(TemplateFailed) as caught:
        render("{{ title }} {{ text }}", {"titel": "x", "text": "y"}, refuse_unread=True)
    assert caught.value.message == "template inline: it has no variable 'titel'"
    assert caught.value.hint == "nearest names: title"
    assert render("{{ text }}", {"titel": "x", "text": "y"}) == "y\n"


def test_a_variable_that_a_template_reads_somewhere_is_not_refused() -> None:
    own = {
        "base": "{% block a %}{{ up }}{% endblock %}{% include 'part' %}",
        "part": "{{ part }}",
        "inline": "{% extends 'base' %}{% if yes %}{{ never }}{% endif %}{% block a %}{{ b }}{% endblock %}",
        "computed": "{% include which %}",
    }
    given = dict.fromkeys(("up", "part", "yes", "never", "b", "now", "today"), "")
    Templates(own).render("inline", given, now=NOW, refuse_unread=True)
    Templates(own).render("computed", {"which": "part", "part": "x"}, now=NOW, refuse_unread=True)
