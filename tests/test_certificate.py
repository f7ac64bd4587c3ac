"""Certificates: sound arguments pass after a trip through JSON, and no tampering does."""

from __future__ import annotations

import ast
import contextlib
import copy
import json
import pathlib
import time

import mpmath
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

import fysym
from fysym import certificate, certify, entropy
from fysym.catalog import SEPARABLE as ENTRIES
from fysym.certificate import CertificateError, balls, covers, examine, export, ranges, strips, verify, writing
from fysym.certificate import data as reading
from fysym.certificate import steps as rules
from fysym.certify_precision import precision
from fysym.concavity import decide
from fysym.deadline import Deadline
from fysym.entropy import VARIABLE as t
from fysym.errors import FysymError, UndecidedError, UnsupportedError
from fysym.signs import Proof, prove_sign

pytest.importorskip("flint")


def arguments(h, params, prover=None):
    """A claim h'' < 0 for each piece and each face of an entropy."""

    def walk(e):
        for piece in e.pieces:
            f = e.opened(piece.stretched(t, t, 2))
            found = prove_sign(f, t, Deadline(4)) if prover is None else prover(f)
            found = found or certify.certify_sign(f, t, -1, 10)
            assert found is not None
            yield ("h'' < 0" if found.strict else "h'' <= 0", found)
        for face in e.faces():
            yield from walk(entropy.bind(e, face, Deadline(20)))

    return list(walk(entropy.read(h, params, Deadline(20))))


def made(h, params=None, prover=None):
    return json.loads(json.dumps(export(h, arguments(h, params or {}, prover), params or {})))


def by_balls(f):
    return certify.certify_sign(f, t, -1, 10)


ENTROPIES = {
    **{name: (entry.expression, dict(entry.params)) for name, entry in ENTRIES.items()},
    "Sturm": ("t**(1/3) - t**(1/2)/10 - t*9/10", {}),
    "Sturm with a zero": ("t/3 - t**4/3 + 2*t**3/3 - t**2/2", {}),
    "pieces": ("Min(t, 1 - t) + t*(1 - t)", {}),
    "two parameters": ("-a*t*log(t) + b*t*(1 - t)", {"a": "a > 0", "b": "b > 0"}),
    "extremes": ("-t*log(t) - t**2*log(t)", {}),
    "substitution": ("sqrt(t*(1 - t))", {}),
    "cover": ("exp(-t)*log(1 + t*(1 - t))", {}),
    "cover with gamma": ("-log(gamma(1 + t))", {}),
    "closed range": ("t - t**(1 + a)", {"a": "1/2 <= a <= 2"}),
    "t to the t": ("1 - t**t", {}),
}


@pytest.mark.parametrize("name", ENTROPIES)
def test_sound_certificates_pass(name):
    h, params = ENTROPIES[name]
    data = made(h, params)
    assert verify(data) is True
    assert all(isinstance(line, str) for line in examine(data))


@pytest.mark.parametrize("h", ["-t*log(t)", "sin(pi*t)/pi", "t*sqrt(1 - t)", "-t**2*log(t) - t*log(t)", "1 - t**t"])
def test_covers_pass(h):
    data = made(h, prover=by_balls)
    assert data["claims"][0]["argument"]["rule"] == "ball arithmetic" and verify(data)


def test_a_family_by_boxes():
    a = sympy.Symbol("a", positive=True)
    h, params = "t - t**(1 + a)", {"a": "1/2 <= a <= 2"}
    f = sympy.diff(t - t ** (1 + a), t, 2)
    made = export(h, [("h'' < 0", certify.certify_sign(f, t, -1, 10, {a: (sympy.Rational(1, 2), 2)}))], params)
    assert verify(json.loads(json.dumps(made)))
    part = certify.certify_sign(f, t, -1, 10, {a: (sympy.Rational(1, 2), 1)})
    with pytest.raises(CertificateError, match="for all its parameters"):
        verify(export(h, [("h'' < 0", part)], params))
    for k in range(0, len(made["claims"][0]["argument"]["cover"]["boxes"]), 5):
        spoiled = copy.deepcopy(made)
        del spoiled["claims"][0]["argument"]["cover"]["boxes"][k]
        refused(spoiled)


FAMILIES = [
    ("a*t*(1 - t) + (1 - a)*exp(-t)*log(1 + t*(1 - t))", {"a": "0 <= a <= 1"}),
    ("exp(-t)*log(1 + a*t*(1 - t))", {"a": "1/2 < a < 1"}),
    ("-t*log(t) + a*exp(-t)*log(1 + t*(1 - t))", {"a": "a >= 0"}),
    ("t*(1 - t) + a*exp(-t)*log(1 + t*(1 - t)) - b*t*log(t)", {"a": "a >= 0", "b": "b > 0"}),
    ("-t*log(t) + sin(a*t)/a", {"a": "1/2 < a < 33/10"}),
    ("t*(1 - t) + a*t*(1 - t)*sin(9*t)/45", {"a": "-1 <= a <= 1"}),
]


@pytest.mark.parametrize(("h", "params"), FAMILIES, ids=[h for h, _ in FAMILIES])
def test_families_that_the_prover_leaves_open_are_certified(h, params):
    clock = Deadline(20)
    verdict = decide(entropy.read(h, params, clock), clock)
    assert verdict.fact.status == "certified" and verdict.strict
    made = json.loads(json.dumps(export(h, [("h'' < 0", proof) for proof in verdict.proofs], params)))
    assert verify(made)
    wider = {name: {"a": "-9 < a < 9", "b": "b > -1"}[name] for name in params}
    refused({**made, "parameters": wider})
    for path, _ in leaves(made):
        if "boxes" in path and path[-2:] == (0, 1):
            refused(put(made, path, "0"))
            break


@pytest.mark.parametrize(
    ("h", "params"),
    [("(t - t**a)/(a - 1)*cos(t/9)", {"a": "1 < a < 2"}), ("a*exp(-t)*log(1 + t*(1 - t))", {"a": "0 < a < 1"})],
)
def test_a_family_that_degenerates_at_an_open_end_is_not_covered(h, params):
    """h'' tends to 0, or to 0/0, at an open end of the range: boxes over the closed range cannot exist."""
    clock = Deadline(20)
    assert decide(entropy.read(h, params, clock), clock).fact.status == "sampled"


def test_a_monotone_function():
    f = sympy.log(1 + t) - t
    proof = Proof(f, -1, True, "monotone", (Proof(1 / (1 + t) - 1, -1, True, "its range"),))
    made = export("(1 + t)**2*log(1 + t)/2 - 3*(1 + t)**2/4 - t**3/6", [("h'' < 0", proof)], {})
    assert any("monotone" in line for line in examine(made))


def renewed(data):
    content = {k: v for k, v in data.items() if k != "digest"}
    return content | {"digest": reading.digest(content)}


def refused(data):
    """Refused as it is, and also when the forger renews the digest."""
    for forged in (data, renewed(data)):
        with pytest.raises(FysymError) as error:
            verify(forged)
        assert str(error.value)


def leaves(data, path=()):
    if isinstance(data, (dict, list)):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from leaves(value, (*path, key))
    else:
        yield path, data


def put(data, path, value):
    spoiled = copy.deepcopy(data)
    place = spoiled
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return spoiled


def others(path, value):
    """Wrong values for a leaf; none where a change does not alter what is stated."""
    name = next(key for key in reversed(path) if isinstance(key, str))
    if name in ("order", "rule", "strict", "precision", "bound"):
        return []
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [other for other in (value + 1, -value, value * 100) if other != value]
    if name in ("boxes", "delta"):
        return ["1/3", value + "1"]
    if name in ("expression", "power", "log_power", "entropy"):
        return [f"{value} + t**3/1000", f"-({value}) + 1/7", "import os", "t**"]
    if name in ("claim",):
        return ["h'' > 0", "h''' < 0", "h < 0", "h''"]
    if name == "symbols":
        return ["negative"]
    return [value + "x", ""]


FORGED = [
    ("-t*log(t) - (1 - t)*log(1 - t)", {}, None),
    ("(t - t**alpha)/(alpha*(alpha - 1))", {"alpha": "alpha > 1"}, None),
    ("t**(1/3) - t**(1/2)/10 - t*9/10", {}, None),
    ("atan(t) - pi*t/4", {}, None),
    ("exp(-t)*log(1 + t*(1 - t))", {}, by_balls),
    ("sin(pi*t)/pi - t*log(t)/9", {}, by_balls),
]


@pytest.mark.parametrize(("h", "params", "prover"), FORGED, ids=[h for h, _, _ in FORGED])
def test_every_changed_leaf_is_refused(h, params, prover):
    data = made(h, params, prover)
    verify(data)
    changed = 0
    for path, value in leaves(data):
        if path[0] in ("parameters", "digest"):
            continue
        for other in others(path, value):
            refused(put(data, path, other))
            changed += 1
    assert changed > 20


def steps(data, path=()):
    if isinstance(data, dict) and "rule" in data and "children" in data:
        yield path
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield from steps(value, (*path, key))


@pytest.mark.parametrize("h", ["sqrt(t*(1 - t))", "-t*log(t) + t*(1 - t)/2", "1 - t**t", "atan(t) - pi*t/4"])
def test_changed_steps_are_refused(h):
    data = made(h)
    for path in steps(data):
        node = data
        for key in path:
            node = node[key]
        refused(put(data, (*path, "rule"), "by inspection"))
        refused(put(data, (*path, "sign"), -node["sign"]))
        if node["rule"] != "rewritten":
            refused(put(data, (*path, "rule"), "an odd power of a negative base"))
        for k in range(len(node["children"])):
            refused(put(data, (*path, "children"), node["children"][:k] + node["children"][k + 1 :]))


def test_boxes_that_leave_a_gap_or_overlap_are_refused():
    data = made("exp(-t)*log(1 + t*(1 - t))", prover=by_balls)
    where = ("claims", 0, "argument", "cover")
    cover = data["claims"][0]["argument"]["cover"]
    boxes, ends = cover["boxes"], cover["ends"]
    for k in range(len(boxes)):
        for others in (boxes[:k] + boxes[k + 1 :], [*boxes, boxes[k]]):
            words = cover["evidence"].replace(f"{len(boxes)} boxes", f"{len(others)} boxes")
            refused(put(put(data, (*where, "boxes"), others), (*where, "evidence"), words))
    for k in range(2):
        refused(put(data, (*where, "ends"), ends[:k] + ends[k + 1 :]))


def test_a_missing_piece_or_face_is_noticed():
    for h, params in (
        ("Min(t, 1 - t) - t*log(t)", {}),
        ("t - t**(1 + a)", {"a": "1/2 <= a <= 2"}),
        ("t*(1-t) - Abs(sin(t) - 1/2)", {}),  # two pieces, and a switch that must not vanish inside each
    ):
        data = fysym.compile(h, params=params).certificate()
        for k in range(len(data["claims"])):
            spoiled = copy.deepcopy(data)
            del spoiled["claims"][k]
            refused(spoiled)


def test_the_face_of_one_value_does_not_stand_for_that_of_another():
    """At a = 10, whose text begins as that of a = 1, h is 0."""
    for h, params, one in (
        ("(10-a)*(t*(1-t))", {"a": "1 <= a <= 10"}, -18),
        ("(3*a-1)*t*(1-t)", {"a": "1/3 <= a <= 1"}, -4),
    ):
        family = entropy.read(h, params, Deadline(9))
        inside = prove_sign(family.opened(sympy.diff(family.given, t, 2)), t, Deadline(9))
        assert inside.sign < 0 and inside.strict
        face = certify.certify_sign(sympy.Integer(one), t, -1, 5.0)
        refused(export(h, [("h'' < 0", inside), ("h'' < 0", face)], params))


@pytest.mark.parametrize("h", ["t", "t*(sin(t)**2 + cos(t)**2)", "Min(t, 1 - t)"])
def test_a_curvature_of_zero_is_not_strict(h):
    weak = Proof(sympy.Integer(0), -1, False, "its range")
    refused(export(h, [("h'' <= 0", weak), ("h'' <= 0", weak)], {}))


SWITCHING = "t*(1-t) - Abs(sin(t) - 1/2)"


def test_what_does_not_stand_for_a_switch():
    data = fysym.compile(SWITCHING).certificate()
    first, second = data["claims"][2:]
    assert [first["claim"], second["claim"]] == ["switch < 0", "switch > 0"]
    refused({**data, "claims": [*data["claims"][:3], first]})  # that of another piece
    weak = {**second, "claim": "switch >= 0", "argument": {**second["argument"], "strict": False}}
    refused({**data, "claims": [*data["claims"][:3], weak]})  # one that allows zeros
    bent = sympy.diff(entropy.read(SWITCHING, {}, Deadline(9)).pieces[1].steady[0].stretched(t, t), t, 2)
    other = export("t", [("h'' < 0", prove_sign(bent, t, Deadline(9)))], {})["claims"]
    refused({**data, "claims": [*data["claims"][:3], *other]})  # the sign of its second derivative


def test_a_cover_of_the_curvature_does_not_stand_for_a_switch(monkeypatch):
    monkeypatch.setattr("fysym.concavity.prove_sign", lambda *_, **__: None)
    data = fysym.compile(SWITCHING).certificate()
    assert [claim["argument"]["rule"] for claim in data["claims"][:2]] == ["ball arithmetic"] * 2
    assert verify(data)
    refused({**data, "claims": data["claims"][:3]})


def test_families_with_switches():
    data = fysym.compile("a*t*(1-t) - Abs(sin(t) - 1/2)", params={"a": "1 <= a <= 2"}).certificate()
    assert [claim["claim"] for claim in data["claims"]].count("switch > 0") == 3  # inside, and at both ends
    assert verify(data)


@pytest.mark.parametrize(
    ("h", "proof"),
    [
        ("t**2", Proof(sympy.Integer(2), -1, True, "a number")),
        ("t**3", Proof(6 * t, -1, True, "its range")),
        ("t**4/12 - t**3/12", Proof(t**2 - t / 2, -1, True, "Sturm count")),
        ("t**4/12 - t**3/12", Proof(t**2 - t / 2, -1, True, "extremes")),
        ("-t**2/2 + t**3/6", Proof(t - 1, -1, True, "rewritten", (Proof(t - 2, -1, True, "its range"),))),
        ("-(t - 1/2)**4/12", Proof(-((t - sympy.S.Half) ** 2), -1, True, "Sturm count")),
        ("-t**3", Proof(-6 * t, -1, True, "a product", (Proof(-t, -1, True, "its range"),))),
    ],
    ids=str,
)
def test_false_proofs_are_refused(h, proof):
    with pytest.raises(FysymError):
        verify(export(h, [("h'' < 0", proof)], {}))


@pytest.mark.parametrize(
    "bad",
    [{}, {"format": "x"}, None, [], "text", {"format": reading.FORMAT, "version": reading.VERSION, "claims": 3}],
)
def test_anything_else_is_malformed(bad):
    with pytest.raises(FysymError):
        verify(bad)


def test_trees_are_read_from_a_white_list():
    symbols = {"t": t}
    f = sympy.polygamma(2, t) * sympy.sec(t) - sympy.EulerGamma * sympy.LambertW(-t / 4, -1) + sympy.Rational(-2, 3)
    written = writing.write(f)
    assert isinstance(written, list) and reading.expression(json.loads(json.dumps(written)), symbols) == f
    for bad in (["eval", "1"], ["symbol", "os"], ["Pow", "10", "100000000"], ["Add", ["lambda"]], ["__import__", "1"]):
        with pytest.raises(FysymError):
            reading.expression(bad, symbols)


def test_tiles():
    from fractions import Fraction as F

    def box(*numbers):
        return tuple((F(a), F(b)) for a, b in zip(numbers[::2], numbers[1::2], strict=True))

    square = box(0, 2, 0, 2)
    quarters = [box(a, a + 1, b, b + 1) for a in (0, 1) for b in (0, 1)]
    assert covers.tiles(square, quarters)
    assert covers.tiles(square, [box(0, 2, 0, 1), *quarters[1::2]])
    assert not covers.tiles(square, quarters[:3])
    assert not covers.tiles(square, [*quarters, quarters[0]])
    assert not covers.tiles(square, [*quarters[:3], box(1, 2, 1, 3)])
    assert not covers.tiles(square, [box(0, 2, 0, 1), box(0, 2, F(3, 2), 2)])
    assert covers.tiles(box(0, 1, 2, 2), [box(0, F(1, 2), 2, 2), box(F(1, 2), 1, 2, 2)])
    assert covers.tiles((), [()]) and not covers.tiles((), [])


def test_ranges():
    b = sympy.Symbol("b", positive=True)
    where = {t: (sympy.S.Zero, sympy.S.One), b: (sympy.S.Zero, sympy.oo)}

    def holds(f, sign, strict):
        return ranges.holds(ranges.span_of(f, where), sign, strict)

    for f in (
        1 - t,
        1 + b,
        b * t,
        1 / t - 1,
        sympy.log(1 + b),
        sympy.exp(-b),
        1 - sympy.tanh(b),
        t**b,
        -sympy.log(t) * b,
    ):
        assert holds(f, 1, True), f
    for f in ((t - 1) ** 2, (t - 1) ** -2, 1 / (1 - t), sympy.sqrt(1 - t), 2 + sympy.sin(b)):
        assert holds(f, 1, True), f
    assert holds((t - sympy.S.Half) ** 2, 1, False) and not holds((t - sympy.S.Half) ** 2, 1, True)
    assert holds(1 + sympy.cos(b), 1, False) and not holds(1 + sympy.cos(b), 1, True)
    assert not holds(t - b, 1, False) and not holds(sympy.log(b), 1, False) and not holds(b * (t - 1), 1, False)
    for f in (1 / (t - sympy.S.Half), sympy.log(t - sympy.S.Half), sympy.sqrt(t - b), sympy.atanh(b), sympy.tan(b)):
        with pytest.raises(UndecidedError):
            ranges.span_of(f, where)


def test_without_flint(monkeypatch):
    proof = made("-t*log(t)")
    monkeypatch.setattr(certificate.checking.certify_precision, "available", lambda: False)
    with pytest.raises(UnsupportedError, match="certify"):
        verify(proof)


# --- the verifier stands alone -----------------------------------------------------------------------

CHECKERS = ("balls", "checking", "covers", "data", "ranges", "steps", "strips")


@pytest.mark.parametrize("name", CHECKERS)
def test_the_check_imports_nothing_of_the_finder(name):
    tree = ast.parse((pathlib.Path(certificate.__file__).parent / f"{name}.py").read_text())
    found = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    found |= {a.name for n in ast.walk(tree) if isinstance(n, (ast.Import, ast.ImportFrom)) for a in n.names}
    words = {word for item in found for word in item.split(".")}
    assert not words & {"certify", "signs", "concavity", "search", "intervals", "writing"}


def test_the_check_passes_while_the_finder_is_broken(monkeypatch):
    proofs = [made("exp(-t)*log(1 + t*(1 - t))", prover=by_balls), made("1 - t**t"), made("sqrt(t*(1 - t))")]

    def broken(*_):
        raise AssertionError("the verifier called the finder")

    for place, names in (
        (certify.cover, ("certify_sign", "_cover")),
        (certify.balls.Program, ("__init__", "__call__")),
        (certify.expansion.Expansion, ("__init__",)),
        (fysym.signs, ("prove_sign", "_rules", "by_sturm")),
        (fysym.bounds, ("bounds_of",)),
    ):
        for name in names:
            monkeypatch.setattr(place, name, broken)
    assert all(verify(proof) for proof in proofs)


EXPANDED = [
    sympy.sin(t) - t, 1 / t - sympy.log(t), t**t, sympy.gamma(t), sympy.polygamma(1, t), sympy.tan(sympy.pi * t / 2),
    sympy.log(1 - t) * sympy.log(t), sympy.acos(t), sympy.asin(1 - t), sympy.LambertW(t), sympy.erf(t) / t,
    sympy.sqrt(-sympy.log(t)), sympy.tanh(1 / (1 + t)), sympy.asinh(t), sympy.atanh(t), (1 - t) ** sympy.pi, 2**t,
]  # fmt: skip


@pytest.mark.parametrize("f", EXPANDED, ids=str)
@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize("order", [2, 5])
def test_expansions_contain_the_truth(f, at, order):
    from fractions import Fraction

    delta = Fraction(1, 16)
    with precision(300) as flint:
        try:
            terms = strips.Strip(t, at, delta, order, {}).expand(f)
        except balls.Undefined:
            pytest.skip("no expansion")
        for k in (0, 1, 7, 40):
            x = delta / 2**k
            here = balls.number(x)
            level = -here.log()
            total = sum(c * here ** balls.ball(a, {}) * level ** balls.ball(m, {}) for (a, m), (c, _) in terms.items())
            value = sympy.N(f.subs(t, sympy.Rational(x if at == 0 else 1 - x)), 60)
            assert total.overlaps(flint.arb(str(value), abs(flint.arb(str(value))) * flint.arb("1e-50")))


# --- hostile certificates ----------------------------------------------------------------------------


def nested(depth):
    found = []
    for _ in range(depth):
        found = [found]
    return found


HOSTILE = {
    "deep": (("claims", 0, "argument", "children"), nested(100_000)),
    "deep expression": (("claims", 0, "argument", "expression"), nested(5_000)),
    "many boxes": (("claims", 0, "argument", "cover", "boxes"), [[["0", "1"]]] * 10**7),
    "many claims": (("claims",), [{}] * 10**6),
    "tower": (("claims", 0, "argument", "expression"), "10**10**10"),
    "tower in the entropy": (("entropy",), "t*(1-t)*10**10**10"),
    "tower as a tree": (("claims", 0, "argument", "expression"), ["Pow", ["Pow", "10", "999"], ["Pow", "10", "999"]]),
    "gamma": (("claims", 0, "argument", "expression"), ["gamma", "99999999"]),
    "long text": (("entropy",), "t+" * 10**6 + "t"),
    "long number": (("claims", 0, "argument", "cover", "boxes", 0, 0, 0), "9" * 9_999),
    "huge precision": (("claims", 0, "argument", "cover", "precision"), 10**9),
    "huge integer": (("claims", 0, "argument", "sign"), 10**5000),
    "huge order": (("claims", 0, "argument", "cover", "ends", 0, "order"), 10**6),
    "nan": (("claims", 0, "argument", "cover", "precision"), float("nan")),
    "infinite": (("claims", 0, "argument", "cover", "boxes", 0, 0, 0), float("inf")),
    "zero division": (("claims", 0, "argument", "cover", "boxes", 0, 0, 0), "1/0"),
    "none": (("claims", 0, "argument"), None),
    "boolean sign": (("claims", 0, "argument", "sign"), True),
    "text for list": (("claims",), "h'' < 0"),
    "object": (("parameters",), object()),
    "parameters": (("parameters",), {"t": "t > 0"}),
    "code": (("claims", 0, "argument", "expression"), "__import__('os').system('true')"),
    "rule": (("claims", 0, "argument", "rule"), "x" * 9_000),
    "extra": (("claims", 0, "argument", "proved by"), "the author"),
    "hard to read": (("entropy",), "+".join(f"Min(t**{k}, sin({k}*t))" for k in range(2, 60))),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_certificates_end_soon_with_an_error_of_ours(name):
    path, value = HOSTILE[name]
    bad = put(made("exp(-t)*log(1 + t*(1 - t))", prover=by_balls), path, value)
    with contextlib.suppress(RecursionError, TypeError, ValueError):  # then it has no digest and is not read
        bad = renewed(bad)
    start = time.monotonic()
    with pytest.raises(FysymError):
        verify(bad)
    assert time.monotonic() - start < 30


# --- random changes ----------------------------------------------------------------------------------

_MADE: list = []


def pool():
    if not _MADE:
        _MADE.append(made("exp(-t)*log(1 + t*(1 - t))", prover=by_balls))
        _MADE.append(made("sin(pi*t)/pi - t*log(t)/9", prover=by_balls))
        _MADE.append(made("sqrt(t*(1 - t))"))
        _MADE.append(made("-t*log(t) - (1 - t)*log(1 - t)"))
        _MADE.append(made("(t - t**a)/(a - 1)", {"a": "a > 1"}))
        _MADE.append(made("t**(1/3) - t**(1/2)/10 - t*9/10"))
        _MADE.append(fysym.compile("t*(1 - t) + a*sin(9*t)/90", params={"a": "-1 <= a <= 1"}).certificate())
        _MADE.append(fysym.compile("-t*log(t) + a*exp(-t)*log(1+t*(1-t))", params={"a": "a > 0"}).certificate())
    return _MADE


@st.composite
def changed(draw):
    """A certificate with one or two leaves changed: a digit, a sign, a character, or another leaf's value."""
    found = draw(st.sampled_from(pool()))
    for _ in range(draw(st.integers(1, 2))):
        places = [(path, value) for path, value in leaves(found) if path[0] != "digest"]
        path, value = draw(st.sampled_from(places))
        if isinstance(value, bool):
            other = not value
        elif isinstance(value, int):
            other = draw(st.sampled_from([value + 1, value - 1, -value, 2 * value]))
        else:
            k = draw(st.integers(0, max(0, len(value) - 1)))
            new = draw(st.sampled_from(["", "0", "1", "7", "-", "+", "*", "/", "t", "(", value[k : k + 1] * 2]))
            other = draw(st.sampled_from([value[:k] + new + value[k + 1 :], draw(st.sampled_from(places))[1]]))
        found = put(found, path, other)
    return found


def is_true(statement):
    """Each claim of a certificate at points all over (0, 1) and the ranges, by mpmath."""
    h = entropy.read(statement["entropy"], statement["parameters"], Deadline(20))
    points = [mpmath.mpf(k) / 41 for k in range(1, 41)]
    points += [x for k in (3, 6, 9) for x in (mpmath.mpf(10) ** -k, 1 - mpmath.mpf(10) ** -k)]
    for claim in statement["claims"]:
        order = claim["claim"].count("'")
        sign = 1 if ">" in claim["claim"] else -1
        for piece in h.pieces:
            for values in h.points[:5]:
                f = sympy.diff(h.opened(piece.expr), h.t, order).xreplace(values)
                g = sympy.lambdify(h.t, f, "mpmath")
                for x in points:
                    with mpmath.workdps(40):
                        at = mpmath.mpf(float(piece.low)) + (mpmath.mpf(float(piece.high - piece.low))) * x
                        if not sign * mpmath.re(g(at)) >= -(mpmath.mpf(10) ** -25):
                            return False
    return True


@settings(max_examples=80, deadline=None, derandomize=True, database=None)
@given(changed())
def test_a_changed_certificate_fails_or_is_still_true(statement):
    try:
        assert verify(renewed(statement))
    except FysymError:
        return
    assert is_true(statement)


def test_the_truth_is_told_from_what_is_not():
    assert all(is_true(statement) for statement in pool())
    assert not is_true(put(pool()[0], ("entropy",), "t**2"))
    assert not is_true(put(pool()[0], ("claims", 0, "claim"), "h'' > 0"))
    assert not is_true(put(pool()[6], ("parameters", "a"), "-9 <= a <= 9"))


def test_the_sign_of_the_third_derivative_is_claimed_too() -> None:
    certificate = fysym.compile("-t*log(t)").certificate()
    assert [claim["claim"] for claim in certificate["claims"]] == ["h'' < 0", "h''' > 0"]
    assert fysym.verify(certificate)
    certificate["claims"][1]["claim"] = "h''' < 0"
    with pytest.raises(fysym.FysymError):
        fysym.verify(certificate)


# --- the parts of the check, one by one -----------------------------------------------------------------


def steps_of(expr, sign, rule, *children, strict=True, cover=None):
    return reading.Step(sympy.sympify(expr), sign, strict, rule, children, cover)


def rechecked(step):
    return list(rules.check(step))


RANGE = "its range"
POLYGAMMA = "a polygamma function of a positive argument"
ROOT = sympy.sqrt(2)


@pytest.mark.parametrize(
    "step",
    [
        steps_of(ROOT - 1, 1, "a number"),
        steps_of(t, 1, "positive by its range"),
        steps_of((t - 2) ** 3, -1, "an odd power of a negative base", steps_of(t - 2, -1, RANGE)),
        steps_of((t - ROOT / 2) ** 2, 1, "an even power", strict=False),
        steps_of((t - 2) ** -2, 1, "an even power", steps_of(t - 2, -1, RANGE)),
        steps_of((1 + t) ** -2, 1, "a power of a positive base", steps_of(1 + t, 1, RANGE)),
        steps_of(2**t, 1, "an exponential"),
        steps_of(sympy.polygamma(2, 1 + t), -1, POLYGAMMA, steps_of(1 + t, 1, RANGE)),
        steps_of(sympy.exp(-t), 1, "an exponential"),
        steps_of(-t - 1, -1, "a sum of terms of one sign", steps_of(-t, -1, RANGE), steps_of(-1, -1, "a number")),
        steps_of(sympy.sin(t) - 2 * t, -1, RANGE),
        steps_of(t * (1 - t) - 1, -1, "extremes"),
        steps_of(sympy.log(t) + 1 - t, -1, "monotone", steps_of(1 / t - 1, 1, RANGE)),
        steps_of(t**2 - t - 1, -1, "Sturm count"),
        steps_of(-((t - sympy.S.Half) ** 2), -1, "Sturm count", strict=False),
        steps_of(sympy.sqrt(t) - 2, -1, "Sturm count"),
        steps_of(t - 1, -1, rules.SUBSTITUTION, steps_of(-1 / (1 + rules.X), -1, RANGE)),
    ],
    ids=lambda step: f"{step.rule}: {step.expr}",
)
def test_a_sound_step_is_rechecked(step):
    lines = rechecked(step)
    assert lines[0].startswith(step.rule) and len(lines) == 1 + len(step.children)


B = sympy.Symbol("b", positive=True)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (steps_of(t, 1, "by inspection"), "no rule called 'by inspection'"),
        (steps_of(1 - ROOT, 1, "a number"), "does not follow"),
        (steps_of(t, -1, "positive by its range"), "does not follow"),
        (steps_of(t, 1, "a product"), "does not follow"),
        (steps_of(t**3, 1, "an exponential"), "does not follow"),
        (steps_of(-sympy.exp(t), -1, "an exponential"), "does not follow"),
        (steps_of(t + 1, 1, "an even power"), "does not follow"),
        (steps_of((t - 2) ** 3, -1, "an odd power of a negative base"), "does not follow"),
        (steps_of(t**2, 1, "an even power", steps_of(1 + t, 1, RANGE)), "does not follow"),
        (steps_of(t, 1, RANGE, steps_of(t, 1, RANGE)), "does not follow"),
        (steps_of(t, 1, "extremes", steps_of(t, 1, RANGE)), "does not follow"),
        (steps_of(B * t - B - 1, -1, "extremes"), "could not be re-checked"),
        (steps_of(t, 1, "ball arithmetic"), "does not follow"),
        (steps_of(t, 1, "rewritten"), "does not follow"),
        (steps_of(t, 1, "rewritten", steps_of(2 * t, 1, RANGE)), "are not the same"),
        (steps_of(t - 1, -1, rules.SUBSTITUTION, steps_of(t - 1, -1, RANGE)), "does not follow"),
        (steps_of(t, 1, "monotone"), "does not follow"),
        (steps_of(sympy.polygamma(1, t), 1, POLYGAMMA), "does not follow"),
        (steps_of(sympy.polygamma(0, t), -1, POLYGAMMA, steps_of(t, 1, RANGE)), "does not follow"),
        (steps_of(sympy.polygamma(2, t), 1, POLYGAMMA, steps_of(t, 1, RANGE)), "does not follow"),
        (steps_of(sympy.polygamma(1, t), 1, POLYGAMMA, steps_of(1 + t, 1, RANGE)), "does not follow"),
        (steps_of(sympy.polygamma(1, t), 1, POLYGAMMA, steps_of(t, 1, RANGE, strict=False)), "does not follow"),
        (steps_of(t - sympy.S.Half, 1, "monotone", steps_of(1, 1, "a number")), "next to 0 could not be re-checked"),
        (steps_of(B * t, 1, "Sturm count"), "does not follow"),
        (steps_of(t**300 - 2, -1, "Sturm count"), "does not follow"),
        (steps_of(t**sympy.pi - 2, -1, "Sturm count"), "does not follow"),
        (steps_of(t - sympy.S.Half, 1, "Sturm count"), "does not follow"),
        (steps_of((1 + t) ** 2, 1, "rewritten", steps_of((1 + t) ** 2 + rules.X, 1, RANGE)), "not the same"),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{value.rule}: {value.expr}",
)
def test_an_unsound_step_is_refused(step, words):
    with pytest.raises(FysymError, match=words):
        rechecked(step)


def test_a_symbol_from_nowhere():
    inner = steps_of(B * t, 1, "a product", steps_of(B, 1, "positive by its range"), steps_of(t, 1, RANGE))
    assert len(rechecked(inner)) == 3
    with pytest.raises(CertificateError, match="comes from nowhere"):
        list(rules.check(inner, {t: (sympy.S.Zero, sympy.S.One)}))


def test_equal_expressions():
    assert rules.same(t, t) == "identical"
    assert rules.same((1 + t) ** 2, 1 + 2 * t + t**2) == "the difference simplifies to 0"
    with pytest.raises(UndecidedError, match="could not be re-checked"):
        rules.same(sympy.zeta(t), sympy.zeta(t) + 0 * B + sympy.zeta(2) - sympy.pi**2 / 6 + sympy.Function("f")(t))
    assert not rules._vanishes(t - 1)
    assert not rules._differs_from_zero(t - t + sympy.zeta(B))
    assert rules._differs_from_zero(t - sympy.S.Half)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: reading.measure({"a": None}), "no place for NoneType"),
        (lambda: reading.measure(nested(300)), "too deeply nested"),
        (lambda: reading.measure(2**64), "a number that is too large"),
        (lambda: reading.measure("x" * 10_001), "more than 10000 characters"),
        (lambda: reading.measure({1: "a"}), "a key that is not a short text"),
        (lambda: reading.measure([0] * 400_001), "too large"),
        (lambda: reading.field([], "sign", int), "has no 'sign'"),
        (lambda: reading.field({"sign": True}, "sign", int), "'sign' should be of type int, not bool"),
        (lambda: reading.keys({"a": 1, "b": 2}, "a"), "unknown key 'b'"),
        (lambda: reading.expression("a*t", {"t": t}), "'a' is not a symbol of this claim"),
        (lambda: reading.expression(["log", "0"], {}), "not a finite real one"),
        (lambda: reading.expression([3], {}), "a list that starts with a name"),
        (lambda: reading.expression(["symbol", "b"], {"t": t}), "not declared"),
        (lambda: reading.expression(["exp", "1001"], {}), "beyond 1000"),
        (lambda: reading.expression(["Pow", "2", "1001"], {}), "too large"),
        (lambda: reading.fraction("0.5"), "not an exact fraction"),
        (lambda: reading.fraction(3), "not an exact fraction"),
        (lambda: reading.box("0"), "a list of pairs"),
        (lambda: reading.box([["0"]]), "two ends"),
        (lambda: reading.box([["1", "0"]]), "wrong order"),
        (lambda: reading.sign_of({"sign": 2}), "1 or -1, not 2"),
        (lambda: reading.cover({"ranges": {"c": ["0", "1"]}, "ends": []}, {"t": t}), "belongs to no parameter"),
        (lambda: reading.cover({"ranges": {}, "ends": [3]}, {"t": t}), "described by names and values"),
    ],
)
def test_what_a_certificate_may_hold(call, words):
    with pytest.raises(CertificateError, match=words):
        call()


def test_a_function_outside_the_white_list_is_not_written():
    with pytest.raises(UnsupportedError, match="cannot be written"):
        writing.write(sympy.zeta(t) + sympy.polygamma(1, t))


@pytest.mark.parametrize(
    "f",
    [
        sympy.zeta(t), sympy.LambertW(t, 3), sympy.gamma(t - 1), sympy.loggamma(t - 1), sympy.polygamma(40, t),
        sympy.sqrt(t - 1), 1 / (t - sympy.S.Half), sympy.log(t - 1), sympy.Function("f")(t),
    ],
    ids=str,
)  # fmt: skip
def test_no_ball_where_a_function_may_be_undefined(f):
    from fractions import Fraction

    box = ((Fraction(1, 4), Fraction(3, 4)),)
    with precision(64), pytest.raises(balls.Undefined):
        balls.ball(f, {t: balls.interval(*box[0])})
    function = balls.Function(f, (t,))
    assert not function.is_defined(box, 64, 8)
    assert not function.is_positive(box, 64, 8)


def test_boxes_next_to_an_end_are_cut_by_ratios():
    from fractions import Fraction as F

    low, high = balls.halves(((F(1, 1000), F(1, 2)),), [1.0])
    assert low == ((F(1, 1000), F(1, 250)),) and high == ((F(1, 250), F(1, 2)),)
    low, high = balls.halves(((F(1, 2), F(999, 1000)),), [1.0])
    assert high == ((F(249, 250), F(999, 1000)),)
    first, second = balls.halves(((F(0), F(1)), (F(0), F(1))), [1.0, 2.0])
    assert first == ((F(0), F(1)), (F(0), F(1, 2))) and second == ((F(0), F(1)), (F(1, 2), F(1)))


def test_covers_of_our_own():
    assert covers.own_cover(-1 - t, t, -1)
    assert not covers.own_cover(t - sympy.S.Half, t, -1)
    assert not covers.own_cover(sympy.Function("f")(t), t, 1)
    assert covers.is_smooth(sympy.log(t) * sympy.log(1 - t), (t,), ())
    assert not covers.is_smooth(1 / (t - sympy.S.Half), (t,), ())
    assert not covers.is_smooth(sympy.Function("f")(t), (t,), ())


def test_powers_of_ranges():
    where = {t: (sympy.S.Zero, sympy.S.One), B: (sympy.S.Zero, sympy.oo)}

    def ends(f):
        span = ranges.span_of(f, where)
        return float(span.low), float(span.high)

    assert ends((t - 2) ** 2) == (1.0, 4.0)
    assert ends((t - 2) ** -3) == (-1.0, -0.125)
    assert ends((2 * t - 1) ** 3) == (-1.0, 1.0)
    assert ends(sympy.cosh(t)) == (1.0, float("inf"))
    assert ends(sympy.asin(t)) == (0.0, 2.0)
    assert ends((1 + t) ** B) == (1.0, float("inf"))
    assert ends(B**t) == (0.0, float("inf"))
    assert ends(sympy.Integer(2) ** -B) == ends(t**B) == (0.0, 1.0)
    assert ends(sympy.Integer(3) ** (B / (1 + B))) == (1.0, 3.0)
    assert ends(sympy.Rational(1, 2) ** t) == (0.5, 1.0)
    for f in (
        sympy.zeta(3) * t,
        (t - sympy.S.Half) ** B,
        sympy.cos(0, evaluate=False) ** B,
        sympy.erfinv(2 * t),
        sympy.zeta(1 + t),
    ):
        with pytest.raises(UndecidedError):
            ranges.span_of(f, where)


def test_a_claim_must_fit_its_entropy():
    data = made("-t*log(t)")
    where = ("claims", 0)
    for path, value, words in (
        (("version",), 1, "not a fysym certificate of version"),
        (("entropy",), "-2*t*log(t)", "is not h'' of the entropy"),
        ((*where, "claim"), "h is nice", "not about a derivative"),
        ((*where, "claim"), "h'' > 0", "does not prove the claim"),
        ((*where, "interval"), ["0", "1/2"], "is not \\(0, 1\\)"),
        (("substitutions",), {"a": "b_a"}, "do not fit the parameters"),
        (("claims",), [], "nothing is claimed about h'' on"),
        (("parameters",), {"a": 3}, "the range of a parameter is a text"),
    ):
        with pytest.raises(FysymError, match=words):
            verify(renewed(put(data, path, value)))
    with pytest.raises(CertificateError, match="its digest does not match"):
        verify({**data, "entropy": "-2*t*log(t)"})
    family = made("(t - t**a)/(a - 1)", {"a": "a > 1"})
    with pytest.raises(CertificateError, match="substitution of a should read: b_a \\+ 1"):
        verify(renewed(put(family, ("substitutions", "a"), "b_a + 2")))


def test_a_check_that_fails_unforeseen_is_an_error_of_ours(monkeypatch):
    monkeypatch.setattr(reading, "measure", lambda _: {}["missing"])
    with pytest.raises(CertificateError, match="malformed .KeyError: 'missing'"):
        verify({})


def test_a_check_that_takes_too_long_is_undecided(monkeypatch):
    monkeypatch.setattr(certificate.checking, "MOST_SECONDS", 0.0)
    with pytest.raises(UndecidedError, match="in time"):
        verify({})


def test_ends_of_ranges_are_rounded_outward():
    from fractions import Fraction

    outward = certificate.checking._outward
    assert outward(sympy.Rational(3, 7), 1) == Fraction(3, 7)
    low, high = outward(ROOT, -1), outward(ROOT, 1)
    assert low**2 < 2 < high**2 and high - low == Fraction(1, 2**64)
    with pytest.raises(UndecidedError, match="infinite range"):
        outward(sympy.oo, 1)


def test_kinks_are_rechecked():
    h = entropy.read("Min(t, 1 - t) + t*(1 - t)", {}, Deadline(20))
    check_kink, half = certificate.checking._check_kink, sympy.S.Half
    assert check_kink(h, 1 - 2 * t, half) is None
    with pytest.raises(UndecidedError, match="continuous at t = 1/2"):
        check_kink(h, t, half)
    with pytest.raises(UndecidedError, match="slope of h falls at t = 1/2"):
        check_kink(h, 2 * t - 1, half)


@pytest.mark.parametrize(
    "f",
    [
        sympy.log(-sympy.log(t)), sympy.log(t - 1), sympy.sqrt(t - sympy.S.Half), sympy.zeta(2 + t), sympy.sin(1 / t),
        (-sympy.log(t)) ** sympy.pi, 1 / (t - t**2 - t + t**2 + sympy.zeta(3 + t)),
        sympy.LambertW(-t / 4, -1),
    ],
    ids=str,
)  # fmt: skip
def test_a_strip_where_nothing_is_known(f):
    from fractions import Fraction

    with precision(200), pytest.raises(balls.Undefined):
        strips.Strip(t, 0, Fraction(1, 16), 4, {}).expand(f)


def test_sizes_on_a_strip():
    """x^a l^k on 0 < x <= 1/16: its maximum is inside the strip when k/a is beyond log 16."""
    from fractions import Fraction

    with precision(200):
        strip = strips.Strip(t, 0, Fraction(1, 16), 4, {})
        one, many = sympy.S.One, sympy.Integer(8)
        assert float(strip.size(one, sympy.S.Zero).upper()) == pytest.approx(1 / 16)
        assert float(strip.size(one, many).upper()) == pytest.approx(float(mpmath.mpf(8) ** 8 * mpmath.exp(-8)))
        for a, k in ((sympy.S.Zero, one), (-one, one)):
            with pytest.raises(balls.Undefined, match="grows without bound"):
                strip.size(a, k)
        with pytest.raises(balls.Undefined, match="vanishes"):
            strip.split({})
        around = {(one, sympy.S.Zero): (balls.interval(Fraction(-1), Fraction(1)), None)}
        with pytest.raises(balls.Undefined, match="sign is open"):
            strip.split(around)
        with pytest.raises(balls.Undefined, match="inexact multiple of a logarithm"):
            strip.exponential({strips.LOGARITHM: (balls.number(one), None)})
        assert strips._both(one, None, sympy.Add) is None and not strips._is_zero(None)
        assert strips._is_zero(sympy.sqrt(8) - 2 * sympy.sqrt(2)) and not strips._is_zero(sympy.sqrt(2))


def test_covers_that_do_not_fit_are_refused():
    import dataclasses
    from fractions import Fraction as F

    end = reading.Strip(0, "regular", F(1, 8), F(1, 2), sympy.S.Zero, sympy.S.Zero, 0, ())
    cover = reading.Cover((t,), (), 53, (((F(1, 8), F(7, 8)),),), (end, dataclasses.replace(end, at=1)))
    assert "1 boxes without gap" in covers.check(cover, 1 + t, 1)
    for changed, expr, words in (
        ({}, 1 + t + B, "a symbol without a range"),
        ({"precision": 0}, 1 + t, "at 0 bits cannot be checked"),
        ({"strips": (end, dataclasses.replace(end, at=2))}, 1 + t, "next to neither 0 nor 1"),
        ({"strips": (end,)}, 1 + t, "next to 1 do not cover"),
        ({"boxes": ()}, 1 + t, "do not tile"),
        ({}, 1 - 4 * t * (1 - t) * sympy.Rational(4, 3), "does not hold|not settled on the box"),
        ({"strips": (dataclasses.replace(end, bound=F(0)), dataclasses.replace(end, at=1))}, 1 + t, "does not hold"),
        ({"strips": (dataclasses.replace(end, bound=F(3)), dataclasses.replace(end, at=1))}, 1 + t, "does not hold"),
        ({"strips": (dataclasses.replace(end, rule="luck"), dataclasses.replace(end, at=1))}, 1 + t, "does not hold"),
    ):
        with pytest.raises(CertificateError, match=words):
            covers.check(dataclasses.replace(cover, **changed), expr, 1)
    leading = dataclasses.replace(end, rule="leading term", power=sympy.S.One, order=3)
    assert covers.check(dataclasses.replace(cover, strips=(leading, dataclasses.replace(end, at=1))), sympy.sin(t), 1)
    steep = dataclasses.replace(leading, bound=F(2))
    with pytest.raises(CertificateError, match="width 0.125 next to 0 does not hold"):
        covers.check(dataclasses.replace(cover, strips=(steep, dataclasses.replace(end, at=1))), sympy.sin(t), 1)
    assert covers._parts(((F(0), F(2)),)) == [((F(0), F(1)),), ((F(1), F(2)),)]


@pytest.mark.parametrize("h", ["digamma(1 + t)", "-t*trigamma(1 + t) - t**2*3", "log(1 + t) + polygamma(0, t + 1/2)"])
def test_certificates_of_the_gamma_family_are_read_again(h: str) -> None:
    pytest.importorskip("flint")
    assert fysym.verify(json.loads(json.dumps(fysym.compile(h, deadline=30).certificate())))


@pytest.mark.parametrize(
    ("h", "params"),
    [
        ("LambertW(-t/E)", None),
        ("exp(LambertW(t))", None),
        ("LambertW(a*t)/a", {"a": "a > 0"}),
        ("t**(1/3) + a*t**2", {"a": "a <= 1/9"}),
        ("(t - t**a)/(a*(a - 1))", {"a": "0 < a < 3"}),
        ("t*(1 - t) + sin(a*t)/9", {"a": "0 < a < 3"}),
        ("t*(1 - t) + cos(a*t)/9", {"a": "1 <= a <= 4"}),
        ("-tan(a*t)", {"a": "0 < a < pi/2"}),
        ("-b*(t - a)**4", {"a": "0 < a < 1", "b": "b > 0"}),
        ("-(t - a)**4 - (t - b)**4", {"a": "0 < a < 1", "b": "0 < b < 1"}),
        ("log(sin(a*t))", {"a": "0 < a <= pi"}),
        ("t*(1 - t)/(a + t*(1 - t))", {"a": "a > 0"}),
        ("-sqrt((t - a)**2 + b)", {"a": "-oo < a < oo", "b": "b > 0"}),
    ],
)
def test_ranges_that_end_where_a_proof_does(h, params):
    assert fysym.verify(fysym.compile(h, params=params).certificate())


def test_the_main_branch_of_lambert():
    where = {t: (sympy.S.Zero, sympy.S.One), B: (sympy.S.Zero, sympy.oo)}
    span = ranges.span_of(sympy.LambertW(-t / sympy.E), where)
    assert span.low == -1 and span.low_open and span.high == 0 and span.high_open
    span = ranges.span_of(sympy.LambertW(B), where)
    assert span.low == 0 and not span.high.is_finite()
    assert abs(float(ranges.span_of(sympy.LambertW(t), where).high) - 0.5671432904097838) < 1e-15
    for f in (sympy.LambertW(-t), sympy.LambertW(-t / sympy.E, -1)):
        with pytest.raises(UndecidedError):
            ranges.span_of(f, where)


@pytest.mark.parametrize(
    ("f", "low", "high", "low_open", "high_open"),
    [
        (sympy.sin(sympy.pi * t), 0, 1, True, False),
        (sympy.sin(-sympy.pi * t), -1, 0, False, True),
        (sympy.sin(sympy.pi * (t + 1) / 3), 3**0.5 / 2, 1, True, False),
        (sympy.sin(4 * t), -1, 1, False, False),
        (sympy.cos(t), 0.5403023058681398, 1, True, False),
        (sympy.tan(sympy.pi * t / 2), 0, float("inf"), True, True),
        (sympy.tan(sympy.pi * (t - 1) / 4), -1, 0, True, True),
        ((1 + 3 * B) / (1 + B), 1, 3, True, True),
        (((3 + B) / (1 + B)) ** -2 * t, 0, 1, True, True),
        (B / (1 + B) * sympy.pi, 0, 3.141592653589793, True, True),
    ],
)
def test_ranges_of_waves_and_fractions(f, low, high, low_open, high_open):
    span = ranges.span_of(f, {t: (sympy.S.Zero, sympy.S.One), B: (sympy.S.Zero, sympy.oo)})
    assert float(span.low) == pytest.approx(low, abs=1e-12) and float(span.high) == pytest.approx(high, abs=1e-12)
    assert span.low_open <= low_open and span.high_open <= high_open  # never called open where it is attained


@pytest.mark.parametrize(
    ("f", "low", "high"),
    [
        (sympy.loggamma(t), float("-inf"), float("inf")),
        (sympy.gamma(B), 0, float("inf")),
        (sympy.polygamma(0, B + t), float("-inf"), float("inf")),
        (sympy.polygamma(1, t), 0, float("inf")),
        (sympy.polygamma(2, t), float("-inf"), 0),
    ],
    ids=str,
)
def test_ranges_of_the_gamma_family(f, low, high):
    span = ranges.span_of(f, {t: (sympy.S.Zero, sympy.S.One), B: (sympy.S.Zero, sympy.oo)})
    assert (float(span.low), float(span.high), span.low_open, span.high_open) == (low, high, True, True)
    with pytest.raises(UndecidedError):
        ranges.span_of(f.subs({t: t - 1, B: B - 1}), {t: (sympy.S.Zero, sympy.S.One), B: (sympy.S.Zero, sympy.oo)})


@pytest.mark.parametrize("f", [sympy.tan(2 * t), sympy.tan(1 + t), 1 / (B - 1) * B])
def test_ranges_that_may_have_a_pole(f):
    with pytest.raises(UndecidedError):
        ranges.span_of(f, {t: (sympy.S.Zero, sympy.S.One), B: (sympy.S.Zero, sympy.oo)})


def test_pieces_that_meet_in_a_power_of_zero_are_rechecked():
    assert fysym.verify(fysym.compile("-Abs(t - 1/2)**b", params={"b": "b > 1"}).certificate())


@pytest.mark.parametrize(
    ("h", "params", "claims"),
    [
        ("-loggamma(c*t + r)", {"c": "c > 0", "r": "0 < r < 1"}, 1),
        (
            "-w*loggamma(c*t + r) - v*(t + 1/3)**b",
            {"c": "c > 0", "r": "r > 0", "w": "w >= 0", "v": "v > 0", "b": "b > 1"},
            2,
        ),
        ("u*log(t + 1) - w*log(exp(c*t) + 1)", {"u": "1 <= u <= 2", "w": "1 <= w <= 2", "c": "1 <= c <= 2"}, 27),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_families_proved_term_by_term_are_rechecked(h, params, claims):
    """A corner of the ranges, which is at the end of several faces, takes one claim."""
    clock = Deadline(30)
    verdict = decide(entropy.read(h, params, clock), clock)
    made = export(h, [("h'' < 0", proof) for proof in verdict.proofs], params)
    assert len(made["claims"]) == claims and fysym.verify(made)
    for k in (0, claims - 1):
        spoiled = copy.deepcopy(made)
        del spoiled["claims"][k]
        refused(spoiled)
