"""Certificates: sound arguments pass after a trip through JSON, and no tampering does."""

from __future__ import annotations

import copy
import json

import pytest
import sympy

from fysym import certificate, certify, entropy
from fysym.catalog import ENTRIES
from fysym.certificate import CertificateError, examine, export, verify
from fysym.deadline import Deadline
from fysym.entropy import VARIABLE as t
from fysym.errors import FysymError, UndecidedError, UnsupportedError
from fysym.signs import Proof, prove_sign

pytest.importorskip("flint")


def arguments(h, params, prover=None):
    """A claim h'' < 0 for each piece and each face of an entropy."""

    def walk(e):
        for piece in e.pieces:
            f = sympy.diff(e.opened(piece.stretched(t)), t, 2)
            found = prove_sign(f, t, Deadline(4)) if prover is None else prover(f)
            found = found or certify.certify_sign(f, t, -1, 10)
            assert found is not None
            yield ("h'' < 0" if found.strict else "h'' <= 0", found)
        for face in e.faces():
            yield from walk(entropy.bind(e, face, Deadline(20)))

    return list(walk(entropy.read(h, params, Deadline(20))))


def made(h, params=None, prover=None):
    data = export(h, arguments(h, params or {}, prover), params or {})
    return json.loads(json.dumps(data))


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
    assert data["claims"][0]["method"] == "ball arithmetic" and verify(data)


def test_a_family_by_boxes():
    a = sympy.Symbol("a", positive=True)
    h, params = "t - t**(1 + a)", {"a": "1/2 <= a <= 2"}
    f = sympy.diff(t - t ** (1 + a), t, 2)
    data = export(h, [("h'' < 0", certify.certify_sign(f, t, -1, 10, {a: (sympy.Rational(1, 2), 2)}))], params)
    assert verify(json.loads(json.dumps(data)))
    part = certify.certify_sign(f, t, -1, 10, {a: (sympy.Rational(1, 2), 1)})
    with pytest.raises(CertificateError, match="for all its parameters"):
        verify(export(h, [("h'' < 0", part)], params))
    for k in range(0, len(data["claims"][0]["boxes"]), 5):
        spoiled = copy.deepcopy(data)
        del spoiled["claims"][0]["boxes"][k]
        refused(spoiled)


def test_a_monotone_function():
    f = sympy.log(1 + t) - t
    proof = Proof(f, -1, True, "monotone", (Proof(1 / (1 + t) - 1, -1, True, "its range"),))
    data = export("(1 + t)**2*log(1 + t)/2 - 3*(1 + t)**2/4 - t**3/6", [("h'' < 0", proof)], {})
    assert any("monotone" in line for line in examine(data))


def renewed(data):
    content = {k: v for k, v in data.items() if k != "digest"}
    return content | {"digest": certificate._digest(content)}


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
    if name in ("note", "order", "rule") or (name == "strict" and "proof" in path):
        return []
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [other for other in (value + 1, -value, value * 100) if other != value]
    if name in ("boxes", "delta", "bound"):
        return [f"({value})", "1/3", f"-{value}", value + "1"]
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
    boxes, ends = data["claims"][0]["boxes"], data["claims"][0]["ends"]
    for k in range(len(boxes)):
        refused(put(data, ("claims", 0, "boxes"), boxes[:k] + boxes[k + 1 :]))
        refused(put(data, ("claims", 0, "boxes"), [*boxes, boxes[k]]))
    for k in range(2):
        refused(put(data, ("claims", 0, "ends"), ends[:k] + ends[k + 1 :]))


def test_a_missing_piece_or_face_is_noticed():
    for h, params in (("Min(t, 1 - t) - t*log(t)", {}), ("t - t**(1 + a)", {"a": "1/2 <= a <= 2"})):
        data = made(h, params)
        for k in range(len(data["claims"])):
            spoiled = copy.deepcopy(data)
            del spoiled["claims"][k]
            refused(spoiled)


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
    "data",
    [{}, {"format": "x"}, None, [], "text", {"format": certificate.FORMAT, "version": 1, "digest": "", "claims": 3}],
)
def test_anything_else_is_malformed(data):
    with pytest.raises(FysymError):
        verify(data)


def test_trees_are_read_from_a_white_list():
    symbols = {"t": t}
    f = sympy.polygamma(2, t) * sympy.sec(t) - sympy.EulerGamma * sympy.LambertW(-t / 4, -1) + sympy.Rational(-2, 3)
    written = certificate._write(f)
    assert isinstance(written, list) and certificate._read(json.loads(json.dumps(written)), symbols) == f
    for bad in (["eval", "1"], ["symbol", "os"], ["Pow", "10", "100000000"], ["Add", ["lambda"]], ["__import__", "1"]):
        with pytest.raises((FysymError, KeyError)):
            certificate._read(bad, symbols)


def test_tiles():
    from fractions import Fraction as F

    def box(*numbers):
        return tuple((F(a), F(b)) for a, b in zip(numbers[::2], numbers[1::2], strict=True))

    square = box(0, 2, 0, 2)
    quarters = [box(a, a + 1, b, b + 1) for a in (0, 1) for b in (0, 1)]
    assert certificate._tiles(square, quarters)
    assert certificate._tiles(square, [box(0, 2, 0, 1), *quarters[1::2]])
    assert not certificate._tiles(square, quarters[:3])
    assert not certificate._tiles(square, [*quarters, quarters[0]])
    assert not certificate._tiles(square, [*quarters[:3], box(1, 2, 1, 3)])
    assert not certificate._tiles(square, [box(0, 2, 0, 1), box(0, 2, F(3, 2), 2)])
    assert certificate._tiles(box(0, 1, 2, 2), [box(0, F(1, 2), 2, 2), box(F(1, 2), 1, 2, 2)])
    assert certificate._tiles((), [()]) and not certificate._tiles((), [])


def test_ranges():
    b = sympy.Symbol("b", positive=True)
    where = {t: (sympy.S.Zero, sympy.S.One), b: (sympy.S.Zero, sympy.oo)}

    def holds(f, sign, strict):
        return certificate._holds(certificate._span(f, where), sign, strict)

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
            certificate._span(f, where)


def test_without_flint(monkeypatch):
    data = made("-t*log(t)")
    monkeypatch.setattr(certify, "available", lambda: False)
    with pytest.raises(UnsupportedError, match="certify"):
        verify(data)
